"""Whether the bytes of a checkpoint are the bytes that were written, and which step to restore.

Orbax has no checksum over contents: a flipped bit restores as another number (measured: 240 of 240). So every file is listed in
CHECKSUMS.json with its size and sha256, and a step that disagrees is set aside, never deleted and never restored.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxenc.errors import UserError, one_line
from jaxenc.files import flush, inside, json_object, sha256, write_bytes

Entry = dict[str, Any]  # {"size": in bytes, "sha256": of the bytes} of a file
Entries = Mapping[str, Entry]
CHECKSUMS = "CHECKSUMS.json"
STATE = "state"  # the folder of a step with its arrays
CHECKPOINTS, FROZEN = "checkpoints", "frozen"  # the folders of a run directory with its steps, and with parameters that never change
FORMAT = 1
READERS = 4
LEFT = "left where it is"


def write_checksums(folder: Path, step: int, others: Entries = MappingProxyType({})) -> None:
    """Lists every file under `folder`, and `others` that other processes have, in its CHECKSUMS.json. All of `folder` is flushed to the
    disk."""
    listed = {**others, **checksums(folder)}
    text = json.dumps({"format": FORMAT, "step": step, "files": listed}, indent=1, sort_keys=True)
    write_bytes(folder / CHECKSUMS, text.encode())
    for inner in [path for path in folder.rglob("*") if path.is_dir()] + [folder]:
        flush(inner)


def checksums(folder: Path) -> dict[str, Entry]:
    """{file: its entry in CHECKSUMS.json} of every file under `folder`, each flushed to the disk."""
    names = files(folder)
    with ThreadPoolExecutor(READERS) as pool:
        return dict(zip(names, pool.map(lambda name: _flushed(folder / name), names), strict=True))


def verify(step_dir: Path, contents: bool = True) -> list[str]:
    """The problems of a step's folder, one line each; [] when it is complete.

    Missing, truncated and changed files, files added inside the folders that were written, another step's folder, a missing or
    unreadable CHECKSUMS.json. With contents=False the files' bytes are not read, only their names and sizes.
    """
    try:
        listed = entries(step_dir)
    except ValueError as error:
        return [one_line(str(error))]
    present = set(files(step_dir))
    folders = {name.split("/")[0] for name in listed if "/" in name}
    problems = [f"{name} is missing" for name in listed if name not in present]
    problems += [f"{name} was added" for name in sorted(present - set(listed)) if "/" in name and name.split("/")[0] in folders]
    names = [name for name in listed if name in present]

    def compare(name: str) -> str:
        try:
            size = (step_dir / name).stat().st_size
            if size != listed[name]["size"]:
                return f"{name} has {size} bytes instead of {listed[name]['size']}"
            changed = contents and sha256(step_dir / name) != listed[name]["sha256"]
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        return f"{name} has changed (sha256)" if changed else ""

    with ThreadPoolExecutor(READERS) as pool:
        return [one_line(problem) for problem in (*problems, *pool.map(compare, names)) if problem]


def entries(step_dir: Path) -> dict[str, Entry]:
    """{file: {size, sha256}} of CHECKSUMS.json. Raises ValueError, with a message for the user, when it cannot be trusted."""
    try:
        data = json_object((step_dir / CHECKSUMS).read_bytes())
        version, step, found = data["format"], data["step"], data["files"]
        sound = lambda name, entry: inside(name) and isinstance(entry["size"], int) and isinstance(entry["sha256"], str)
        well_formed = all(sound(name, entry) for name, entry in found.items())
    except FileNotFoundError:
        raise ValueError(f"{CHECKSUMS} is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{CHECKSUMS} cannot be read") from None
    if version != FORMAT:
        raise ValueError(f"{CHECKSUMS} has format {version}, this version reads {FORMAT}")
    if step_dir.name != str(step):
        raise ValueError(f"{CHECKSUMS} belongs to step {step}")
    if not well_formed:
        raise ValueError(f"{CHECKSUMS} cannot be read")
    return found


def files(folder: Path) -> list[str]:
    """The names of all files under `folder` but CHECKSUMS.json, sorted, with '/'."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [name for name in names if name != CHECKSUMS]


def _flushed(path: Path) -> Entry:
    """Flushes a file to the disk; returns its entry."""
    flush(path)
    return {"size": path.stat().st_size, "sha256": sha256(path)}


def steps(directory: Path) -> list[int]:
    """The finished steps of a directory, in order: folders whose CHECKSUMS.json names that step. Reads no data file."""
    return [step for step in _numbered(directory) if _finished(directory / str(step))]


def _finished(step_dir: Path) -> bool:
    try:
        entries(step_dir)
    except ValueError:
        return False
    return True


def _numbered(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    names = [path.name for path in directory.iterdir() if path.is_dir() and path.name.isascii() and path.name.isdigit()]
    return sorted(int(name) for name in names if name == str(int(name)))


def report_invalid(folder: object, problems: Sequence[str], then: str) -> None:
    """Prints a line about a checkpoint that does not verify. then: what is done with it."""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    print(f"checkpoint {folder}: {problems[0]}{more}; {then}, trying an older step", file=sys.stderr)


def none_is_whole(aside: Sequence[str], where: object) -> UserError:
    """The error for a run whose checkpoints were all set aside. aside: their names."""
    what = f"no checkpoint of this run is whole (set aside: {', '.join(aside)})"
    return UserError(what, where, "choose another --workdir, or delete this one to start over")


def newest_valid(directory: Path, check: bool, set_aside: bool) -> int | None:
    """The newest step that verifies, or None; one line on stderr for each newer one that does not.

    check: compare every byte, not only names and sizes. set_aside: rename a bad step to `<step>.bad-<n>`, so that the step can be saved
    again; False for another run's directory. Raises UserError when the rename fails.
    """
    for step in reversed(_numbered(directory)):
        folder = directory / str(step)
        problems = verify(folder, contents=check)
        if not problems:
            return step
        report_invalid(folder, problems, f"set aside as {_set_aside(folder)}" if set_aside else LEFT)
    return None


def _set_aside(folder: Path) -> str:
    number = 1
    while (target := folder.with_name(f"{folder.name}.bad-{number}")).exists():
        number += 1
    try:
        folder.rename(target)
    except OSError as error:
        raise UserError(f"damaged, and cannot be renamed ({error.strerror})", f"checkpoint {folder}", "fix its permissions") from error
    return target.name
