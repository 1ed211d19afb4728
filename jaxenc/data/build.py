"""Text to a data folder: tokens in flat shards, documents and sentence boundaries kept, held-out documents apart."""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from jaxenc.data import characters, docstrings, manifest, readers, tokenizers
from jaxenc.data.folders import is_data, must_be_named, must_be_new
from jaxenc.data.manifest import SPLITS, File, Input, Manifest
from jaxenc.data.readers import Document
from jaxenc.data.shard_writer import Piece, ShardWriter
from jaxenc.data.tokenizers import marks
from jaxenc.data.tokenizers.marks import Marks
from jaxenc.data.workers import pool
from jaxenc.errors import UserError
from jaxenc.files import made, sha256, user_errors

GROUP_CHARACTERS = 1 << 19
UNKNOWN_LIMIT = 0.05
MARKS_SAMPLE = 1 << 14  # characters of each group in which marks are counted


def build(inputs: Sequence[str], tokenizer: str | Path, out: str | Path, held_out: float = 0.01, workers: int = 1) -> Manifest:
    """Tokenises `inputs` (see readers.documents) into the folder `out` and returns its manifest.

    tokenizer: a folder that tokenizers.load opens; its files are copied. held_out: the share of documents, chosen by a hash of their
    text, that form the split `held_out`. workers: processes that tokenise, with one thread each; the bytes written are the same for
    any number, because the work is cut by the size of the text. Processes are spawned, but for a text of a single group: a script calls
    this under its __main__ guard.

    The folder appears complete or not at all. One that holds the same request already is kept.
    Raises UserError for input that cannot be read, no text, no permission, a full disk, and an `out` that holds something else.
    """
    if not 0 <= held_out < 1:
        raise UserError(f"--held-out {held_out}: takes a share from 0 to below 1")
    if workers < 1:
        raise UserError(f"--workers {workers}: takes 1 or more")
    out, tool = must_be_named(out, "--out"), tokenizers.load(must_be_named(tokenizer, "--tokenizer"))
    holds_data = is_data(out)
    if not holds_data:
        must_be_new(out, "--out")
    request = Manifest(
        manifest.VERSION,
        tuple(_input(name) for name in inputs),
        held_out,
        tool.vocabulary,
        {},
        "uint16" if tool.vocabulary.ids <= 1 << 16 else "uint32",
        {},
        {},
    )
    if holds_data:
        return _kept(out, request)
    with made(out) as folder:
        tool.save(folder / "tokenizer")
        if (table := tool.characters()) is not None:
            np.save(folder / characters.NAME, table)
        result = _fill(folder, request, readers.Counts(), str(folder / "tokenizer"), workers, inputs)
        manifest.write(result, folder)
    return result


def _input(name: str) -> Input:
    if name == docstrings.NAME:
        return Input(name, 0, docstrings.identity())
    if not name.startswith("tfds:"):
        readers.check_file(name)
        with user_errors(name, "check that the file can be read"):
            return Input(name, os.path.getsize(name), sha256(Path(name)))
    raise UserError(f"{name}: reading from tensorflow_datasets comes later; export its text as .jsonl")


def _kept(out: Path, request: Manifest) -> Manifest:
    present = manifest.read(out)
    if present.version != request.version:
        raise UserError(f"{out}: holds data of an older jaxenc, without the starts of words; choose another --out or delete it")
    if present.request != request.request:
        raise UserError(f"{out}: holds data of other inputs, another tokenizer or another --held-out; choose another --out or delete it")
    print(f"{out}: holds this data already; nothing to do", file=sys.stderr)
    return present


