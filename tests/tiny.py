"""A tiny BERT, a tiny ELECTRA, their vocabulary, batches of random rows and its compiled step, for tests of objectives and training."""

import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.compilation_cache import compilation_cache
from jax.sharding import Mesh
from jax.stages import Lowered

from jaxenc import tree
from jaxenc.data.batch import Batch, empty
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.execution import Execution
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.count import has_vocabulary
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.heads import BUILT_IN, Head
from jaxenc.inference.network import objective_of
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting
from jaxenc.objectives.pair import PairConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.precision import policy
from jaxenc.sharding import mesh as meshes
from jaxenc.sharding import partition
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training.phases import Phase
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import Layout, State, layout, parameters
from jaxenc.training.step import compile_step, fields

VOCABULARY = Vocabulary(size=200, pad=0, unk=1, cls=2, sep=3, mask=4, reserved=(0, 1, 2, 3, 4), fingerprint="")
MODEL = BertConfig(vocab_size=200, width=32, layers=2, heads=4, feed_forward=64, positions=64, dropout=0.1, attention_dropout=0.1)
PAIR = ElectraConfig(
    vocab_size=200,
    width=32,
    layers=2,
    heads=4,
    feed_forward=64,
    embedding=24,
    generator_width=16,
    generator_layers=1,
    generator_heads=2,
    generator_feed_forward=40,
    positions=64,
)
LENGTH, ROWS = 48, 32
# Preset and microbatches of the steps compiled for eight devices.
MESHES = (("dp", 2), ("fsdp_tp", 2), ("fsdp", 1))
# Unequal counts of predictions, so that a mean of means shows.
RAGGED = (1, 3, 10, 40, 3, 48, 1, 17, 40, 3, 10, 1, 30, 5, 48, 2) * 2


def execution(remat: str = "none", scan: bool = False) -> Execution:
    return Execution(policy("float32"), "xla", remat, scan)


def objective(
    config: ObjectiveConfig = PairConfig(),
    model: ModelConfig = MODEL,
    length: int = LENGTH,
    how: Execution = execution(),
    heads: Mapping[str, Head] = BUILT_IN,
    teacher: ModelConfig | None = None,
) -> Objective:
    return config.build(model, PhaseSetting(VOCABULARY, how, DataConfig(length=length), 0, heads, teacher))


