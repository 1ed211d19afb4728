"""The published vocabularies of BERT and RoBERTa."""

from jaxenc.data.vocabulary import Vocabulary


def published_bert(size: int) -> Vocabulary:
    """The layout of BERT's uncased vocabulary at `size` ids: [PAD] 0, [unused] 1-99, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103,
    [unused] 104-998 (vocab.txt of google-research/bert). What a recipe stands for when no data is named."""
    return Vocabulary(size, pad=0, unk=100, cls=101, sep=102, mask=103, reserved=tuple(range(min(999, size))), fingerprint="")


def published_roberta(size: int) -> Vocabulary:
    """The layout of RoBERTa's vocabulary at `size` ids: <s> 0, <pad> 1, </s> 2, <unk> 3, then text, three fillers (madeupword0000 to
    madeupword0002) and <mask> last (dict.txt of fairseq's roberta.base, to which tasks/masked_lm.py adds <mask>)."""
    reserved = (0, 1, 2, 3, *range(max(4, size - 4), size))
    return Vocabulary(size, pad=1, unk=3, cls=0, sep=2, mask=size - 1, reserved=reserved, fingerprint="")
