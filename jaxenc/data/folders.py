"""Which folders a command may write to. What is already there is named in the message and never overwritten."""

import contextlib
import fnmatch
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from jaxenc import cache, storage
from jaxenc.errors import UserError
from jaxenc.files import json_object, locked, user_errors
from jaxenc.storage import is_url, must_be_local

# Left in a folder by file systems, desktops, launchers, and runs that were killed during a write. A run never reads or changes them.
IGNORED = (
    ".DS_Store", "._*", ".nfs*", ".fuse_hidden*", ".snapshot", "lost+found", "Thumbs.db", "desktop.ini", ".gitignore", ".gitkeep",
    ".ipynb_checkpoints", "*.log", "*.out", "*.err", ".processes", ".config.json.*", ".manifest.json.*",
)  # fmt: skip
# Names in a run's checkpoints/: a step, a step that was set aside, a step that is being written or deleted.
STEP = re.compile(r"\d+|\d+\.bad-\d+|\.\d+\.tmp-(save|delete)")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin", "tf_model.h5")
SHOWN = 3  # names of files that a message shows


def must_be_new(out: Path, option: str) -> None:
    """Raises UserError, before any work is done, where `out` is not free: nothing or an empty folder, with no file above it.

    option: the name of `out` in messages, such as the command-line option that gives it.
    """
    must_be_local(out, option, storage.WRITE_HERE)
    with user_errors(out, f"choose another {option}"):
        if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
            raise UserError(f"exists already, {described(out)}", out, f"choose another {option}")
        _check_above(out, option)


@contextlib.contextmanager
def new_folder(out: str | Path, option: str) -> Iterator[Callable[[], Path]]:
    """A function that makes a new folder and returns it: `out`, or for a URL a folder in the cache, whose files are uploaded when the block
    ends without an error. Raises UserError, before any work is done, as `must_be_new`, and for a URL that cannot be written to."""
    if not is_url(out):
        must_be_new(Path(out), option)
        yield lambda: _made(Path(out), f"free some space or choose another {option}")
        return
    there = storage.folder(str(out))
    if found := there.names():
        raise UserError(f"exists already, {listed(found)}", there.url, f"choose another {option}")
    there.must_be_writable(option)
    here = cache.root() / "new" / cache.key(there.url)
    with locked(here, f"wait for it, or choose another {option}"):
        try:
            shutil.rmtree(here / "files", ignore_errors=True)  # left by a process that was killed
            yield lambda: _made(here / "files", storage.HERE)
            names = [path.relative_to(here / "files").as_posix() for path in (here / "files").rglob("*") if path.is_file()]
            storage.many(lambda name: there.upload(here / "files" / name, name), names)
        finally:
            shutil.rmtree(here / "files", ignore_errors=True)


def must_be_new_file(out: Path, option: str) -> None:
    """Raises UserError, before any work is done, where the file `out` cannot be made: something is there, or no folder that it can stand
    in, or a folder that is not to be changed; or `-`, by which standard output is meant. option: as in `must_be_new`."""
    must_be_local(out, option, storage.WRITE_HERE)
    if str(out) == "-":
        raise UserError("standard output is not what it writes to", f"{option} -", "name a file")
    with user_errors(out, f"choose another {option}"):
        if os.path.lexists(out):
            raise UserError(f"exists already, {described(out)}", out, f"choose another {option}")
        if not out.absolute().parent.is_dir():
            raise UserError("no such folder", out.parent, f"make it, or choose another {option}")
        _check_above(out, option)
        if not os.access(out.absolute().parent, os.W_OK):
            raise UserError("this folder may not be written to", out.parent, f"choose another {option}")


def must_hold_a_run(workdir: Path, option: str) -> None:
    """Raises UserError, before anything is written, where `workdir` is neither new, nor empty, nor a run directory of ours.

    A run that was killed at any moment is still a run. IGNORED names do not count. option: as in `must_be_new`.
    """
    must_be_local(workdir, option, storage.AS_TEXT)
    with user_errors(workdir, f"choose another {option}"):
        if os.path.lexists(workdir) and not (workdir.is_dir() and (is_run(workdir) or _is_begun(workdir))):
            raise UserError(f"exists already, {described(workdir)}, and is not a run directory", workdir, f"choose another {option}")
        _check_above(workdir, option)


