"""Published sizes of ELMo (Peters et al. 2018; allennlp.org/elmo)."""

from jaxenc.families.elmo.model import ElmoConfig

# name: (cells of an LSTM, its projection, highways)
ELMO = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2), "original_5_5b": (4096, 512, 2)}


def elmo(cells: int, width: int, highways: int) -> ElmoConfig:
    """An ELMo of allenai/bilm-tf (bin/train_elmo.py) that reads characters and predicts the 793,471 words of the One Billion Word
    benchmark; `original_5_5b` is `original` trained on other text."""
    return ElmoConfig(cells=cells, width=width, highways=highways)
