"""Texts, words or tokens of a caller as checked rows of a batch for a trained model."""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxenc.data import characters
from jaxenc.data.batch import CHARACTERS, Batch
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.inference.spans import Spans

SHORTEST = 8  # shorter rows are padded to this length
LENGTHS_PER_DOUBLING = 4  # compiled lengths from a power of two to the next: more of them pad less and compile more


def of_texts(model: ModelConfig, tokenizer: Tokenizer | None, texts: Iterable[str]) -> Batch:
    """Rows of `texts` with the tokenizer's special tokens, padded at the end to the longest: `tokens`, `types` (the tokenizer's),
    `segments` (0 = padding) and `positions`, i32 [batch, length], and `characters`, uint16 [batch, length, 50], where the model reads them.

    Raises UserError for anything but a list of texts, without a tokenizer, and for a text that is too long for the model.
    """
    texts = all_str(texts, "texts must be a list of str", "[text] for a single one")
    tokenizer = needed(model, tokenizer)
    if CHARACTERS in model.inputs:
        return of_words(model, tokenizer, [tokenizer.split(text) for text in texts])[0]
    return _framed(model, tokenizer.vocabulary.pad, [tokenizer.encode_framed(text) for text in texts], "texts[{}]".format)


def of_words(
    model: ModelConfig,
    tokenizer: Tokenizer | None,
    sentences: Iterable[Iterable[str]],
    called: Callable[[int], str] = "words[{}]".format,
) -> tuple[Batch, np.ndarray]:
    """(rows as `of_texts` returns them, of sentences that are split into words already; i32 [batch, length], the number of the word at each
    place, -1 for special tokens and padding).

    A word that the tokenizer splits has several places, a word that it drops has none. A model that reads characters gives every word one
    place, even '', and needs no tokenizer. called: from the number of a sentence (0-based) to its name in a message about its length.
    Raises UserError as `of_texts`.
    """
    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise UserError("not a list of sentences", "words=", "give [[word, word], [word]]")
    split = [all_str(words, "a sentence must be a list of words", "[word] for a single one") for words in sentences]
    if CHARACTERS not in model.inputs or tokenizer is not None:
        tokenizer = needed(model, tokenizer)
        framed = [tokenizer.encode_split(words) for words in split]
        vocabulary = tokenizer.vocabulary
    else:
        vocabulary = model.published_vocabulary
        framed = [_frame(len(words), vocabulary.cls, vocabulary.unk, vocabulary.sep) for words in split]
    rows = _framed(model, vocabulary.pad, [(ids, types) for ids, types, _ in framed], called)
    numbers = np.full(rows["tokens"].shape, -1, np.int32)
    numbers[rows["segments"] > 0] = [number for *_, found in framed for number in found]
    if CHARACTERS in model.inputs:
        rows[CHARACTERS] = np.zeros((*numbers.shape, characters.WIDTH), np.uint16)
        rows[CHARACTERS][:, :1] = characters.begin()
        rows[CHARACTERS][np.arange(len(split)), [len(words) + 1 for words in split]] = characters.end()
        written = [tokenizer.written(word) if tokenizer else word for words in split for word in words]
        rows[CHARACTERS][numbers >= 0] = characters.of_words(written)
    return rows, numbers


def of_spans(
    model: ModelConfig, tokenizer: Tokenizer | None, texts: Sequence[Spans], called: Callable[[int], str] = "texts[{}]".format
) -> tuple[Batch, list[np.ndarray]]:
    """(rows as `of_texts` returns them, of texts that are taken literally; of each text i64 [words, 2], the first place and the end of the
    pieces that overlap each word, both 0 for a word without a piece).

    Raises UserError as `of_texts`, and for a model that reads characters: its words are those of `of_words`.
    """
    tokenizer = needed(model, tokenizer)
    if CHARACTERS in model.inputs:
        raise UserError("this model reads a word by its characters, and a text in pieces has none", fix="put blanks between the words")
    framed = [tokenizer.encode_framed_places(one.text) for one in texts]
    rows = _framed(model, tokenizer.vocabulary.pad, [(ids, types) for ids, types, _ in framed], called)
    return rows, [_overlapping(one.places, places) for one, (_, _, places) in zip(texts, framed, strict=True)]


def _overlapping(words: Sequence[tuple[int, int]], pieces: Sequence[tuple[int, int]]) -> np.ndarray:
    """i64 [words, 2]: for each of `words` the number of the first of `pieces` that overlaps it, and that after the last."""
    starts, ends = np.array(pieces, np.int64).reshape(-1, 2).T
    out = np.zeros((len(words), 2), np.int64)
    for number, (start, end) in enumerate(words):
        found = np.flatnonzero((starts < end) & (ends > start))
        out[number] = (found[0], found[-1] + 1) if len(found) else 0
    return out


def _frame(words: int, begin: int, word: int, end: int) -> tuple[list[int], list[int], list[int]]:
    """As `Tokenizer.encode_split`, for a model that reads characters: the ids only mark the places."""
    return [begin, *[word] * words, end], [0] * (words + 2), [-1, *range(words), -1]


def needed(model: ModelConfig, tokenizer: Tokenizer | None) -> Tokenizer:
    """A model's own tokenizer. Raises UserError where it has none."""
    if tokenizer is None:
        raise UserError("this model has no tokenizer", fix=f"convert it with one, or use encode({without_tokenizer(model)})")
    return tokenizer


