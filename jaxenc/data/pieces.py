"""Tokenises groups of documents to pieces, the tokens of each split, and stores them as files. Any process can make any piece."""

import contextlib
import dataclasses
import functools
import itertools
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from jaxenc.data import facts, held_out, lost, tokenizers
from jaxenc.data.facts import Facts
from jaxenc.data.groups import Group
from jaxenc.data.manifest import SPLITS
from jaxenc.data.tokenizers import line_ids, marks
from jaxenc.data.tokenizers.lines import batches
from jaxenc.errors import UserError
from jaxenc.files import npz, written

SAMPLE = 1 << 14  # characters of each group in which marks are counted
FEW = 1 << 12  # characters of that sample in which scripts are counted, which is slower; and of lines with an unknown token


@dataclasses.dataclass(frozen=True)
class Piece:
    """The part of one group of documents that belongs to one split.

    tokens: ids, flat, uint16 or uint32; words: bool, whether each is the first token of its word; sentences: tokens of each sentence, i64;
    documents: sentences of each document, i64; facts: its numbers.
    """

    tokens: np.ndarray
    words: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray
    facts: Facts


@dataclasses.dataclass(frozen=True)
class Work:
    """What a process needs to make pieces. tokenizer, folder: of the tokenizer and of the pieces' files; limit: see `held_out.limit`;
    dtype: of the tokens."""

    tokenizer: str
    folder: str
    limit: int
    dtype: str


def make(work: Work, group: Group, dropped: Sequence[int] = ()) -> dict[str, Facts]:
    """Writes the pieces of a group to the folder of `work`; returns their facts by split. A killed process leaves whole files or none.

    dropped: numbers of the documents that are left out as duplicates.
    """
    pieces = of_group(group, _opened(work.tokenizer), work.limit, work.dtype, dropped)
    for split, piece in pieces.items():
        save(piece, path(work.folder, group.name, split))
    return {split: piece.facts for split, piece in pieces.items()}


@functools.lru_cache(maxsize=1)
def _opened(folder: str) -> tokenizers.Tokenizer:
    return tokenizers.load(folder)


def of_group(group: Group, tool: tokenizers.Tokenizer, limit: int, dtype: str, dropped: Sequence[int] = ()) -> dict[str, Piece]:
    """The pieces {split: piece} of one group of documents. Arguments as in `Work` and `make`."""
    parts: dict[str, list[tuple[str, ...]]] = {split: [] for split in SPLITS}
    sizes = dict.fromkeys(SPLITS, 0)
    left_out = set(dropped)
    kept = [lines for number, lines in enumerate(group.documents) if number not in left_out]
    for lines in kept:
        text = held_out.text_of(lines)
        split = SPLITS[held_out.hash_of(text) < limit]
        parts[split].append(lines)
        sizes[split] += len(text)
    out = {split: _piece(tool, part, dtype, Facts(text_bytes=sizes[split])) for split, part in parts.items()}
    sample = _sample(itertools.chain.from_iterable(kept), SAMPLE)
    more = facts.scripts(_sample(sample, FEW), tool) + Facts(marks=marks.count(sample, tool.written), duplicates=len(left_out))
    return out | {"train": dataclasses.replace(out["train"], facts=out["train"].facts + more)}


def _sample(lines: Iterable[str], most: int) -> list[str]:
    """The lines that `marks.sampled` chooses, of at most `most` characters."""
    sample: list[str] = []
    for _ in marks.sampled(lines, sample, most):
        pass
    return sample


def _piece(tool: tokenizers.Tokenizer, documents: Sequence[Sequence[str]], dtype: str, known: Facts) -> Piece:
    lines = [line for document in documents for line in document]
    encoded = [_encoded(tool, batch, dtype) for batch in batches(lines)] or [_encoded(tool, [], dtype)]
    tokens, words, lengths, sentences = (np.concatenate(arrays) for arrays in zip(*encoded, strict=True))
    line_ends = _sums(sentences)
    ends = line_ends[_sums([len(document) for document in documents])]
    kept = _sums(lengths > 0)[ends]
    counts = np.diff(kept)
    empty = int((counts == 0).sum())
    full, counts = lengths[lengths > 0], counts[counts > 0]
    starts = _sums(full)[_sums(counts)]
    unknown = tool.vocabulary.is_unknown(tokens)
    with_unknown = np.flatnonzero(np.diff(_sums(unknown)[_sums(lengths)[line_ends]]))
    own = Facts(
        documents=len(counts),
        sentences=len(full),
        tokens=len(tokens),
        unknown=int(unknown.sum()),
        single=int((counts == 1).sum()),
        empty_sentences=int((lengths == 0).sum()),
        empty_documents=empty,
        document_lengths=facts.lengths(np.diff(starts)),
        sentence_lengths=facts.lengths(full),
        removed=lost.removed(lines, tool.written),
        unknown_characters=lost.unknown(_sample((lines[at] for at in with_unknown.tolist()), FEW), tool),
    )
    return Piece(tokens, words, full, counts, known + own)


def _sums(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """i64 [n + 1]: 0 and the running sums of `counts`."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _encoded(tool: tokenizers.Tokenizer, lines: Sequence[str], dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(ids, whether each starts a word, bool; tokens of each sentence, i64; sentences of each line, i64)."""
    encoded, sentences = line_ids.encode(tool, lines)
    return encoded.tokens.astype(dtype), encoded.words, encoded.lengths, sentences


def path(folder: str | Path, name: str, split: str) -> Path:
    """The file of a split's piece of the group `name`."""
    return Path(folder) / f"{name}.{split}.npz"


def save(piece: Piece, path: Path) -> None:
    """Writes the file of a piece. A killed process leaves a whole file or none; after a power cut its checksums say whether it is whole.
    Raises OSError."""
    with written(path, durable=False) as temporary, npz(temporary) as store:
        store("tokens", piece.tokens)
        store("words", np.packbits(piece.words))
        store("sentences", piece.sentences.astype(np.uint32))
        store("documents", piece.documents.astype(np.uint32))
        store("facts", json.dumps(dataclasses.asdict(piece.facts)))


def load(path: Path) -> Piece:
    """The piece of a file. Raises UserError for a damaged one."""
    with _reading(path) as file:
        tokens, sentences, documents = (file[name] for name in ("tokens", "sentences", "documents"))
        words = np.unpackbits(file["words"], count=len(tokens)).astype(bool)
        return Piece(tokens, words, sentences.astype(np.int64), documents.astype(np.int64), _facts(file))


def load_facts(path: Path) -> Facts:
    """The facts of a file, without its tokens. Raises UserError as `load`."""
    with _reading(path) as file:
        return _facts(file)


def _facts(file: np.lib.npyio.NpzFile) -> Facts:
    return Facts.from_json(json.loads(str(file["facts"])))


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    try:
        with open(path, "rb") as raw, np.load(raw) as file:
            yield file
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"damaged ({error})", path, "delete it and run the command again") from error
