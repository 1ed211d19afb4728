"""Published sizes of ALBERT (Lan et al. 2019, table 1; google-research/albert README.md)."""

from jaxenc.families.albert.model import AlbertConfig

# name: (layers, width, heads)
ALBERT = {"base": (12, 768, 12), "large": (24, 1024, 16), "xlarge": (24, 2048, 16), "xxlarge": (12, 4096, 64)}


def albert(layers: int, width: int, heads: int) -> AlbertConfig:
    """An ALBERT of version 2 with embeddings of 128 and an inner width of 4 · `width`, as all published ones have."""
    return AlbertConfig(layers=layers, width=width, heads=heads, feed_forward=4 * width)