def batch(lengths: Sequence[int], length: int = LENGTH, seed: int = 0) -> Batch:
    """Rows of CLS, random words, SEP (the first `n` of those for n < 3 tokens), padding; types change half-way, labels are random.

    Six in ten tokens start a word, by `word_starts`.
    """
    random = np.random.default_rng(seed)
    rows, n = len(lengths), np.array(lengths)[:, None]
    places = np.arange(length)[None]
    words = random.integers(5, VOCABULARY.size, (rows, length))
    words = np.where(places == 0, VOCABULARY.cls, np.where((places == n - 1) & (n > 2), VOCABULARY.sep, words))
    real = places < n
    types = (real & (places > n // 2)).astype(np.int32)
    is_random = random.integers(0, 2, rows).astype(np.int32)
    edges = (random.random((rows, length)) < 0.6) | (places < 2) | (places == n - 1)
    return {
        "tokens": np.where(real, words, VOCABULARY.pad).astype(np.int32),
        "types": types,
        "segments": real.astype(np.int32),
        "positions": np.where(real, places, 0).astype(np.int32),
        "index": np.arange(rows, dtype=np.uint32) + 1000,
        "epoch": np.zeros(rows, np.uint32),
        "word_starts": (real & edges).astype(np.int32),
        "is_random": is_random,
    }


def drawn(run: Run, seed: int = 0, heads: Mapping[str, Head] = BUILT_IN) -> dict[str, Any]:
    """Random parameters of a run as NumPy arrays, biases and scales too; the rows that only pad the vocabulary are zeros."""
    objective = objective_of(run, None, heads)
    return filled(parameters(objective)[0], objective, run.model.vocab_size, seed)


def filled(shapes: Any, objective: Objective, size: int, seed: int = 0) -> Any:
    """A tree of parameters of these shapes as `drawn` says, for a vocabulary of this size."""
    random = np.random.default_rng(seed)

    def fill(path: str, leaf: Any) -> np.ndarray:
        values = random.normal(1.0 if path.endswith("scale") else 0.0, 0.1, leaf.shape).astype(np.float32)
        if has_vocabulary(path, objective.vocabulary):
            values[size:] = 0
        return values

    return tree.map_with_path(fill, shapes)


def mesh(preset: str, devices: int) -> Mesh:
    return meshes.make(MeshConfig(preset), jax.devices()[:devices])


@contextmanager
def on_one_device() -> Iterator[None]:
    """Runs in the block are on one device, which compiles faster than eight: for tests of whole runs that are not about meshes."""
    one, make = mesh("dp", 1), meshes.make
    with mock.patch.object(meshes, "make", lambda config, devices=None: one if devices is None else make(config, devices)):
        yield


def phase(rows: int = ROWS, length: int = LENGTH, steps: int = 10, lr: float = 1e-3) -> Phase:
    return Phase(0, steps, length, rows, 0, lr, warmup=0, schedule_start=0, schedule_steps=steps)


@dataclasses.dataclass(frozen=True)
class Probe(Objective):
    """An objective whose metrics also hold the corrupted rows, in slot order: what the compiled step really trains on."""

    inner: Objective
    rows: int

    @property
    def coef(self) -> Mapping[str, float]:
        return self.inner.coef

    @property
    def frozen(self) -> tuple[str, ...]:
        return self.inner.frozen

    @property
    def reads(self) -> Mapping[str, int]:
        return self.inner.reads

    def init(self, key: Array) -> Any:
        return self.inner.init(key)

    def carry(self, batch: int) -> Any:
        return self.inner.carry(batch)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return self.inner.corrupt(key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return self.inner.weights(example)

    def terms(self, params: Any, carry: Any, example: Mapping[str, Array], keys: Any, train: bool) -> Any:
        terms, metrics, carry = self.inner.terms(params, carry, example, keys, train)
        seen = {name: jnp.zeros((self.rows, *a.shape[1:]), a.dtype).at[keys.rows].set(a) for name, a in example.items()}
        return terms, {**metrics, **{f"seen_{name}": (a, jnp.int32(1)) for name, a in seen.items()}}, carry

    def outputs(self, params: Any, example: Mapping[str, Array]) -> dict[str, Array]:
        return self.inner.outputs(params, example)

    def flops(self, length: int) -> float:
        return self.inner.flops(length)


def start(objective: Objective, place: Layout) -> State:
    """Step 0 of random parameters. `place.create` draws others, on the device, and compiles that for seconds."""
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), place.shapes)
    params, frozen = (filled(part, objective, VOCABULARY.size) for part in (state.params, state.frozen))
    return jax.device_put(dataclasses.replace(state, params=params, frozen=frozen), place.shardings)


@dataclasses.dataclass(frozen=True)
class Compiled:
    """step: the compiled executable; stderr: what its compilation wrote there."""

    objective: Objective
    mesh: Mesh
    layout: Layout
    step: Any
    stderr: str

    def run(self, rows: Batch, state: State | None = None, seed: int = 0) -> tuple[State, dict[str, Any]]:
        """The state after one step from `state` (`start()` if None) and the report, both on the host."""
        with jax.set_mesh(self.mesh):
            state = self.start() if state is None else state
            return jax.device_get(self.step(state, partition.place(rows, self.mesh), np.int32(seed)))

    def start(self) -> State:
        return start(self.objective, self.layout)


@contextmanager
def compiling() -> Iterator[None]:
    """Everything is compiled in the block: a program that comes from the cache says nothing on stderr."""
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        compilation_cache.reset_cache()


@functools.cache
def compiled(
    preset: str = "dp",
    devices: int = 8,
    microbatches: int = 1,
    remat: str = "none",
    scan: bool = False,
    probe: bool = True,
    model: BertConfig = MODEL,
) -> Compiled:
    """The step of a tiny BERT with pairs on ROWS rows; clip 0, so that after one step mu / (1 - beta1) is the gradient."""
    inner = objective(model=model, how=execution(remat, scan))
    chosen = Probe(inner, ROWS) if probe else inner
    config = TrainConfig(batch=ROWS, microbatches=microbatches, precision="float32")
    return compile_for(chosen, OptimConfig(clip=0.0), config, phase(), mesh(preset, devices), preset)


def compile_for(chosen: Objective, optim: OptimConfig, config: TrainConfig, one: Phase, where: Mesh, preset: str = "dp") -> Compiled:
    place, lowered = lower_for(chosen, optim, config, one, where, preset)
    with jax.set_mesh(where), stderr_of() as read:
        done = lowered.compile()
    return Compiled(chosen, where, place, done, read())


def lower_for(
    chosen: Objective, optim: OptimConfig, config: TrainConfig, one: Phase, where: Mesh, preset: str = "dp"
) -> tuple[Layout, Lowered]:
    """The step before XLA's passes, and the layout of its state."""
    with jax.set_mesh(where):
        place = layout(chosen, optim, one.batch, where, preset)
        step = compile_step(chosen, config, optim, one, place)
        rows, split = empty(fields(chosen, config), one.batch, one.length, chosen.fields), partition.batch_sharding(where)
        shapes = {name: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=split) for name, array in rows.items()}
        return place, step.lower(place.abstract, shapes, jax.ShapeDtypeStruct((), np.int32))


