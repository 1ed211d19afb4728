"""Linear probes on features that are computed once: one probe for each layer and one for a learned mix of all, trained together."""

import collections
import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import rng
from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.layers import initializers
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tree import Tree

MIX = "mix"
# What the settings leave open. On 300 texts, 10 passes in batches of 256 would be about 12 steps, after which no probe is near its best:
# hence the least number of steps.
STEPS, PASSES, SMALLEST, LARGEST = 1000, 10, 16, 256
# Units that are predicted at a time.
ROWS = 1024


@dataclasses.dataclass(frozen=True)
class ProbeSettings:
    """How the probes of a table are trained: Adam with a linear decay to 0. Liu et al. 2019 (Linguistic Knowledge and Transferability of
    Contextual Representations) use a rate of 0.001 and up to 50 epochs; in 10 epochs on standardised features, 0.01 was better for every
    layer of the two models in docs/probing.md.

    layers: which are probed besides the mix, 0 for the input of the first layer; () = all. seeds: how many, counted from `seed`: a seed
    sets the initial weights and the order of the units. epochs: passes over the training units; 0 = PASSES or, on less data, as many as
    STEPS steps take. batch: units per step; 0 = LARGEST or, on less data, the largest power of two that leaves 16 steps in a pass, but at
    least SMALLEST. lr: initial rate.
    """

    layers: tuple[int, ...] = ()
    seeds: int = 3
    seed: int = 0
    epochs: int = 0
    batch: int = 0
    lr: float = 1e-2

    def __post_init__(self) -> None:
        at_least(1, "probe", self, "seeds")
        at_least(0, "probe", self, "epochs", "batch")
        if not 0 < self.lr < math.inf:
            raise UserError(f"the rate is {self.lr}", fix="it takes a positive number")

    def chosen(self, states: int) -> tuple[int, ...]:
        """The layers to probe of a model with `states` - 1 layers and their input. Raises UserError for layers that it does not have."""
        layers = self.layers or tuple(range(states))
        if wrong := [layer for layer in layers if not 0 <= layer < states]:
            fix = f"use 0 (the input of the first layer) to {states - 1}"
            raise UserError(f"layer {wrong[0]} was requested, but the model has {states - 1} layers", fix=fix)
        if twice := [layer for layer in layers if layers.count(layer) > 1]:
            raise UserError(f"layer {twice[0]} was requested twice", fix="name each layer once")
        return layers

    def training(self, units: int) -> tuple[int, int]:
        """(steps, units per step) on so many training units."""
        batch = self.batch or min(LARGEST, max(SMALLEST, 1 << max(units // 16, 1).bit_length() - 1))
        return max(1, self.epochs * units // batch) if self.epochs else max(STEPS, PASSES * units // batch), batch


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """What is classified: words or texts. features: float32 [units, layers + 1, width], possibly memory-mapped. labels: i32 [units], the
    number of the class."""

    features: np.ndarray
    labels: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Scale:
    """mean, deviation: float32 [layers + 1, width] of the training features. Standardising loses nothing for a linear probe, and one
    learning rate then suits layers of any scale."""

    mean: np.ndarray
    deviation: np.ndarray


def scale_of(features: np.ndarray) -> Scale:
    """The Scale of features [units, layers + 1, width], summed in float64 in chunks; a constant feature gets the deviation 1."""
    total, squares = np.zeros(features.shape[1:]), np.zeros(features.shape[1:])
    for start in range(0, len(features), ROWS):
        part = features[start : start + ROWS].astype(np.float64)
        total, squares = total + part.sum(axis=0), squares + np.square(part).sum(axis=0)
    mean = total / len(features)
    deviation = np.sqrt(np.maximum(squares / len(features) - np.square(mean), 0))
    # Rounding gives a constant feature a deviation that is tiny beside its mean.
    constant = deviation <= 1e-6 * np.abs(mean)
    return Scale(mean.astype(np.float32), np.where(constant, 1, deviation).astype(np.float32))


def init(key: Array, layers: Sequence[int], states: int, width: int, classes: int) -> Tree:
    """Parameters of the probes of `layers` and, last, of the mix: kernel [probes, width, classes], bias [probes, classes], and the mix's
    weights [states] and gamma []. The initial weights of a probe depend only on the key and on its layer."""
    keys = [jax.random.fold_in(rng.part(key, "probe"), layer) for layer in (*layers, states)]
    kernels = [initializers.glorot_uniform(one, (width, classes), jnp.float32) for one in keys]
    return {
        "kernel": jnp.stack(kernels),
        "bias": jnp.zeros((len(keys), classes)),
        "mix": {"weights": jnp.zeros(states), "gamma": jnp.ones(())},
    }


def logits(layers: tuple[int, ...], params: Tree, features: Array, mean: Array, deviation: Array) -> Array:
    """float32 [probes, units, classes] from features [units, layers + 1, width]. Each probe reads its layer, the last one
    gamma · softmax(weights) · layers (Peters et al. 2018, equation 1), all standardised."""
    hidden = (features - mean) / deviation
    mixed = params["mix"]["gamma"] * jnp.einsum("ulw,l->uw", hidden, jax.nn.softmax(params["mix"]["weights"]), precision="highest")
    read = jnp.stack([*(hidden[:, layer] for layer in layers), mixed])
    return jnp.einsum("puw,pwc->puc", read, params["kernel"], precision="highest") + params["bias"][:, None]


def fit(units: Units, scale: Scale, classes: int, settings: ProbeSettings, seed: int) -> Tree:
    """The parameters of all probes after training with one seed. Their losses are summed and they share no parameters, so each is
    trained as if it were alone. Calls with other seeds share the compiled step."""
    count, states, width = units.features.shape
    steps, size = settings.training(count)
    layers = settings.chosen(states)
    params = init(rng.init_key(seed), layers, states, width, classes)
    moments = _optimizer(settings.lr, steps, params).init(params)
    passes = -(-steps * size // count)
    order = np.concatenate([np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(count) for epoch in range(passes)])
    given = jax.device_put((scale.mean, scale.deviation))
    for step in range(steps):
        chosen = order[step * size : (step + 1) * size]
        batch = (units.features[chosen], units.labels[chosen])
        params, moments = _step(layers, settings.lr, steps, params, moments, np.int32(step), *batch, *given)
    return params


def predict(layers: tuple[int, ...], params: Tree, features: np.ndarray, scale: Scale) -> np.ndarray:
    """i32 [probes, units]: the class that each probe predicts for each unit."""
    found = []
    for start in range(0, len(features), ROWS):
        part = features[start : start + ROWS]
        filled = np.pad(part, [(0, ROWS - len(part)), (0, 0), (0, 0)])
        found.append(np.asarray(_classes(layers, params, filled, scale.mean, scale.deviation))[:, : len(part)])
    return np.concatenate([np.zeros((len(layers) + 1, 0), np.int32), *found], axis=1)


def majority(labels: Sequence[str]) -> str:
    """The most frequent label, the alphabetically first of equals."""
    counts = collections.Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))


def by_word(words: Sequence[str], labels: Sequence[str]) -> Mapping[str, str]:
    """{word: its most frequent label}."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for word, label in zip(words, labels, strict=True):
        found[word].append(label)
    return {word: majority(given) for word, given in found.items()}


def _optimizer(lr: float, steps: int, params: Tree) -> optimizers.Optimizer:
    """Adam, without clipping by norm: the norm is over all probes, so one probe would change the steps of the others."""
    config = OptimConfig(lr=lr, warmup=0, schedule="linear", weight_decay=0.0, clip=0.0, decay_exclude=())
    return optimizers.build(config, params, lr, 0, steps)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _step(
    layers: tuple[int, ...],
    lr: float,
    steps: int,
    params: Tree,
    moments: Any,
    step: Array,
    features: Array,
    labels: Array,
    mean: Array,
    deviation: Array,
) -> tuple[Tree, Any]:
    def loss(params: Tree) -> Array:
        given = logits(layers, params, features, mean, deviation)
        right = jnp.take_along_axis(given, labels[None, :, None], axis=-1)[..., 0]
        return jnp.sum(jnp.mean(jax.nn.logsumexp(given, axis=-1) - right, axis=1))

    params, moments, _ = _optimizer(lr, steps, params).update(jax.grad(loss)(params), jnp.zeros(()), moments, params, step)
    return params, moments


@functools.partial(jax.jit, static_argnums=0)
def _classes(layers: tuple[int, ...], params: Tree, features: Array, mean: Array, deviation: Array) -> Array:
    return jnp.argmax(logits(layers, params, features, mean, deviation), axis=-1).astype(jnp.int32)