def _fill(folder: Path, request: Manifest, counts: readers.Counts, tokenizer: str, workers: int, inputs: Sequence[str]) -> Manifest:
    groups = _groups(readers.watched(readers.documents(inputs, counts), "data"))
    first = list(itertools.islice(groups, 2))
    rule = {"held_out": request.held_out, "dtype": request.dtype}
    if len(first) < 2:
        # A process takes longer to start than one group takes.
        found = map(functools.partial(_tokenise, tool=tokenizers.load(tokenizer), **rule), first)
    else:
        found = _in_order(functools.partial(_in_worker, tokenizer=tokenizer, **rule), itertools.chain(first, groups), workers)
    lost = Marks()
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(contextlib.closing(ShardWriter(folder, split, request.dtype))) for split in SPLITS]
        for pieces in found:
            for writer, piece in zip(writers, pieces, strict=True):
                writer.add(piece)
                lost += piece.marks
    splits = {split: writer.total for split, writer in zip(SPLITS, writers, strict=True)}
    total, unknown = (sum(getattr(split, name) for split in splits.values()) for name in ("tokens", "unknown"))
    if not total:
        raise UserError(
            f"{', '.join(inputs)}: no token came out of {sum(s.empty_documents for s in splits.values())} documents; "
            "check the text and the tokenizer"
        )
    if unknown > UNKNOWN_LIMIT * total:
        advice = "check that the tokenizer fits the text (lower case, accents, script)"
        what = f"predicted as unknown; {advice} and has enough words" if request.tokenizer.words else f"[UNK]; {advice}"
        print(f"data: warning: {unknown / total:.1%} of the tokens are {what}", file=sys.stderr)
    if lost.many:
        advice = "use one made for this script, or make one with `jaxenc tokenizer`, which keeps marks"
        print(f"data: warning: the tokenizer drops {lost.summary}: {advice}", file=sys.stderr)
    files = {
        path.relative_to(folder).as_posix(): File(path.stat().st_size, sha256(path)) for path in sorted(folder.rglob("*")) if path.is_file()
    }
    return dataclasses.replace(request, reader=dataclasses.asdict(counts), splits=splits, files=files)


def _groups(found: Iterable[Document]) -> Iterator[list[tuple[str, ...]]]:
    """Documents in lots of about GROUP_CHARACTERS: the unit of work, whatever the number of workers."""
    group: list[tuple[str, ...]] = []
    size = 0
    for document in found:
        group.append(document.lines)
        size += sum(map(len, document.lines))
        if size >= GROUP_CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _in_order(work, groups: Iterable[list], workers: int) -> Iterator[tuple[Piece, Piece]]:
    """Results of `work` in the order of the groups; at most three groups a worker are under way, so memory stays flat."""
    waiting: collections.deque = collections.deque()
    with pool(workers) as processes:
        for group in groups:
            waiting.append(processes.submit(work, group))
            if len(waiting) >= 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@functools.cache
def _opened(folder: str) -> tokenizers.Tokenizer:
    return tokenizers.load(folder)


def _in_worker(group: Sequence[tuple[str, ...]], tokenizer: str, held_out: float, dtype: str) -> tuple[Piece, Piece]:
    """`_tokenise` with the tokenizer in a folder, which each worker process opens once."""
    return _tokenise(group, _opened(tokenizer), held_out, dtype)


def _tokenise(group: Sequence[tuple[str, ...]], tool: tokenizers.Tokenizer, held_out: float, dtype: str) -> tuple[Piece, Piece]:
    """The pieces (train, held_out) of one group of documents."""
    parts: tuple[list, list] = ([], [])
    for lines in group:
        parts[_is_held_out(lines, held_out)].append([s for line in lines for s in tool.sentences(line)])
    train, held = (_piece(tool, part, dtype) for part in parts)
    sample: list[str] = []
    collections.deque(marks.sampled(itertools.chain.from_iterable(group), sample, MARKS_SAMPLE), maxlen=0)
    return dataclasses.replace(train, marks=marks.count(sample, tool.written)), held


def _is_held_out(lines: Sequence[str], share: float) -> bool:
    """By a hash of the text: the same document falls on the same side in every corpus."""
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < share * 2**64


def _piece(tool: tokenizers.Tokenizer, documents: Sequence[Sequence[str]], dtype: str) -> Piece:
    encoded = tool.encode_flat([sentence for document in documents for sentence in document])
    lengths = encoded.lengths
    ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
    kept = np.concatenate([[0], np.cumsum(lengths > 0)])[np.concatenate([[0], ends])]
    counts = np.diff(kept)
    tokens = encoded.tokens.astype(dtype)
    return Piece(
        tokens,
        encoded.words,
        lengths[lengths > 0],
        counts[counts > 0],
        int(((tokens == tool.vocabulary.unk) | (tokens >= tool.vocabulary.size)).sum()),
        int((lengths == 0).sum()),
        int((counts == 0).sum()),
    )
