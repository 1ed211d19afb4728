"""Builds a data folder from text: tokens in flat shards, tables of documents and sentences, and held-out documents apart."""

import contextlib
import dataclasses
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from jaxenc.data import beam, characters, groups, held_out, local, manifest, readers, report, tokenizers, unfinished
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.facts import Facts
from jaxenc.data.folders import is_data, must_be_named, must_be_new
from jaxenc.data.groups import Text
from jaxenc.data.manifest import SPLITS, File, Input, Manifest, Split
from jaxenc.data.pieces import Work, path
from jaxenc.data.readers import Counts, Document, Progress, Reading
from jaxenc.data.shard_writer import NextShard, write_shard
from jaxenc.data.unfinished import Unfinished
from jaxenc.data.workers import AHEAD, Here, check_workers, pool
from jaxenc.errors import UserError
from jaxenc.files import sha256, user_errors
from jaxenc.progress import BYTES, Bar, Bars

GROUP_CHARACTERS = 1 << 19
ALL_KEPT = Duplicates()


def build(
    inputs: Sequence[str],
    tokenizer: str | Path,
    out: str | Path,
    held_out: float = held_out.SHARE,
    workers: int = 1,
    reading: Reading = Reading(),
    duplicates: Duplicates = ALL_KEPT,
    beam_options: Sequence[str] | None = None,
) -> Manifest:
    """Tokenises `inputs` (see readers.inputs) into the folder `out` and returns its manifest.

    tokenizer: a folder that tokenizers.load opens; its files are copied. held_out: the share of documents, chosen by a hash of their
    text, that form the split `held_out`; more in a small corpus, see data/held_out.py. workers: processes that tokenise, with one thread
    each. reading: how inputs become documents. duplicates: which of them are dropped. beam_options: of an Apache Beam pipeline that
    tokenises instead of the workers; None runs it here. The bytes written are the same for any number of workers and with Beam, because
    the work is cut by the size of the text. Processes are spawned, unless the text is a single group, so a script must call this under
    its __main__ guard.

    The folder appears complete or not at all, and one that already holds the same request is kept. Until it appears, finished parts are
    kept next to it, and the same call continues from there: see data/unfinished.py. Raises UserError for input that cannot be read or
    changes while it is read, no text, no permission, a full disk, and an `out` that holds something else.
    """
    if not 0 <= held_out < 1:
        raise UserError("not a share", f"--held-out {held_out}", "use 0 or more and less than 1")
    check_workers(workers)
    out, tool = must_be_named(out, "--out"), tokenizers.load(must_be_named(tokenizer, "--tokenizer"))
    holds_data = is_data(out)
    if not holds_data:
        must_be_new(out, "--out")
    counts = Counts()
    text = Text(readers.inputs(inputs, reading, counts), reading)
    dtype = "uint16" if tool.vocabulary.ids <= 1 << 16 else "uint32"
    versions = [source.version() for source in text.sources]
    with Bars().shown("data: checksums of the inputs", sum(source.size for source in text.sources), BYTES) as bar:
        found = tuple(_identified(source, reading, bar) for source in text.sources)
    asked = {"duplicates": duplicates.asked} if duplicates.asked else {}
    request = Manifest(manifest.VERSION, found, held_out, tool.vocabulary, {}, dtype, {}, {}, asked)
    if holds_data:
        return _kept(out, request)
    for other in unfinished.others(out.resolve(), request.request):
        print(
            f"data: {other} is an unfinished build of another request or jaxenc; it is left alone, delete it if it is not needed",
            file=sys.stderr,
        )
    with user_errors(out, "free some space or choose another folder"), unfinished.opened(out, request.request) as folder:
        if before := folder.count():
            print(f"data: {before:,} group{'s were' if before > 1 else ' was'} finished before", file=sys.stderr)
        tool.save(folder.new / "tokenizer")
        if (table := tool.characters()) is not None:
            np.save(folder.new / characters.NAME, table)
        result = _fill(folder, request, text, counts, duplicates, workers, beam_options)
        _must_be_unchanged(folder, request, text, versions)
        manifest.write(result, folder.new)
    return result


def _identified(source: readers.Source, reading: Reading, bar: Bar) -> Input:
    found = Input(source.name, source.size, reading.identity(source.identity()))
    bar.add(source.size)
    return found


def _must_be_unchanged(folder: Unfinished, request: Manifest, text: Text, versions: Sequence[str]) -> None:
    """Raises UserError, and forgets what was made, where an input is no longer what `request` says. versions: from before it was read."""
    for source, version, was in zip(text.sources, versions, request.inputs, strict=True):
        # A file that was only touched is the same.
        if source.version() != version and text.reading.identity(source.identity()) != was.sha256:
            folder.clear()
            raise UserError("changed while it was read", source.name, "run the command again when nothing writes to it any more")


