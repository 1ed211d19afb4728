"""Texts and tokens that people give a trained model, as checked rows of a batch."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxenc.data.batch import Batch
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.models.base import ModelConfig


def of_texts(model: ModelConfig, tokenizer: Tokenizer | None, texts: Iterable[str]) -> Batch:
    """Rows of `texts` with the tokenizer's special tokens, padded at their end to the longest: `tokens`, `types` (the tokenizer's),
    `segments` (0 = padding) and `positions`, i32 [batch, length].

    Raises UserError for what is no list of texts, without a tokenizer, and for a text that is longer than the model takes.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise UserError("encode takes a list of texts: [text] for a single one")
    texts = list(texts)
    if other := [type(text).__name__ for text in texts if not isinstance(text, str)]:
        raise UserError(f"encode takes a list of texts, and a {other[0]} is among them: give each as a str")
    tokenizer = needed(tokenizer)
    rows = [tokenizer.encode_framed(text) for text in texts]
    lengths = np.array([len(ids) for ids, _ in rows], np.int32)
    if len(rows):
        _check_length(model, int(lengths.max()), f"texts[{lengths.argmax()}]")
    segments = (np.arange(lengths.max(initial=0)) < lengths[:, None]).astype(np.int32)
    tokens, types = np.full(segments.shape, tokenizer.vocabulary.pad, np.int32), np.zeros(segments.shape, np.int32)
    tokens[segments > 0], types[segments > 0] = ([item for row in rows for item in row[part]] for part in (0, 1))
    return _rows(model, tokens, segments, types)


def needed(tokenizer: Tokenizer | None) -> Tokenizer:
    """A model's own tokenizer. Raises UserError where it has none."""
    if tokenizer is None:
        raise UserError("this model has no tokenizer: give it one when it is converted, or use encode(tokens=)")
    return tokenizer


def of_tokens(model: ModelConfig, tokens: Any, mask: Any = None, types: Any = None, what: str = "each row") -> Batch:
    """The rows of `of_texts` from lists or arrays [batch, length]: without `mask` nothing is padding, without `types` all are 0.

    what: what a message about the length calls a row. Raises UserError for what is no rectangle of such numbers, and for too long rows.
    """
    tokens = _integers("tokens", tokens, model.vocab_size)
    _check_length(model, tokens.shape[1], what)
    segments = np.ones_like(tokens) if mask is None else _integers("mask", mask, 2)
    types = np.zeros_like(tokens) if types is None else _integers("types", types, max(model.types, 1))
    for name, array in (("mask", segments), ("types", types)):
        if array.shape != tokens.shape:
            raise UserError(f"{name} has the shape {list(array.shape)} and tokens {list(tokens.shape)}: give one number a token")
    return _rows(model, tokens, segments, types)


def _rows(model: ModelConfig, tokens: np.ndarray, segments: np.ndarray, types: np.ndarray) -> Batch:
    return {"tokens": tokens, "segments": segments, "types": types, "positions": model.positions_of(tokens)}


def _check_length(model: ModelConfig, length: int, what: str) -> None:
    if 0 < model.positions < length:
        raise UserError(f"{what} has {length} tokens and the model takes {model.positions}: shorten it")


def _integers(name: str, values: Any, bound: int) -> np.ndarray:
    """i32 [batch, length] of integers from 0 up to but not including `bound`; UserError for anything else."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise UserError(f"{name} has rows of several lengths: pad them to one length and say where with mask=") from None
    if array.ndim != 2:
        raise UserError(f"{name} has {array.ndim} axes: give rows of numbers, [batch, length]")
    if array.size and array.dtype.kind not in "iub":
        raise UserError(f"{name} is {array.dtype}: give integers")
    if array.size and not 0 <= array.min() <= array.max() < bound:
        raise UserError(f"{name} holds {array.min()} to {array.max()}, and the model takes 0 to {bound - 1}: use this model's tokenizer")
    return array.astype(np.int32)
