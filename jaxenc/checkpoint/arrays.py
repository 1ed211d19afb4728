"""Trees of arrays in a folder, through Orbax: the only file that imports it.

Orbax sees nested dicts of strings and arrays, never a NamedTuple or an empty branch: those have no data, and their classes belong to
the code that restores, not to the file. The path of a leaf is its key path joined with '/', as in `params/encoder/layer_03/norm/scale`
or `moments/adam/mu/encoder/...`.
"""

import contextlib
import gc
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from absl import logging as absl_logging

from jaxenc import tree
from jaxenc.errors import Absent
from jaxenc.processes import barriers

# Bytes that are compressed and written at once. Without a limit Orbax holds a second copy of everything, and takes twice as long:
# 2.8 GB and 9.9 s against 1.9 GB and 4.8 s for the parameters of bert/large on two cores.
IN_FLIGHT = 1 << 27
MARGIN = 1 << 20
# Bytes of an array below which one replica writes it whole. Orbax cuts an array that several devices hold into a part for each, and
# compiles that for every shape and device: 7 s of the first save of a nano model on eight devices.
SHARED_WRITE = 1 << 20
# Seconds. When an array cannot be written, Orbax gives up and lets go of the writes that TensorStore's own threads still work on, so that
# nobody can join them: they make files for another 0.1 s (measured with arrays of 80 MB on a full disk), even in a folder that has gone.
LAST_WRITES = 0.5


def by_path(state: Any) -> dict[str, Any]:
    """{path: leaf} of any pytree, in its own order; ValueError when two leaves have one path."""
    pairs = [(jax.tree_util.keystr(keys, simple=True, separator="/"), leaf) for keys, leaf in jax.tree_util.tree_leaves_with_path(state)]
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("two leaves of the state have the same path: a key must not contain '/'")
    return out


class Writer:
    """Owner of Orbax's asynchronous writer and its threads. name: unique among the writers of a run, since their barriers are named after
    it. per_process: each of several processes writes its arrays to a folder of its own, and `read` takes the files of all of them in one
    folder."""

    def __init__(self, name: str, per_process: bool = False) -> None:
        self._name, self._per_process, self._in_flight = name, per_process, IN_FLIGHT
        self._orbax, self._ended_well = self._make(), True

    def start(self, directory: Path, leaves: Mapping[str, jax.Array]) -> None:
        """Copies {path: array} to the host and starts to write the new folder `directory`; the arrays may then be donated."""
        needed = max((leaf.nbytes for leaf in leaves.values()), default=0) + MARGIN
        if needed > self._in_flight:
            # Orbax refuses an array that is as large as what may be in flight.
            self._orbax.close()
            self._in_flight = needed
            self._orbax = self._make()
        self._ended_well = False
        self._orbax.save(directory, args=ocp.args.PyTreeSave(tree.from_leaves(leaves.items())))

    def wait(self) -> None:
        """Waits until the folder is whole in every process. Raises OSError with the `reason` when an array could not be written, Absent or
        JaxRuntimeError when another process is gone."""
        failure = ""
        try:
            self._orbax.wait_until_finished()
        except (Absent, jax.errors.JaxRuntimeError):
            raise
        except Exception as error:
            failure = reason(error)
        if failure:
            time.sleep(LAST_WRITES)
            # Orbax's error refers to the writes of the other arrays, and asyncio logs each failed one when it is freed. So the error does
            # not leave this function, and they are freed here, where `quiet` drops those lines.
            _let_go()
            raise OSError(failure)
        self._ended_well = True

    def close(self) -> None:
        """Ends the threads. The writer is of no use afterwards."""
        self._orbax.close()
        # Exceptions of a failed save that nobody awaits are collected here, where `quiet` still drops their lines. Any other save
        # needs no collection, which takes a second in a process with many compiled programs.
        del self._orbax
        if not self._ended_well:
            _let_go()

    def _make(self) -> ocp.AsyncCheckpointer:
        # One database for all arrays (OCDBT) would have to be merged from those of all processes, which needs their files in one place; a
        # file for each part of an array needs nothing. Every process then makes, and names, its own folder as process 0 does.
        processes = ocp.options.MultiprocessingOptions(primary_host=None if self._per_process else 0)
        handler = ocp.PyTreeCheckpointHandler(
            save_concurrent_gb=self._in_flight / 1e9,
            use_ocdbt=not self._per_process,
            type_handler_registry=_handlers(processes.primary_host),
            multiprocessing_options=processes,
        )
        options = ocp.options.AsyncOptions(timeout_secs=barriers.LIMIT, barrier_sync_fn=self._barrier)
        return ocp.AsyncCheckpointer(handler, async_options=options, multiprocessing_options=processes)

    def _barrier(self, *, key: str, timeout_ms: int) -> None:
        """In the place of Orbax's own, which names nobody. Its keys are the same at each save."""
        barriers.barrier(f"Orbax {self._name} {key.strip('_')}", timeout_ms / 1000)


