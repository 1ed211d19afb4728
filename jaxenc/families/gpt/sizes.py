"""The published size of GPT (Radford et al. 2018, section 4.1; openai/finetune-transformer-lm train.py)."""

from jaxenc.families.gpt.model import GptConfig

# name: (layers, width)
GPT = {"base": (12, 768)}


def gpt(layers: int, width: int) -> GptConfig:
    """A GPT with heads of 64 and an inner width of 4 · `width`, as the published one has."""
    return GptConfig(layers=layers, width=width, heads=width // 64, feed_forward=4 * width)
