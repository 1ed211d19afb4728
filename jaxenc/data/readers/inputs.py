"""From the names after --input to sources: files, folders, patterns, pipes, URLs, saved datasets; in order, each once."""

import collections
import glob
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxenc import storage
from jaxenc.data import docstrings, folders, remote
from jaxenc.data.readers import saved, tfds
from jaxenc.data.readers.archives import is_hidden, is_skipped
from jaxenc.data.readers.document import Counts, Reading
from jaxenc.data.readers.sources import READABLE, Docstrings, File, Source, TfdsSplit
from jaxenc.data.readers.streams import BLOCK
from jaxenc.errors import UserError
from jaxenc.files import user_errors

STDIN = "-"
_TOKENIZER = frozenset(
    (
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json", "merges.txt"),
        *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    )
)
_STREAMS = ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")


def inputs(names: Sequence[str], reading: Reading, counts: Counts) -> tuple[Source, ...]:
    """The sources of `names`, in order. A file that is named twice, by any path, is read once.

    A name is a file; a folder, whose files are read in the order of their paths; a pattern (`*`, `?`, `[...]`, `**` for folders of any
    depth), unless a file has that very name; `-` for the standard input; a dataset that `datasets` saved, DIR or DIR:SPLIT; a URL (gs://,
    s3://, hf://, https://, ...), copied first (`remote.staged`); tfds:NAME[/CONFIG][:VERSION][:SPLIT]; or `docstrings`. Pipes are copied
    to the disk first (TMPDIR), since they can be read only once. Files that folders and patterns skip are counted.

    Raises UserError for `names` that are not a list of str, a name without a file, an empty file, a folder without text, and what cannot be
    read.
    """
    if isinstance(names, str | Path):  # the letters of a path, such as `/`, name folders of their own
        raise UserError("takes a list of inputs", f"--input {names}", "give [name] for a single one")
    if not names:
        raise UserError("no file is named", "--input", "name files, or use --input docstrings for the documentation of this Python")
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"is a {type(name).__name__}", f"--input {name}", "give each name as a str")
    out: list[Source] = []
    seen: set[str] = set()
    for name in names:
        found, skipped = 0, counts.skipped_files + counts.empty_files
        if _is_stdin(name) and STDIN in seen:  # it has been read to its end
            counts.repeated_files += 1
            continue
        for key, source in _sources(name, reading, counts):
            found += 1
            counts.repeated_files += key in seen
            if key not in seen:
                seen.add(key)
                out.append(source)
        if not found:
            skipped = counts.skipped_files + counts.empty_files - skipped
            raise UserError(
                f"holds no text: {skipped:,} files were skipped, which are empty, hidden or not text by their name",
                name,
                "name a folder with text in it",
            )
    return tuple(out)


def check_file(name: str) -> None:
    """Raises UserError if `name` is not a file, or is an empty one."""
    path = Path(name)
    if path.is_dir():
        raise UserError("is a folder", name, "name a file in it")
    if not path.exists():
        raise UserError("no such file", name, "check the path")
    if path.is_file() and path.stat().st_size == 0:
        raise UserError("is empty", name, "remove it from --input")


def _sources(name: str, reading: Reading, counts: Counts) -> Iterator[tuple[str, Source]]:
    """(key, source) of each source that one name stands for. Sources with the same key are the same file or dataset."""
    if name == docstrings.NAME:
        yield name, Docstrings()
    elif name.startswith(tfds.PREFIX):
        yield name, TfdsSplit(name, tfds.size(name, reading.tfds_dir), reading.tfds_dir)
    elif storage.is_url(name):
        yield from _at_url(name, counts)
    elif saved.is_saved(name):
        yield from ((os.path.realpath(path), _file(path)) for path in saved.files(name))
    elif os.path.isdir(name):
        yield from _in_folder(name, counts)
    elif not os.path.lexists(name) and name != STDIN and glob.has_magic(name):
        yield from _matching(name, counts)
    else:
        yield _named(name)


def _at_url(name: str, counts: Counts) -> Iterator[tuple[str, Source]]:
    """The files that a URL stands for, each copied to this machine. Of several, those are skipped that a folder here would skip."""
    urls = remote.found(name)
    made, paths = _made_at(urls), [url.partition("://")[2] for url in urls]
    # The folders above all of the files may be hidden, as they may above a folder here.
    above = os.path.commonpath(paths)
    for url, path in zip(urls, paths, strict=True):
        if len(urls) > 1 and (is_skipped(path.removeprefix(above)) or url.startswith(made)):
            counts.skipped_files += 1
            continue
        copy = remote.staged(url, remote.folder())
        if copy.size or len(urls) == 1:
            yield url, File(url, copy.size, str(copy.path))
        counts.empty_files += not copy.size


def _is_stdin(name: str) -> bool:
    return name == STDIN or name in _STREAMS