def _kept(out: Path, request: Manifest) -> Manifest:
    present = manifest.read(out)
    if present.version != request.version:
        raise UserError("holds data of an older jaxenc, without the starts of words", out, "choose another --out or delete it")
    if present.request != request.request:
        raise UserError(
            "holds data of other inputs, another tokenizer, another --held-out or another --drop-duplicates",
            out,
            "choose another --out or delete it",
        )
    print(f"{out}: holds this data already; nothing to do", file=sys.stderr)
    if present.rules != request.rules:
        what = f"made by an older jaxenc, which encodes text without blanks between sentences (Burmese, Chinese) by rules {present.rules}"
        print(f"data: warning: {out} was {what}, not {request.rules}; delete it and run the command again to change that", file=sys.stderr)
    unfinished.remove(out, request.request)
    return present


def _fill(
    folder: Unfinished,
    request: Manifest,
    text: Text,
    found: Counts,
    rule: Duplicates,
    workers: int,
    beam_options: Sequence[str] | None,
) -> Manifest:
    """Fills `folder.new` except for the manifest, which is returned. found: the counts of finding the sources."""
    passes: list[tuple[Counts, Progress]] = []

    # Closes the files of a pass that stops early.
    with contextlib.ExitStack() as opened:

        def read() -> Iterator[Document]:
            passes.append((dataclasses.replace(found), readers.progress_of(text.sources)))
            return opened.enter_context(contextlib.closing(text.documents(*passes[-1])))

        limit, documents = held_out.scanned(read, request.held_out)
        counts, progress = passes[-1]
        work = Work(str(folder.new / "tokenizer"), str(folder.pieces), limit, request.dtype)
        if beam_options is None:
            cut = groups.groups(readers.reported(documents, "data", progress), GROUP_CHARACTERS)
            first = list(itertools.islice(cut, 2))
            # A process takes longer to start than one group takes.
            with pool(workers) if len(first) > 1 else Here() as processes:
                pieces = local.run(itertools.chain(first, cut), folder, work, rule, processes, AHEAD * workers)
                _write_shards(folder, pieces, request.dtype, processes)
        else:
            counts = found + beam.run(text, folder, work, rule, GROUP_CHARACTERS, beam_options)
            with Here() as processes:
                _write_shards(folder, folder.all_found(), request.dtype, processes)
    return _described(folder, request, text, counts)


def _write_shards(folder: Unfinished, found: Iterable[tuple[str, dict[str, Facts]]], dtype: str, processes: Executor) -> None:
    """Writes each shard as soon as its pieces are finished. found: (name, facts by split) of the groups, in the order of the text."""
    shards = {split: NextShard() for split in SPLITS}

    def write(split: str, names: list[str]) -> None:
        name = f"{split}-{len(folder.finished[split].shards):05d}"
        paths = [path(folder.pieces, group, split) for group in names]
        folder.add(split, processes.submit(write_shard, folder.new, name, dtype, paths).result(), names)

    for name, facts in found:
        for split, own in facts.items():
            if names := shards[split].add(name, own.tokens):
                write(split, names)
    for split, rest in shards.items():
        if names := rest.take():
            write(split, names)


def _described(folder: Unfinished, request: Manifest, text: Text, counts: Counts) -> Manifest:
    """The manifest of a folder whose shards are written. Also writes the numbers of its report and prints warnings. Raises UserError when
    there is nothing to train on."""
    facts = {split: sum((shard.facts for shard in finished.shards), Facts()) for split, finished in folder.finished.items()}
    try:
        report.check(facts, [item.name for item in request.inputs])
    except UserError:
        folder.clear()
        raise
    warnings = [*report.warnings(facts, request.tokenizer, request.held_out), *filter(None, [readers.advice(text.sources, counts)])]
    for line in warnings:
        print(f"data: warning: {line}", file=sys.stderr)
    splits = {
        split: Split(
            *(getattr(facts[split], field.name) for field in dataclasses.fields(Split)[:-1]),
            tuple(shard.shard for shard in finished.shards if shard.shard.tokens),
        )
        for split, finished in folder.finished.items()
    }
    files = {name: file for finished in folder.finished.values() for shard in finished.shards for name, file in shard.files.items()}
    for one in folder.new.rglob("*"):
        if one.is_file() and (name := one.relative_to(folder.new).as_posix()) not in files:
            files[name] = File(one.stat().st_size, sha256(one))
    result = dataclasses.replace(
        request, reader=dataclasses.asdict(counts), splits=splits, files={name: files[name] for name in sorted(files)}
    )
    report.write_facts(folder.new, result, facts, warnings)
    return result
