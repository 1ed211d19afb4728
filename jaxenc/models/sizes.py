"""Published sizes (google-research/bert README.md; Turc et al. 2019 for the 24 small models; Liu et al. 2019 for RoBERTa; Clark et al.
2020 for ELECTRA; Yang et al. 2019 for XLNet; allennlp.org/elmo, of Peters et al. 2018, for ELMo)."""

import dataclasses

from jaxenc.models.bert import BertConfig
from jaxenc.models.electra import ElectraConfig
from jaxenc.models.elmo import ElmoConfig
from jaxenc.models.xlnet import XlnetConfig

# name: (layers, width)
BERT = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512), "base": (12, 768), "large": (24, 1024)}

ROBERTA = {"base": (12, 768), "large": (24, 1024)}

# name: (layers, width, width of the tables, width of the generator)
ELECTRA = {"small": (12, 256, 128, 64), "base": (12, 768, 768, 256), "large": (24, 1024, 1024, 256)}

XLNET = {"base": (12, 768), "large": (24, 1024)}

# name: (cells of an LSTM, its projection, highways)
ELMO = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2), "original_5_5b": (4096, 512, 2)}

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


def electra(layers: int, width: int, embedding: int, generator_width: int) -> ElectraConfig:
    """An ELECTRA of google-research/electra (configure_pretraining.py, util/training_utils.py): both networks equally deep, an inner
    width of 4 · width; the discriminator's heads are 64 wide as the generator's."""
    return ElectraConfig(
        width=width,
        layers=layers,
        heads=width // 64,
        feed_forward=4 * width,
        embedding=embedding,
        generator_width=generator_width,
        generator_layers=layers,
        generator_heads=generator_width // 64,
        generator_feed_forward=4 * generator_width,
    )


def xlnet(layers: int, width: int) -> XlnetConfig:
    """A cased XLNet of zihangdai/xlnet (README.md) with heads of 64 and an inner width of 4 · `width`."""
    return XlnetConfig(layers=layers, width=width, heads=width // 64, feed_forward=4 * width)


def elmo(cells: int, width: int, highways: int) -> ElmoConfig:
    """An ELMo of allenai/bilm-tf (bin/train_elmo.py) that reads characters and predicts the 793,471 words of the One Billion Word
    benchmark; `original_5_5b` is `original` trained on other text."""
    return ElmoConfig(cells=cells, width=width, highways=highways)
