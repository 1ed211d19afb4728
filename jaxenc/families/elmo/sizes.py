"""Published sizes of ELMo (Peters et al. 2018; allennlp.org/elmo) and the optimizer they were trained with."""

from types import MappingProxyType

from jaxenc.families.elmo.model import ElmoConfig

# name: (cells of an LSTM, its projection, highways)
ELMO = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2), "original_5_5b": (4096, 512, 2)}


# Fields of `optim`: Adagrad at a constant rate (bin/train_elmo.py and bilm/training.py of allenai/bilm-tf).
OPTIM = MappingProxyType(
    {
        "name": "adagrad",
        "lr": 0.2,
        "warmup": 0,
        "schedule": "constant",
        "accumulator": 1.0,
        "weight_decay": 0.0,
        "clip": 10.0,
        "decay_exclude": (),
    }
)


def elmo(cells: int, width: int, highways: int) -> ElmoConfig:
    """An ELMo of allenai/bilm-tf (bin/train_elmo.py) that reads characters and predicts the 793,471 words of the One Billion Word
    benchmark; `original_5_5b` is `original` trained on other text."""
    return ElmoConfig(cells=cells, width=width, highways=highways)