def _named(name: str) -> tuple[str, Source]:
    if _is_stdin(name):
        return STDIN, _copied(name, 0)
    check_file(name)
    with user_errors(name, READABLE):
        kind = os.stat(name).st_mode
        if stat.S_ISREG(kind):
            return os.path.realpath(name), _file(name)
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            raise UserError("is a device", name, "name a file or a pipe")
        number = os.open(name, os.O_RDONLY)
        try:
            return os.path.abspath(name), _copied(name, number)
        finally:
            os.close(number)


def _file(name: str) -> File:
    """The file `name`. Messages escape the bytes of its name that are not UTF-8."""
    with user_errors(name, READABLE):
        return File(os.fsencode(name).decode("utf-8", "backslashreplace"), os.path.getsize(name), name)


def _copied(name: str, number: int) -> File:
    """The content of the pipe with file descriptor `number`, as an unlinked file: it disappears when this process ends or is killed."""
    with user_errors(name, "make room in the folder for temporary files, or name another one in TMPDIR"):
        with tempfile.TemporaryFile() as copy:
            while block := os.read(number, BLOCK):
                copy.write(block)
            copy.flush()
            kept = os.dup(copy.fileno())
        size = os.fstat(kept).st_size
    if not size:
        raise UserError("is empty", name, "check the command that writes to it")
    process = f"/proc/{os.getpid()}/fd"
    return File(name, size, f"{process if os.path.isdir(process) else '/dev/fd'}/{kept}")


def _matching(pattern: str, counts: Counts) -> Iterator[tuple[str, Source]]:
    found = sorted(glob.glob(pattern, recursive=True), key=os.fsencode)
    if not found:
        raise UserError("no file has such a name", pattern, "check the pattern")
    # With ** a folder and the files in it both match.
    below = {path for path in found if os.path.isdir(path)} if "**" not in pattern else set()
    for path in found:
        if path in below:
            yield from _in_folder(path, counts)
        elif not os.path.isdir(path):
            yield from _kept(path, counts)


def _in_folder(folder: str, counts: Counts) -> Iterator[tuple[str, Source]]:
    """The files below a folder, sorted; a folder that a link leads to is entered once, and what jaxenc made is skipped."""
    if _is_data(folder):
        raise UserError("is a folder of `jaxenc data`, which holds tokens and no text", folder, "name the text that it was made from")
    paths: list[str] = []
    entered: set[str] = set()
    pending = [folder]
    with user_errors(folder, READABLE):
        while pending:
            here = pending.pop()
            if os.path.realpath(here) in entered:
                continue
            entered.add(os.path.realpath(here))
            for entry in sorted(os.listdir(here), key=os.fsencode):
                path = os.path.join(here, entry)
                if not os.path.isdir(path):
                    paths.append(path)
                elif is_hidden(entry) or _is_made(path):
                    counts.skipped_files += 1
                elif saved.is_saved(path):
                    paths += saved.files(path)
                else:
                    pending.append(path)
    links = {os.path.realpath(path) for path in paths if os.path.islink(path)}
    for path in sorted(paths, key=os.fsencode):
        # Hugging Face's cache stores files under their checksums, with links that have the names; the names say what the files are.
        if "." in os.path.basename(path) or os.path.islink(path) or os.path.realpath(path) not in links:
            yield from _kept(path, counts)


def _is_data(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "manifest.json")) and os.path.isdir(os.path.join(folder, "tokenizer"))


def _is_made(folder: str) -> bool:
    """Whether a folder among the text is a tokenizer, data or a run of jaxenc: its files are not text, though some look like it."""
    if _is_data(folder) or folders.is_run(Path(folder)):
        return True
    return os.path.isfile(os.path.join(folder, "tokenizer.json")) and _TOKENIZER.issuperset(os.listdir(folder))


def _made_at(urls: Sequence[str]) -> tuple[str, ...]:
    """Those of the folders above `urls` that are a tokenizer, data or a run by the names in them, each with a slash at its end."""
    held: dict[str, set[str]] = collections.defaultdict(set)  # {folder: names in it}
    for url in urls:
        parts = url.split("/")
        for depth in range(3, len(parts)):  # before them are the scheme, what is between its slashes, and the bucket
            held["/".join(parts[:depth])].add(parts[depth])
    steps = {folder.rpartition("/")[0] for folder, names in held.items() if "CHECKSUMS.json" in names}
    is_made = lambda folder, names: (
        {"manifest.json", "tokenizer"} <= names
        or {"config.json", "metrics.jsonl"} <= names
        or f"{folder}/checkpoints" in steps
        or ("tokenizer.json" in names and names <= _TOKENIZER)
    )
    return tuple(f"{folder}/" for folder, names in held.items() if is_made(folder, names))


def _kept(path: str, counts: Counts) -> Iterator[tuple[str, Source]]:
    with user_errors(path, "check that the file can be read, or that the link leads to a file"):
        facts = os.stat(path)
    if is_skipped(os.path.basename(path)) or not stat.S_ISREG(facts.st_mode):
        counts.skipped_files += 1
    elif not facts.st_size:
        counts.empty_files += 1
    else:
        yield os.path.realpath(path), _file(path)
