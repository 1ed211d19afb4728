"""Converts options.json of allenai/bilm-tf and AllenNLP to the config of a model and back."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.characters import SIZE, WIDTH
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.elmo.model import ACTIVATIONS, ElmoConfig

LARGEST = 1 << 31
MOST_FILTERS = 64
# n_characters while training and in published options, which reserve id 0 for padding. The table has SIZE rows in both.
CHARACTER_IDS = (SIZE, SIZE + 1)
# What TensorFlow's cell and AllenNLP's add to the forget gate at run time.
FORGET_BIAS = 1.0
CONVERTED = "a word is read by its characters, with an LSTM in each direction"


def model_of(data: Mapping[str, Any], where: Path) -> ElmoConfig:
    """The model of the options. As in bilm/model.py a clip of null is none, and residual connections are off by default. Options that only
    affect training are ignored. Raises UserError, which begins with `where`, for a missing option and for one that is not implemented here.
    """
    for name, fault in (("bidirectional", False), ("share_embedding_softmax", True)):
        if data.get(name, not fault) is fault:
            raise UserError(f"{name} is {str(fault).lower()}", where, f"only models in which {CONVERTED} can be converted")
    if "char_cnn" not in data:
        raise UserError("has no char_cnn", where, f"only models in which {CONVERTED} can be converted")
    field = lambda path, check, *default: _field(data, path, check, where, *default)
    filters = field("char_cnn.filters", _PAIRS)
    field("char_cnn.n_characters", _one_of(*CHARACTER_IDS), CHARACTER_IDS[1])
    field("char_cnn.max_characters_per_token", _one_of(WIDTH), WIDTH)
    numbers = {
        "vocab_size": field("n_tokens_vocab", _whole(1), ElmoConfig.vocab_size),
        "width": field("lstm.projection_dim", _whole(1)),
        "cells": field("lstm.dim", _whole(1)),
        "layers": field("lstm.n_layers", _whole(1)),
        "character_width": field("char_cnn.embedding.dim", _whole(1)),
        "filter_widths": tuple(width for width, _ in filters),
        "filters": tuple(count for _, count in filters),
        "activation": field("char_cnn.activation", _one_of(*ACTIVATIONS)),
        "highways": field("char_cnn.n_highway", _whole(0), 0),
        "cell_clip": field("lstm.cell_clip", _CLIP, None) or 0.0,
        "projection_clip": field("lstm.proj_clip", _CLIP, None) or 0.0,
        "residual": field("lstm.use_skip_connections", _one_of(True, False), False),
        "dropout": field("dropout", _RATE, ElmoConfig.dropout),
    }
    return ElmoConfig(**numbers)


def with_words(model: ElmoConfig, data: Mapping[str, Any], vocabulary: Vocabulary, where: Path) -> ElmoConfig:
    """`model` with the vocabulary of a word list. Raises UserError where the options have another number of words, and for a tokenizer that
    is not a word list."""
    if not vocabulary.words:
        raise UserError(f"the tokenizer cuts words, and here {CONVERTED}", where, "name a list of words with --tokenizer DIR, or none")
    if data.get("n_tokens_vocab", vocabulary.size) != vocabulary.size:
        sizes = f"n_tokens_vocab is {data['n_tokens_vocab']} and the list of words has {vocabulary.size}"
        raise UserError(sizes, where, "name the right one with --tokenizer DIR, or convert without it with --tokenizer none")
    return model.with_vocabulary(vocabulary)


def of_model(model: ElmoConfig) -> dict[str, Any]:
    """The options of a model, without those of training. Raises UserError for a model that bilm-tf and AllenNLP do not support."""
    if not model.reads_characters:
        raise UserError("this model reads words by their ids", fix="only one that reads their characters can be exported")
    if model.forget_bias != FORGET_BIAS:
        raise UserError(f"model.forget_bias is {model.forget_bias}", fix=f"AllenNLP computes with {FORGET_BIAS}, so it cannot be exported")
    clip = lambda value: (int(value) if value == int(value) else value) if value else None
    return {
        "lstm": {
            "use_skip_connections": model.residual,
            "projection_dim": model.width,
            "cell_clip": clip(model.cell_clip),
            "proj_clip": clip(model.projection_clip),
            "dim": model.cells,
            "n_layers": model.layers,
        },
        "char_cnn": {
            "activation": model.activation,
            "filters": [[width, count] for width, count in zip(model.filter_widths, model.filters, strict=True)],
            "n_highway": model.highways,
            "embedding": {"dim": model.character_width},
            "n_characters": CHARACTER_IDS[1],
            "max_characters_per_token": WIDTH,
        },
    }


@dataclasses.dataclass(frozen=True)
class _Check:
    """A constraint on a value. fits: tests it; words: describes it in a message."""

    fits: Callable[[Any], bool]
    words: str


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST


def _whole(least: int) -> _Check:
    return _Check(lambda value: type(value) is int and least <= value < LARGEST, f"a whole number from {least} on")


def _one_of(*choices: Any) -> _Check:
    return _Check(
        lambda value: any(type(value) is type(choice) and value == choice for choice in choices),
        " or ".join(str(choice).lower() for choice in choices),
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_whole(1).fits, value)) and value[0] <= WIDTH


_CLIP = _Check(lambda value: value is None or (_number(value) and value > 0), "a number above 0, or null for none")
_RATE = _Check(lambda value: _number(value) and 0 <= value < 1, "a rate from 0 up to but not including 1")
_PAIRS = _Check(
    lambda value: isinstance(value, list) and 0 < len(value) <= MOST_FILTERS and all(map(_is_pair, value)),
    f"a list of [characters, filters], at most {WIDTH} characters each",
)


def _field(data: Mapping[str, Any], path: str, check: _Check, where: Path, *default: Any) -> Any:
    """The value at a dotted path, or the default. Raises UserError where there is neither, and for a value that fails the check."""
    value: Any = data
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            if default:
                return default[0]
            raise UserError(f"has no {path}", where, f"it takes {check.words}")
        value = value[key]
    if not check.fits(value):
        raise UserError(f"{path} is {value!r}", where, f"it takes {check.words}")
    return value
