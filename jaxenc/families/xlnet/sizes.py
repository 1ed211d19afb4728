"""Published sizes of XLNet (Yang et al. 2019)."""

from jaxenc.families.xlnet.model import XlnetConfig

XLNET = {"base": (12, 768), "large": (24, 1024)}


def xlnet(layers: int, width: int) -> XlnetConfig:
    """A cased XLNet of zihangdai/xlnet (README.md) with heads of 64 and an inner width of 4 · `width`."""
    return XlnetConfig(layers=layers, width=width, heads=width // 64, feed_forward=4 * width)
