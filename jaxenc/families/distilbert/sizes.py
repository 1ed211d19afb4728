"""The published size of DistilBERT (Sanh et al. 2019, section 3)."""

from jaxenc.families.distilbert.model import DistilbertConfig

# name: (layers, width)
DISTILBERT = {"base": (6, 768)}


def distilbert(layers: int, width: int) -> DistilbertConfig:
    """A DistilBERT with heads of 64 and an inner width of 4 · `width`, as its teacher has."""
    return DistilbertConfig(layers=layers, width=width, heads=width // 64, feed_forward=4 * width)