def gradient(state: State) -> dict[str, Any]:
    """The gradient of a run's first step, from Adam's first moment."""
    return jax.tree.map(lambda mu: mu / (1 - OptimConfig().beta1), state.moments["adam"].mu)


def reads(rows: Batch, chosen: Objective) -> Batch:
    return {name: rows[name] for name in chosen.reads}


@contextmanager
def stderr_of() -> Iterator[Callable[[], str]]:
    """What is written to file descriptor 2 inside the block, compilers in C++ included."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        text: list[str] = []
        try:
            yield lambda: text[0]
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))


def assert_close(got: Any, want: Any, bound: float) -> None:
    """design.md's closeness of gradients: over the whole tree, and leaf by leaf against that leaf or a thousandth of the largest entry."""
    a, b = (dict(jax.tree_util.tree_leaves_with_path(tree)) for tree in (got, want))
    assert a.keys() == b.keys()
    norm = np.sqrt(sum(np.sum(np.square(b[path], dtype=np.float64)) for path in b))
    off = np.sqrt(sum(np.sum(np.square(np.float64(a[path]) - b[path])) for path in b))
    largest = max(np.abs(b[path]).max() for path in b)
    assert off <= bound * norm, f"whole tree: {off / norm:.2e}"
    for path in b:
        allowed = bound * max(np.abs(b[path]).max(), 1e-3 * largest)
        difference = np.abs(np.float64(a[path]) - b[path]).max()
        assert difference <= allowed, f"{jax.tree_util.keystr(path)}: {difference:.2e} over {allowed:.2e}"


def assert_bitwise(got: Any, want: Any) -> None:
    """Equal structure, dtypes and bytes of two trees of arrays."""
    a, b = (jax.tree_util.tree_leaves_with_path(tree) for tree in (got, want))
    assert [path for path, _ in a] == [path for path, _ in b]
    for (path, left), (_, right) in zip(a, b, strict=True):
        left, right = np.asarray(left), np.asarray(right)
        assert left.dtype == right.dtype and left.tobytes() == right.tobytes(), jax.tree_util.keystr(path)
