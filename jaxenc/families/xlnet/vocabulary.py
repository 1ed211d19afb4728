"""The published vocabulary of XLNet."""

from jaxenc.data.vocabulary import Vocabulary


def published_xlnet(size: int) -> Vocabulary:
    """The layout of XLNet's vocabulary at `size` ids: <unk> 0, <s> 1, </s> 2, <cls> 3, <sep> 4, <pad> 5, <mask> 6, <eod> 7, <eop> 8, then
    text (data_utils.py of zihangdai/xlnet)."""
    return Vocabulary(size, pad=5, unk=0, cls=3, sep=4, mask=6, reserved=tuple(range(min(9, size))), fingerprint="", eod=7)
