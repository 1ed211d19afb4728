"""From the ids of texts to the rows of a model: special pieces around them, cut to a length, padded."""

import dataclasses
import re
import sys
from collections.abc import Sequence

import numpy as np

from jaxenc.data import characters
from jaxenc.data.batch import CHARACTERS, Batch
from jaxenc.data.frames import CLS_FIRST, CLS_LAST
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig

# Which text loses tokens when the row is too short.
TRUNCATIONS = ("longest", "first", "second", "refuse")

SURROGATE = re.compile("[\ud800-\udfff]")

Ids = Sequence[int]


class Spelled(int):
    """The id of a word, with its spelling, for a model that reads characters: all unknown words share one id."""

    def __new__(cls, index: int, text: str) -> "Spelled":
        """The id `index` of the word `text`."""
        made = super().__new__(cls, index)
        made.text = text
        return made


@dataclasses.dataclass(frozen=True, eq=False)
class Framed:
    """rows: tokens, types, segments, positions, i32 [rows, length], and characters, uint16 [rows, length, 50], where the model reads them.
    starts, kept: i32 [rows, texts], the position of the first token of each text in its row, and how many of its tokens the row holds.
    shortened: bool [rows], whether a text of the row lost tokens."""

    rows: Batch
    starts: np.ndarray
    kept: np.ndarray
    shortened: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Framing:
    """How a model reads one or two texts in a row of `length` tokens: with the special pieces of its tokenizer, as `[CLS] A [SEP] B [SEP]`.

    left: pad on the left, as XLNet does for classification (zihangdai/xlnet classifier_utils.py). truncation: one of TRUNCATIONS:
    `longest` takes tokens off the end of the longer text one by one, of the second where both are equal (google-research/bert
    run_classifier.py, _truncate_seq_pair); `first` and `second` shorten that text alone; `refuse` raises UserError.
    """

    tokenizer: Tokenizer
    model: ModelConfig
    length: int
    left: bool = False
    truncation: str = "longest"

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            raise UserError(f"the truncation is {self.truncation!r}", fix=f"use {', '.join(TRUNCATIONS)}")
        if self.model.positions and self.length > self.model.positions:
            what = f"rows have {self.length} tokens and the model takes {self.model.positions}"
            raise UserError(what, fix=f"set train.length to {self.model.positions} or less")

    def room(self, texts: int) -> int:
        """How many tokens of text fit into a row of one or two texts, in addition to the special pieces."""
        return self.length - sum(index >= 0 for index, _ in self._template(texts))

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts, taken literally: `[MASK]` in a text is brackets and letters. Half of a surrogate pair, which JSON can write, is
        read as U+FFFD, as in `data.readers.document.documents_of`."""
        if self.spells:
            return [self.ids_of_words(self.tokenizer.split(text))[0] for text in _in_unicode(texts)]
        return self.tokenizer.encode(_in_unicode(texts))

    def ids_of_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """(ids of a text that is already split into words, without special pieces; for each id the number of its word). A word may have
        several ids or none. Raises UserError as `Tokenizer.encode_split`."""
        ids, _, numbers = self.tokenizer.encode_split(words)
        kept = [(index, number) for index, number in zip(ids, numbers, strict=True) if number >= 0]
        if self.spells:
            kept = [(Spelled(index, self.tokenizer.written(words[number])), number) for index, number in kept]
        return [index for index, _ in kept], [number for _, number in kept]

    @property
    def spells(self) -> bool:
        """Whether the model reads words by their characters: their ids are then `Spelled`."""
        return CHARACTERS in self.model.inputs

    def offsets(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """The ids of texts, as `ids` gives them, and of each id the first character of the text that it stands for and the end
        (exclusive)."""
        return self.tokenizer.encode_offsets(_in_unicode(texts))

    def rows(self, examples: Sequence[Sequence[Ids]], wheres: Sequence[str] = ()) -> Framed:
        """The rows of `examples`: each holds the ids of one text, or each of two. wheres: the name of each example in messages.

        Raises UserError if a row has no room for text, and for texts that are too long and may not be shortened.
        """
        texts = len(examples[0]) if len(examples) else 1
        room, template = self.room(texts), self._template(texts)
        if room < texts:
            raise UserError(f"a row of {self.length} tokens has no room for {texts} texts", fix="raise train.length")
        lengths = np.array([[len(ids) for ids in example] for example in examples], np.int64).reshape(-1, texts)
        kept = np.array([self._kept(sizes, room, row, wheres) for row, sizes in enumerate(lengths.tolist())], np.int64).reshape(-1, texts)
        used = kept.sum(axis=1) + self.length - room
        begin = self.length - used if self.left else np.zeros_like(used)
        tokens = np.full((len(examples), self.length), self.tokenizer.vocabulary.pad, np.int32)
        types, starts = np.zeros_like(tokens), np.zeros((len(examples), texts), np.int32)
        for row, example in enumerate(examples):
            at = begin[row]
            for index, kind in template:
                ids = [index] if index >= 0 else example[-1 - index][: kept[row, -1 - index]]
                if index < 0:
                    starts[row, -1 - index] = at
                tokens[row, at : at + len(ids)], types[row, at : at + len(ids)] = ids, kind
                at += len(ids)
        places = np.arange(self.length)
        segments = ((places >= begin[:, None]) & (places < (begin + used)[:, None])).astype(np.int32)
        positions = (segments * (places - begin[:, None])).astype(np.int32)
        rows = {"tokens": tokens, "types": self.model.row_types(types), "segments": segments, "positions": positions}
        if self.spells:
            rows[CHARACTERS] = self._characters(examples, tokens, segments, starts, kept)
        return Framed(rows, starts, kept.astype(np.int32), (kept < lengths).any(axis=1))

    def _kept(self, sizes: Sequence[int], room: int, row: int, wheres: Sequence[str]) -> list[int]:
        """How many tokens of each text are kept."""
        over = sum(sizes) - room
        if over <= 0:
            return list(sizes)
        if self.truncation == "longest":
            return _longest_first(sizes, room)
        chosen = {"first": 0, "second": 1}.get(self.truncation, -1)
        if not 0 <= chosen < len(sizes) or sizes[chosen] < over:
            where = wheres[row] if wheres else f"example {row}"
            what = f"{sum(sizes)} tokens of text, and a row of {self.length} has room for {room}"
            raise UserError(what, where, "raise train.length, shorten the text, or set task.truncation=longest")
        return [size - over * (text == chosen) for text, size in enumerate(sizes)]

    def _characters(
        self, examples: Sequence[Sequence[Ids]], tokens: np.ndarray, segments: np.ndarray, starts: np.ndarray, kept: np.ndarray
    ) -> np.ndarray:
        """uint16 [rows, length, 50], 0 on padding."""
        found = np.zeros((*tokens.shape, characters.WIDTH), np.uint16)
        for index, marker in ((self.tokenizer.vocabulary.cls, characters.begin()), (self.tokenizer.vocabulary.sep, characters.end())):
            found[(tokens == index) & (segments > 0)] = marker
        for row, example in enumerate(examples):
            for text, ids in enumerate(example):
                count = kept[row, text]
                found[row, starts[row, text] :][:count] = characters.of_words([word.text for word in ids[:count]])
        return found

    def _template(self, texts: int) -> tuple[tuple[int, int], ...]:
        """(id, type) of each special piece, in order, and (-1, type), (-2, type) for the texts."""
        return self.tokenizer.frame(texts, self.model.frame.fallback)


def as_tuned(tokenizer: Tokenizer, model: ModelConfig, where: object) -> Tokenizer:
    """The tokenizer of a fine-tuned model, with the frame of its family or, for a model that an older jaxenc fine-tuned with CLS on the
    other side of a text, with that frame. A line on stderr names such a model. where: its checkpoint."""
    own, last = model.row_frame, tokenizer.ends_in_cls
    framed = tokenizer.framed_as(own)
    if framed.ends_in_cls == last:
        return framed
    place, other = ("last", "first") if last else ("first", "last")
    print(f"warning: {where}: fine-tuned with CLS {place}, and {model.kind} has it {other}: fine-tune it again", file=sys.stderr)
    return tokenizer.framed_as((CLS_LAST if last else CLS_FIRST).within(max(model.types, 1)))


def _in_unicode(texts: Sequence[str]) -> list[str]:
    """`texts` with U+FFFD for each half of a surrogate pair."""
    return [SURROGATE.sub("\ufffd", text) for text in texts]


def _longest_first(sizes: Sequence[int], room: int) -> list[int]:
    if len(sizes) == 1:
        return [room]
    first, second = sizes
    if second <= room // 2:
        return [room - second, second]
    more = room - room // 2  # the first text keeps the odd token: of two equally long texts the second is shortened
    return [first, room - first] if first < more else [more, room // 2]
