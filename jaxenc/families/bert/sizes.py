"""Published sizes of BERT (google-research/bert README.md; Turc et al. 2019 for the 24 small models) and RoBERTa (Liu et al. 2019)."""

import dataclasses

from jaxenc.families.bert.model import BertConfig

# name: (layers, width)
BERT = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512), "base": (12, 768), "large": (24, 1024)}

ROBERTA = {"base": (12, 768), "large": (24, 1024)}

BERT_SMALL = tuple((layers, width) for layers in (2, 4, 6, 8, 10, 12) for width in (128, 256, 512, 768))


def bert(layers: int, width: int) -> BertConfig:
    """An uncased BERT with heads of 64 and an inner width of 4 · `width`, as all published ones have."""
    return BertConfig(layers=layers, width=width, heads=width // 64, feed_forward=4 * width)


def roberta(layers: int, width: int) -> BertConfig:
    """A RoBERTa of fairseq (models/roberta/model.py) in the layout of transformers: one token type, 512 positions from row 2 on."""
    return dataclasses.replace(
        bert(layers, width),
        vocab_size=50265,
        types=1,
        first_position=2,
        activation="gelu_erf",
        norm_epsilon=1e-5,
        init="normal",
    )