def without_tokenizer(model: ModelConfig) -> str:
    """The argument of `Model.encode` that needs no tokenizer, as an example: words for a model that reads characters, else tokens."""
    return "words=[[...]]" if CHARACTERS in model.inputs else "tokens=[[...]]"


def of_tokens(
    model: ModelConfig, tokenizer: Tokenizer | None, tokens: Any, mask: Any = None, types: Any = None, what: str = "each row"
) -> Batch:
    """Rows as `of_texts` returns them, from lists or arrays [batch, length]: without `mask` nothing is padding, without `types` all are 0.

    what: the name of a row in a message about its length. Only a model that reads characters needs the tokenizer, for the words of the ids.
    Raises UserError for anything but arrays of such numbers and for rows that are too long for the model.
    """
    table = needed(model, tokenizer).characters() if CHARACTERS in model.inputs else None
    tokens = _integers("tokens", tokens, model.inputs["tokens"] if table is None else len(table))
    _check_length(model, tokens.shape[1], what)
    segments = np.ones_like(tokens) if mask is None else _integers("mask", mask, 2)
    types = np.zeros_like(tokens) if types is None else _integers("types", types, max(model.types, 1))
    for name, array in (("mask", segments), ("types", types)):
        if array.shape != tokens.shape:
            raise UserError(f"{name} has the shape {list(array.shape)} and tokens {list(tokens.shape)}", fix="give one number a token")
    rows = _rows(model, tokens, segments, types)
    return rows if table is None else {**rows, CHARACTERS: table[tokens]}


def filled(rows: Batch, count: int, length: int) -> Batch:
    """`rows` padded with zeros, which are padding, to `count` rows of `length` places."""
    to = lambda array: np.pad(array, [(0, count - array.shape[0]), (0, length - array.shape[1]), *[(0, 0)] * (array.ndim - 2)])
    return {field: to(array) for field, array in rows.items()}


def _framed(model: ModelConfig, pad: int, framed: Sequence[tuple[list[int], list[int]]], called: Callable[[int], str]) -> Batch:
    """Rows of (ids, types), padded at their end."""
    lengths = np.array([len(ids) for ids, _ in framed], np.int32)
    if len(framed):
        _check_length(model, int(lengths.max()), called(int(lengths.argmax())))
    segments = (np.arange(lengths.max(initial=0)) < lengths[:, None]).astype(np.int32)
    tokens, types = np.full(segments.shape, pad, np.int32), np.zeros(segments.shape, np.int32)
    tokens[segments > 0], types[segments > 0] = ([item for row in framed for item in row[part]] for part in (0, 1))
    return _rows(model, tokens, segments, model.row_types(types))


def _rows(model: ModelConfig, tokens: np.ndarray, segments: np.ndarray, types: np.ndarray) -> Batch:
    return {"tokens": tokens, "segments": segments, "types": types, "positions": model.positions_of(tokens)}


def all_str(values: Iterable[str], rule: str, single: str) -> list[str]:
    """`values` as a list. rule, single: for messages, what is taken, and how to give a single str.

    Raises UserError for a single str, for anything that is not iterable, and for an item that is not a str.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UserError(rule, fix=f"give {single}")
    values = list(values)
    if other := [type(value).__name__ for value in values if not isinstance(value, str)]:
        raise UserError(f"{rule}, and one item is a {other[0]}", fix="give each as a str")
    return values


def whole(name: str, value: Any) -> int:
    """`value`, a Python or NumPy integer, as an int. Raises UserError, which names it `name`, for anything else."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise UserError(f"{name} is {value!r}", fix="it takes a whole number") from error


def real(name: str, value: Any) -> float:
    """`value`, a Python or NumPy number, as a float. Raises UserError, which names it `name`, for anything else."""
    if not isinstance(value, (int, float, np.number)):
        raise UserError(f"{name} is {value!r}", fix="it takes a number")
    return float(value)


def power_of_two(number: int, least: int) -> int:
    """The smallest power of two that is at least `number` and at least `least`, itself a power of two."""
    return max(least, 1 << max(number - 1, 0).bit_length())


def compiled_length(length: int) -> int:
    """The length to which rows of `length` tokens are padded: the next of 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, ...."""
    step = max(power_of_two(length, 1) // 2, SHORTEST) // LENGTHS_PER_DOUBLING
    return max(SHORTEST, -(-length // step) * step)


def _check_length(model: ModelConfig, length: int, what: str) -> None:
    if 0 < model.positions < length:
        raise UserError(f"{what} has {length} tokens and the model takes {model.positions}", fix="shorten it")


def _integers(name: str, values: Any, bound: int) -> np.ndarray:
    """i32 [batch, length] of integers from 0 up to but not including `bound`; UserError for anything else."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise UserError(f"{name} has rows of several lengths", fix="pad them to one length and say where with mask=") from None
    if array.ndim != 2:
        raise UserError(f"{name} has {array.ndim} axes", fix="give rows of numbers, [batch, length]")
    if array.size and array.dtype.kind not in "iub":
        raise UserError(f"{name} is {array.dtype}", fix="give integers")
    if array.size and not 0 <= array.min() <= array.max() < bound:
        raise UserError(
            f"{name} holds {array.min()} to {array.max()}, and the model takes 0 to {bound - 1}", fix="use this model's tokenizer"
        )
    return array.astype(np.int32)