def is_part(name: str) -> bool:
    """Whether a file of a Writer with `per_process` holds numbers, which no other process has, and not metadata, which all write alike."""
    return re.fullmatch(r"\d+(\.\d+)*", name.rpartition("/")[2]) is not None


def _handlers(primary: int | None) -> ocp.type_handlers.TypeHandlerRegistry:
    """Orbax's own handlers, but of arrays on devices: those below SHARED_WRITE are written by one replica."""
    given = ocp.type_handlers
    kept = ((kind, given.get_type_handler(kind)) for kind in (np.ndarray, np.number))
    on_devices = given.ArrayHandler(primary_host=primary, min_slice_bytes_for_replica_parallel=SHARED_WRITE)
    return given.create_type_handler_registry((jax.Array, on_devices), *kept)


def _let_go() -> None:
    """Collects what a failed save left, without Python's warnings about writes that had not begun."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        gc.collect()


def stored(directory: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """{path: (shape, dtype)} of the arrays in a folder; reads no array."""
    with quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as reader:
        found = by_path(reader.metadata(directory).item_metadata.tree)
    return {path: (tuple(leaf.shape), str(leaf.dtype)) for path, leaf in found.items()}


def read(directory: Path, wanted: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, jax.Array]:
    """{path: array} of the wanted paths, placed as each leaf's sharding says (without one: on this process's first device).

    Orbax casts to the wanted dtype without a word: compare with `stored` first.
    """
    first = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    nested = tree.from_leaves(wanted.items())

    def placed(leaf: jax.ShapeDtypeStruct) -> ocp.ArrayRestoreArgs:
        return ocp.ArrayRestoreArgs(sharding=leaf.sharding or first, global_shape=leaf.shape, dtype=leaf.dtype)

    request = ocp.args.PyTreeRestore(nested, restore_args=jax.tree.map(placed, nested), partial_restore=True)
    # Without an ocp.Checkpointer, whose barrier after the reading has no time limit and names nobody.
    with quiet(), contextlib.closing(ocp.PyTreeCheckpointHandler()) as reader:
        return by_path(reader.restore(directory, args=request))


def reason(error: Exception) -> str:
    """One short line for an error of a save or a reading: the system's own words where it has an error number, in TensorStore's text too.

    A file is named only where it is missing: of a disk that refuses, the caller names the folder.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if isinstance(error, FileNotFoundError) else error.strerror
    number = re.search(r"os_error_code='(\d+)'", str(error))
    return os.strerror(int(number[1])) if number else (str(error).strip() or type(error).__name__).splitlines()[0][:300]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps Orbax's own log lines off the terminal: what matters in them is raised. A verbosity above absl's default lets them through.

    Also drops what Python and asyncio print about arrays that were still being written when another one failed: each of them finds the
    event loop of the save closed, or fails later with an error that nobody awaits.
    """
    loud = lambda: absl_logging.get_verbosity() > absl_logging.WARNING

    def ours(record: logging.LogRecord) -> bool:
        return "orbax" not in Path(record.pathname).parts or loud()

    def awaited(record: logging.LogRecord) -> bool:
        return "exception was never retrieved" not in record.getMessage() or loud()

    def unraisable(args: Any) -> None:
        if not (isinstance(args.exc_value, RuntimeError) and str(args.exc_value) == "Event loop is closed"):
            before(args)

    filters = ((absl_logging.get_absl_logger(), ours), (logging.getLogger("asyncio"), awaited))
    before = sys.unraisablehook
    for logger, shown in filters:
        logger.addFilter(shown)
    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = before
        for logger, shown in filters:
            logger.removeFilter(shown)