def must_hold_only(workdir: Path, names: Collection[str], option: str) -> None:
    """Raises UserError, before anything is written, where `workdir` exists and holds anything but `names` and IGNORED ones. names: patterns
    of `fnmatch`."""
    must_be_local(workdir, option, storage.WRITE_HERE)
    with user_errors(workdir, f"choose another {option}"):
        if os.path.lexists(workdir) and not (workdir.is_dir() and all(matches(name, names) for name in _names(workdir))):
            raise UserError(f"exists already, {described(workdir)}", workdir, f"choose another {option}")
        _check_above(workdir, option)


def must_be_named(path: str | Path, option: str) -> Path:
    """`path`. Raises UserError for the empty name, which would mean the current folder. option: as in `must_be_new`."""
    if not str(path):
        raise UserError("empty", option, "name a folder")
    return Path(path)


def is_run(folder: Path) -> bool:
    """Whether `folder` is a run directory of ours: its checkpoints/ holds a step, or its config.json is a run's."""
    return not is_checkpoint(folder) and (_is_steps(folder / "checkpoints") or _has_run_config(folder))


def is_checkpoint(folder: Path) -> bool:
    """Whether `folder` is one step's checkpoint."""
    return (folder / "CHECKSUMS.json").is_file()


def is_run_config(content: bytes) -> bool:
    """Whether the content of a config.json is a run's: it has the parts `objective` and `model`, which one of transformers has not."""
    try:
        data = json_object(content)
    except ValueError:
        return False
    return all(isinstance(data.get(part), dict) for part in ("objective", "model"))


def matches(name: str, patterns: Collection[str]) -> bool:
    """Whether a name matches one of `patterns`, those of `fnmatch`."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def is_ignored(name: str) -> bool:
    """Whether a name is one of IGNORED."""
    return matches(name, IGNORED)


def is_data(folder: Path) -> bool:
    """Whether `folder` is one that `jaxenc data` made; its manifest is not read."""
    return _has(folder, "manifest.json") and _has(folder, "*.tokens")


def described(path: Path) -> str:
    """What is at `path`, for a message: `a data folder`, `a file`, `a folder with a.txt, b.txt and 7 more`, ..."""
    if path.is_symlink() and not path.exists():
        return "a link to nothing"
    if not path.is_dir():
        return "a file"
    kinds: tuple[tuple[Callable[[Path], bool], str], ...] = (
        (is_checkpoint, "one checkpoint of a run"),
        (is_run, "the directory of a run"),
        (_is_steps, "the checkpoints of a run"),
        (is_data, "a data folder"),
        (lambda folder: _has(folder, "config.json") and _has(folder, *WEIGHTS), "a model of transformers"),
        (lambda folder: _has(folder, "*options.json") and _has(folder, "*weights.hdf5"), "a model of AllenNLP"),
        (lambda folder: _has(folder, *TOKENIZERS), "a tokenizer folder"),
    )
    return next((words for holds, words in kinds if holds(path)), _contents(path))


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return listed(names) if names else "an empty folder"


def listed(names: Sequence[str]) -> str:
    """`a folder with a.txt, b.txt, c.txt and 7 more`, for a message about a folder with the files `names`."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"a folder with {', '.join(names[:SHOWN])}{more}"


def _made(folder: Path, advice: str) -> Path:
    with user_errors(folder, advice):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_above(path: Path, option: str) -> None:
    """Raises UserError where a file, or the checkpoints of a run, are above `path`."""
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise UserError("a file and not a folder", above, f"choose another {option}")
    for parent in Path(os.path.realpath(path)).parents:
        if is_checkpoint(parent) or _is_steps(parent):
            raise UserError(f"inside {parent}, the checkpoints of a run", path, f"choose another {option}")


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not is_ignored(path.name)}


def _has(folder: Path, *patterns: str) -> bool:
    return any(path.is_file() for pattern in patterns for path in folder.glob(pattern))


def _is_begun(folder: Path) -> bool:
    """Whether `folder` is empty or holds only a run's folders: checkpoints/ with names of STEP, and tensorboard/, which a run adds to."""
    steps = _names(folder / "checkpoints") if (folder / "checkpoints").is_dir() else ()
    return not _names(folder) - {"checkpoints", "tensorboard"} and all(STEP.fullmatch(name) for name in steps)


def _is_steps(folder: Path) -> bool:
    """Whether `folder` holds checkpoints and nothing else. Numbered folders of another kind, such as runs, do not count."""
    names = _names(folder) if folder.is_dir() else set()
    return all(STEP.fullmatch(name) for name in names) and any(not name.isdigit() or is_checkpoint(folder / name) for name in names)


def _has_run_config(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return is_run_config((folder / "config.json").read_bytes())
    return False
