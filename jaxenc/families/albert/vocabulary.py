"""The published vocabulary of ALBERT."""

from jaxenc.data.vocabulary import Vocabulary


def published_albert(size: int) -> Vocabulary:
    """The layout of ALBERT's vocabulary at `size` ids: <pad> 0, <unk> 1, [CLS] 2, [SEP] 3, [MASK] 4, then text (30k-clean.vocab of
    google-research/albert)."""
    return Vocabulary(size, pad=0, unk=1, cls=2, sep=3, mask=4, reserved=tuple(range(min(5, size))), fingerprint="")
