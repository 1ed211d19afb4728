"""Sound files, damaged: what the fuzz tests put in, and what they demand of the reader."""

import contextlib
import copy
import faulthandler
import json
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from jaxenc.errors import UserError
from tests.selection import FULL

SECONDS = 2.0  # of this process's own time, so that a busy machine fails nothing
STUCK = 60.0  # seconds on the clock until the process is ended: it waits, or loops in C, where no signal is heard
MEMORY = 1 << 29  # bytes that a reader may ask for beyond what the process has: no input here is larger than 100 kB
LONGEST = 4200  # characters of a message
# Values that stand in the place of another: of other types, empty, at the edges of what numbers hold, and out of a folder.
ODD = (
    None, True, False, 0, -1, 1, 2, 3.5, 255, 256, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, 1 << 64, 10**400,
    -(10**400), 1e308, -1e-320, float("nan"), float("inf"), "", "a", "\n", "a\nb", "\0", "../../etc/passwd", "/etc/passwd", "\ud800",
    "\x1b[2J", "x" * 5000, "train-00000", "object", "O", "<U9", "float32", [], [[]], [None], [1, 2], [-1], [1 << 62, 4], [1] * 40,
    {}, {"": {}}, {"kind": []}, {"a": 1}, {"0": "a"},
)  # fmt: skip


def fuzzed(examples: int) -> Callable:
    """Makes a test one of `examples` inputs, new ones every time, in the full suite, and of a fifth of them, always the same, in the
    short one; nothing is kept between runs. A failure prints its input and how to run it again."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
    count = examples if FULL else examples // 5
    chosen = settings(max_examples=count, derandomize=not FULL, print_blob=FULL, database=None, deadline=None, suppress_health_check=checks)
    return lambda test: pytest.mark.slow(chosen(test))


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Only a UserError of one line gets out of the block, in SECONDS and with MEMORY: everything else fails the test."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"a damaged input takes more than {SECONDS} seconds")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, late)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    faulthandler.dump_traceback_later(STUCK, exit=True)
    try:
        yield
    except UserError as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        assert str(error).isprintable() and 0 < len(str(error)) < LONGEST, str(error)[:LONGEST]
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


Edits = Sequence[tuple[str, int, Any]]


def byte_edits() -> st.SearchStrategy[Edits]:
    """Up to four changes of some bytes: put over, put in, taken out, cut off, doubled."""
    numbers = st.sampled_from([b"\0", b"\xff", b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7, b"\xff\xff\xff\xff\x07", b"\n", b"[" * 3000])
    kind = st.sampled_from(["over", "over", "over", "in", "out", "cut", "twice"])
    return st.lists(st.tuples(kind, st.integers(0, 1 << 20), st.binary(min_size=1, max_size=6) | numbers), min_size=1, max_size=4)


def damaged(content: bytes, edits: Edits) -> bytes:
    """`content` after the edits."""
    for kind, place, new in edits:
        at = place % (len(content) + 1)
        if kind == "over":
            content = content[:at] + new + content[at + len(new) :]
        elif kind == "in":
            content = content[:at] + new + content[at:]
        elif kind == "out":
            content = content[:at] + content[at + len(new) :]
        elif kind == "cut":
            content = content[:at]
        else:
            content = content[:at] + content[max(0, at - 40) :]
    return content


def json_edits() -> st.SearchStrategy[Edits]:
    """Up to three changes of a JSON value: a part replaced, taken out, added beside or under another name."""
    small = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
    )
    kind = st.sampled_from(["put", "put", "put", "put", "out", "add", "rename"])
    return st.lists(st.tuples(kind, st.integers(0, 1 << 16), st.sampled_from(ODD) | small), min_size=1, max_size=3)


def altered(data: Any, edits: Edits) -> Any:
    """A copy of the JSON value `data` after the edits."""
    data = {"": copy.deepcopy(data)}
    for kind, place, new in edits:
        places = list(_places(data))
        holder, key = places[place % len(places)]
        if kind == "put" or isinstance(holder, list):
            holder[key] = copy.deepcopy(new)
        elif kind == "out" and holder is not data:
            del holder[key]
        elif kind == "add":
            inner = holder[key] if isinstance(holder[key], dict) else holder
            inner[new if isinstance(new, str) else "more"] = copy.deepcopy(new)
        elif kind == "rename" and holder is not data:
            holder[str(new)[:40]] = holder.pop(key)
    return data.get("")


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of every value in `data`."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield data, key
        yield from _places(data[key])


def dumped(data: Any) -> bytes:
    """`data` as JSON, lone surrogates escaped."""
    return json.dumps(data).encode()


def folder_of(folder: Path, files: Mapping[str, bytes]) -> Path:
    """`folder` with these files in it."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
