"""What the pipeline needs of any source of rows, and the settings that choose one."""

import dataclasses
import itertools
import os
from typing import Protocol

import numpy as np

from jaxenc.config import at_least
from jaxenc.data.batch import Batch
from jaxenc.data.ranges import ranges
from jaxenc.data.store import Bits, Concatenation, Shards
from jaxenc.errors import UserError

# data.rows -> the fields of DataConfig, other than path and length, that its rows depend on; no other kind of row reads them.
SHAPED_BY = {"pairs": ("short_probability",), "swapped_pairs": ("short_probability",), "streams": ("reuse",), "bucketed": ("lengths",)}


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Which rows a run reads.

    path: a folder made by `jaxenc data`, or its URL, such as gs://bucket/data: it is then copied to each host.
    length: tokens in a row, specials included; `phases` may have their own.
    rows: how text becomes rows, such as `text`, `packed`, `pairs` or `streams`.
        `text`: the documents one after another. `full_sentences`: whole sentences of one or more documents; `doc_sentences`: of one
        document. `packed`: several documents, or parts of long ones, each between its own specials, that do not attend to each other.
        `bucketed`: one document, or a part of a long one, in the shortest of `lengths` that holds it; all rows of a batch have one length.
        `pairs`: two segments for next-sentence prediction; `swapped_pairs`: two neighbouring segments, half of them swapped. `streams`:
        each slot of the batch reads the text row after row; a row repeats the end of the one before and adds two segments. `sentences`:
        also row after row, of sentences between markers, read from both ends of the text.
    short_probability: of both kinds of pairs, the share with a shorter target (0.1 in google-research/bert:create_pretraining_data.py).
    lengths: of `bucketed`, the lengths that a row may have, rising to `length`. A phase of shorter rows leaves out the longer ones.
    reuse: of streams, the tokens of a row that the next row finds in its memory (256 of 512 in XLNet's README.md).
    mixture: folders made by `jaxenc data` with one tokenizer, whose rows are mixed; `path` is then not set. An epoch has as many rows as
        all folders together.
    weights: relative shares of the folders of `mixture` in the rows, in its order; () = by their size.
    exponent: a folder's share is proportional to its number of tokens raised to this: 1 = by size, 0 = equal shares.
        With 0.7 small languages are read more often than by size, as in mBERT (google-research/bert:multilingual.md) and XLM
        (facebookresearch/XLM, lg_sampling_factor).
    """

    path: str = ""
    length: int = 128
    rows: str = "text"
    short_probability: float = 0.1
    reuse: int = 0
    lengths: tuple[int, ...] = ()
    mixture: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.short_probability <= 1:
            raise UserError(f"data.short_probability is {self.short_probability}", fix="it takes a share from 0 to 1")
        at_least(0, "data", self, "reuse", "exponent", "weights")
        if any(after <= before for before, after in itertools.pairwise((2, *self.lengths))):
            listed = ",".join(map(str, self.lengths))
            raise UserError(f"{listed} does not rise from 3 or more", "data.lengths", "give each length once, the shortest first")
        if infinite := [name for name in ("exponent", "weights") if not np.isfinite(getattr(self, name)).all()]:
            raise UserError(f"data.{infinite[0]} is {getattr(self, infinite[0])}", fix="it takes finite numbers")
        if self.path and self.mixture:
            raise UserError("data.path and data.mixture are both set", fix="name one folder with data.path, or several with data.mixture")
        names = list(map(os.path.normpath, self.mixture))
        if doubled := [folder for i, folder in enumerate(self.mixture) if names[i] in names[:i]]:
            raise UserError(f"data.mixture names {doubled[0]} twice", fix="name it once, and set data.weights")
        if self.weights and len(self.weights) != len(self.mixture):
            fix = "give each its weight" if self.mixture else "leave data.weights out"
            raise UserError(f"data.weights has {len(self.weights)} numbers and data.mixture {len(self.mixture)} folders", fix=fix)
        if self.weights and not any(self.weights):
            raise UserError(f"data.weights is {self.weights}", fix="it takes positive numbers")

    def of_length(self, length: int) -> "DataConfig":
        """These settings for rows of at most `length` tokens."""
        return dataclasses.replace(self, length=length, lengths=tuple(one for one in self.lengths if one <= length))

    @property
    def row_lengths(self) -> tuple[int, ...]:
        """The lengths that rows have, rising: `lengths` where rows are bucketed, else `length` alone."""
        return self.lengths if self.rows == "bucketed" else (self.length,)

    @property
    def folders(self) -> tuple[str, ...]:
        """All data folders: those of the mixture, or the one of `path`; () if neither is set."""
        return self.mixture or (self.path,) * bool(self.path)

    @property
    def named(self) -> str:
        """The folders, as messages name them."""
        return " + ".join(self.folders)

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        others = {name for names in SHAPED_BY.values() for name in names} - set(SHAPED_BY.get(self.rows, ()))
        out = dict.fromkeys([f"data.{name}" for name in sorted(others)], f"data.rows={self.rows} does not read it")
        if not self.mixture:
            out |= dict.fromkeys(("data.weights", "data.exponent"), "data.mixture is not set")
        return out | ({"data.exponent": "data.weights gives the shares"} if self.weights else {})


class Source(Protocol):
    """Rows that can be asked for in any order. len: rows in an epoch; it never changes.

    fingerprint: of the data and of the settings that shape a row; fields: names of what a batch holds; length: tokens in a row.
    """

    fingerprint: str
    fields: tuple[str, ...]
    length: int

    def __len__(self) -> int: ...

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """The rows `indices` (int64 [n]) of an epoch. Pure: equal arguments give equal rows in any process."""
        ...


def fields(shards: Shards, *own: str) -> tuple[str, ...]:
    """The fields of a source's rows: those that all sources have, and its `own`. Data without the starts of words has no `word_starts`."""
    return ("tokens", "types", "segments", "positions", "index", "epoch", *["word_starts"] * shards.manifest.has_words, *own)


def laid(
    table: Concatenation | Bits, shape: tuple[int, int], pad: int, at: np.ndarray, starts: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """An i32 array of `shape`, filled with `pad`, with copies of runs of `table`: sizes[i] items from starts[i] on, from place at[i] of the
    flattened array on. at, starts, sizes: int64 [runs], at in rising order.

    The first two runs of a row are copied as windows as long as the row, ten times faster than by an index for each place.
    """
    out, (rows, length) = np.full(shape, pad, np.int32), shape
    row, column = np.divmod(at, length)
    number = np.arange(len(row)) - np.searchsorted(row, row)
    for nth in (0, 1):
        runs = np.flatnonzero(number == nth)
        if not len(runs):
            return out
        begin, size = column[runs], sizes[runs]
        if len(runs) == rows and (begin == begin[0]).all() and (size == size[0]).all():
            out[:, begin[0] : begin[0] + size[0]] = table.window(starts[runs], int(size[0]))
            continue
        places = np.arange(length, dtype=np.int32)
        first, last = (at.astype(np.int32)[:, None] for at in (begin, begin + size))
        inside = (places >= first) & (places < last)
        window = table.window(starts[runs] - begin, length)
        if len(runs) == rows:
            np.copyto(out, window, where=inside)
        else:
            out[row[runs]] = np.where(inside, window, out[row[runs]])
    more = number > 1
    out.reshape(-1)[ranges(at[more], sizes[more])] = table.take(ranges(starts[more], sizes[more]))
    return out


def framed(length: int, epoch: int, indices: np.ndarray, used: np.ndarray) -> Batch:
    """The fields that follow from the number of places `used` (int64 [n]) at the front of each row: segments, positions, index, epoch."""
    places = np.arange(length, dtype=np.int32)
    segments = (places < used[:, None].astype(np.int32)).astype(np.int32)
    return {
        "segments": segments,
        "positions": segments * places,
        "index": np.asarray(indices, np.uint32),
        "epoch": np.full(len(indices), epoch, np.uint32),
    }


def framed_texts(shards: Shards, length: int, epoch: int, indices: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> Batch:
    """The rows `indices` of an epoch, one run of tokens each: CLS, the sizes[i] tokens from starts[i] on, SEP, padding. Of a vocabulary
    without CLS or SEP the tokens and padding alone. indices, starts, sizes: int64 [n]."""
    vocabulary, ends = shards.manifest.tokenizer, int(shards.manifest.tokenizer.frames)
    shape, begins = (len(indices), length), np.arange(len(indices)) * length

    def row(table: Concatenation | Bits, pad: int, begin: int, end: int) -> np.ndarray:
        out = laid(table, shape, pad, begins + ends, starts, sizes)
        if ends:
            out[:, 0], out.reshape(-1)[begins + sizes + 1] = begin, end
        return out

    tokens = row(shards.tokens, vocabulary.pad, vocabulary.cls, vocabulary.sep)
    out = {"tokens": tokens, "types": np.zeros_like(tokens), **framed(length, epoch, indices, sizes + 2 * ends)}
    if shards.manifest.has_words:
        out["word_starts"] = row(shards.words, 0, 1, 1)
        out["word_starts"][:, ends] = 1
    return out
