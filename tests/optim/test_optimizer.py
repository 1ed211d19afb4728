"""Updates against transcriptions of the originals in float64, leaf by leaf: |a - b| <= 1e-6 · (|b| + max|b| of the leaf)."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.optimizer import OptimConfig, Optimizer, moment_names
from jaxenc.sharding.mesh import MeshConfig, make
from jaxenc.sharding.partition import shardings

LR = 1e-2
BOUND = 1e-6
SHAPES = {
    "embeddings/norm/bias": (4,),
    "embeddings/norm/scale": (4,),
    "embeddings/word/table": (8, 4),
    "encoder/layer_00/query/bias": (8,),
    "encoder/layer_00/query/kernel": (4, 8),
    "head/still": (3,),  # no gradient and zero values: both norms of the trust ratio are 0
    "head/zero": (3,),  # starts at zero: the parameter's norm is 0 at the first update
}
NAMES = tree.from_leaves(
    [
        ("embeddings/norm/bias", ("norm",)),
        ("embeddings/norm/scale", ("norm",)),
        ("embeddings/word/table", ("vocab", "table_embed")),
        ("encoder/layer_00/query/bias", ("heads",)),
        ("encoder/layer_00/query/kernel", ("embed", "heads")),
        ("head/still", (None,)),
        ("head/zero", (None,)),
    ]
)
KINDS = [
    OptimConfig(bias_correction=False),
    OptimConfig(),
    OptimConfig(beta2=0.98, weight_decay=0.1),
    OptimConfig(beta2=0.98, epsilon_added="before_correction", decay_exclude=()),
    OptimConfig(name="lamb"),
    OptimConfig(name="lamb", bias_correction=False),
    OptimConfig(name="adagrad", accumulator=0.5),
]
IDS = ["bert", "adamw", "adamw_98", "fairseq", "lamb", "lamb_albert", "adagrad"]


def build(config: OptimConfig, params: Any) -> Optimizer:
    """At a constant rate of 1, so that an update is -1 times the direction."""
    return optimizers.build(dataclasses.replace(config, schedule="constant", clip=0.0), params, lr=1.0, warmup=0, steps=100)


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    scale = lambda path: 0 if "head" in path else 1
    return {path: (scale(path) * rng.normal(size=shape)).astype(np.float32) for path, shape in SHAPES.items()}


def gradients(step: int) -> dict[str, np.ndarray]:
    """Gradients of 1e-5 to 1e1, so that epsilon and the second moment both matter."""
    rng = np.random.default_rng(100 + step)
    size = lambda shape: 10.0 ** rng.uniform(-5, 1, size=shape)
    out = {path: (size(shape) * rng.choice([-1, 1], size=shape)).astype(np.float32) for path, shape in SHAPES.items()}
    return out | {"head/still": np.zeros(3, np.float32)}


class Transcription:
    """google-research/bert AdamWeightDecayOptimizer; Adam's paper, algorithm 1; fairseq's Adam.step, which corrects the quotient; LAMB
    as albert:lamb_optimizer.py; TensorFlow's ApplyAdagrad: accum += g · g, var -= lr · g / sqrt(accum); all per leaf."""

    def __init__(self, config: OptimConfig) -> None:
        self.config, self.t = config, 0
        self.squares = {path: np.full(shape, config.accumulator) for path, shape in SHAPES.items()}
        self.m = {path: np.zeros(shape) for path, shape in SHAPES.items()}
        self.v = {path: np.zeros(shape) for path, shape in SHAPES.items()}

    def __call__(self, params: dict[str, np.ndarray], grads: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        c, out = self.config, {}
        self.t += 1
        for path, grad in grads.items():
            g = np.float64(grad)
            self.m[path] = c.beta1 * self.m[path] + (1 - c.beta1) * g
            self.v[path] = c.beta2 * self.v[path] + (1 - c.beta2) * g**2
            self.squares[path] = self.squares[path] + g**2
            m, v, corrected = self.m[path], self.v[path], (1 - c.beta1**self.t, 1 - c.beta2**self.t)
            if c.name == "adagrad":
                update = g / np.sqrt(self.squares[path])
            elif c.epsilon_added == "before_correction":
                update = np.sqrt(corrected[1]) / corrected[0] * (m / (np.sqrt(v) + c.epsilon))
            else:
                m, v = (m / corrected[0], v / corrected[1]) if c.bias_correction else (m, v)
                update = m / (np.sqrt(v) + c.epsilon)
            if not c.decay_exclude or not re.search("norm|bias", path):
                update = update + c.weight_decay * params[path]
                p_norm, u_norm = np.linalg.norm(params[path]), np.linalg.norm(update)
                if c.name == "lamb" and p_norm > 0 and u_norm > 0:
                    update = update * (p_norm / u_norm)
            out[path] = update
        return out


def flat(nested: Any) -> dict[str, np.ndarray]:
    return {path: np.asarray(leaf) for path, leaf in tree.leaves(nested)}


@pytest.mark.parametrize("config", KINDS, ids=IDS)
def test_ten_updates_equal_the_transcription(config: OptimConfig) -> None:
    params = tree.from_leaves(start().items())
    exact = {path: np.float64(leaf) for path, leaf in start().items()}
    optimizer, reference = build(config, params), Transcription(config)
    state, update = optimizer.init(params), jax.jit(optimizer.transform.update)
    for step in range(10):
        direction, state = update(tree.from_leaves(gradients(step).items()), state, params)
        expected = reference(exact, gradients(step))
        for path, leaf in flat(direction).items():
            assert leaf.dtype == np.float32
            np.testing.assert_allclose(leaf, expected[path], rtol=BOUND, atol=BOUND * np.abs(expected[path]).max(), err_msg=path)
        params = jax.tree.map(lambda p, d: p - LR * d, params, direction)
        exact = {path: leaf - LR * expected[path] for path, leaf in exact.items()}
    for path, leaf in flat(params).items():
        np.testing.assert_allclose(leaf, exact[path], rtol=BOUND, atol=BOUND * np.abs(exact[path]).max(), err_msg=path)


@pytest.mark.parametrize("config", KINDS, ids=IDS)
def test_a_step_without_gradient_moves_only_what_decays(config: OptimConfig) -> None:
    params = tree.from_leaves((path, leaf + 1) for path, leaf in start().items())
    optimizer = build(config, params)
    direction, _ = optimizer.transform.update(jax.tree.map(np.zeros_like, params), optimizer.init(params), params)
    moved = {path for path, leaf in flat(direction).items() if leaf.any()}
    excluded = {path for path in SHAPES if path.endswith("bias") or "/norm/" in path}
    assert moved == (set(SHAPES) - excluded if config.decay_exclude else set(SHAPES))


@pytest.mark.parametrize("t, ratio", [(1, 3.2), (10, 6.5), (100, 3.2), (1000, 1.26)])
def test_leaving_out_the_bias_correction_makes_steps_larger_by_the_known_ratio(t: int, ratio: float) -> None:
    """Under a constant gradient the ratio is (1 - 0.9^t) / sqrt(1 - 0.999^t), and the corrected direction is 1."""
    params = {"w": {"kernel": jnp.ones(1)}}
    one = {"w": {"kernel": jnp.ones(1)}}
    directions = []
    for corrected in (True, False):
        optimizer = build(OptimConfig(bias_correction=corrected, weight_decay=0.0, decay_exclude=(), epsilon=1e-12), params)
        state = jax.lax.fori_loop(0, t - 1, lambda _, s, o=optimizer: o.transform.update(one, s, params)[1], optimizer.init(params))
        directions.append(float(optimizer.transform.update(one, state, params)[0]["w"]["kernel"][0]))
    exact = (1 - 0.9**t) / np.sqrt(1 - 0.999**t)
    assert directions[0] == pytest.approx(1.0, rel=3e-6)
    assert directions[1] == pytest.approx(exact, rel=3e-6) and exact == pytest.approx(ratio, rel=0.02)


def test_epsilon_is_the_configured_one() -> None:
    """At a gradient of the size of epsilon, half the direction is epsilon's."""
    params = {"w": {"kernel": jnp.ones(1)}}
    optimizer = build(OptimConfig(weight_decay=0.0, decay_exclude=()), params)
    direction, _ = optimizer.transform.update({"w": {"kernel": jnp.full(1, 1e-6)}}, optimizer.init(params), params)
    assert float(direction["w"]["kernel"][0]) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("added, expected", [("after_correction", 0.5), ("before_correction", 0.02**0.5 / (0.02**0.5 + 1))])
def test_epsilon_weighs_more_before_the_correction(added: str, expected: float) -> None:
    """At the first update with a gradient as large as epsilon: g / (g + e), or with v = 0.02 g², 0.141 g / (0.141 g + e)."""
    params = {"w": {"kernel": jnp.ones(1)}}
    optimizer = build(OptimConfig(beta2=0.98, weight_decay=0.0, decay_exclude=(), epsilon_added=added), params)
    direction, _ = optimizer.transform.update({"w": {"kernel": jnp.full(1, 1e-6)}}, optimizer.init(params), params)
    assert float(direction["w"]["kernel"][0]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("config", KINDS[:-1], ids=IDS[:-1])
def test_the_state_mirrors_the_parameters_and_takes_their_shardings(config: OptimConfig) -> None:
    params = tree.from_leaves(start().items())
    optimizer = build(config, params)
    names = moment_names(optimizer, params, NAMES)
    adam = names["adam"]
    assert adam.mu == NAMES and adam.nu == NAMES and adam.count == ()
    shapes = jax.eval_shape(optimizer.init, params)
    assert {leaf.dtype.name for leaf in jax.tree.leaves((shapes["adam"].mu, shapes["adam"].nu))} == {"float32"}
    placed = shardings(shapes, names, make(MeshConfig(preset="fsdp_tp", tensor=2, fsdp=2)), "fsdp_tp")
    state = jax.jit(optimizer.init, out_shardings=placed)(params)
    kernel = state["adam"].nu["encoder"]["layer_00"]["query"]["kernel"]
    assert kernel.addressable_shards[0].data.shape == (2, 4) and state["adam"].count.is_fully_replicated


def test_adagrads_sums_lie_as_their_parameters_do_and_start_at_the_accumulator() -> None:
    params = tree.from_leaves(start().items())
    optimizer = build(OptimConfig(name="adagrad", accumulator=3.0), params)
    names = moment_names(optimizer, params, NAMES)
    placed = shardings(jax.eval_shape(optimizer.init, params), names, make(MeshConfig(preset="fsdp_tp", tensor=2, fsdp=2)), "fsdp_tp")
    sums = jax.jit(optimizer.init, out_shardings=placed)(params)["adagrad"].sum_of_squares
    assert names["adagrad"].sum_of_squares == NAMES and {(leaf.dtype.name, float(leaf.ravel()[0])) for leaf in jax.tree.leaves(sums)} == {
        ("float32", 3.0)
    }
    assert sums["encoder"]["layer_00"]["query"]["kernel"].addressable_shards[0].data.shape == (2, 4)


def test_frozen_parameters_have_no_moments_and_their_patterns_still_count() -> None:
    params = tree.from_leaves(start().items())
    config = OptimConfig(name="lamb", freeze=("embeddings/.*",))
    moving = tree.from_leaves((path, leaf) for path, leaf in start().items() if "embeddings" not in path)
    optimizer = build(config, params)
    state = optimizer.init(moving)
    direction, _ = optimizer.transform.update(moving, state, moving)
    assert jax.tree.structure(direction) == jax.tree.structure(state["adam"].mu) == jax.tree.structure(moving)


def test_the_choice_of_bias_correction_does_not_change_the_state() -> None:
    params = tree.from_leaves(start().items())
    structures = [jax.tree.structure(build(OptimConfig(bias_correction=b), params).init(params)) for b in (True, False)]
    assert structures[0] == structures[1]


@pytest.mark.parametrize(
    "config, words",
    [
        (OptimConfig(decay_exclude=(".*/gamma",)), "optim.decay_exclude"),
        (OptimConfig(freeze=("gone/.*",)), "optim.freeze"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(config: OptimConfig, words: str) -> None:
    with pytest.raises(UserError, match=words):
        build(config, tree.from_leaves(start().items()))


def test_optax_applies_the_direction_as_the_step_does() -> None:
    """-lr · direction through optax.apply_updates is the same update that optax.adamw makes, to optax's own rounding of 1 - beta2."""
    params = tree.from_leaves(start().items())
    ours = build(OptimConfig(decay_exclude=()), params)
    theirs = optax.adamw(LR, eps=1e-6, weight_decay=0.01)
    grads = tree.from_leaves(gradients(0).items())
    direction, _ = ours.transform.update(grads, ours.init(params), params)
    updates, _ = theirs.update(grads, theirs.init(params), params)
    for path, leaf in flat(updates).items():
        np.testing.assert_allclose(-LR * flat(direction)[path], leaf, rtol=2e-5, atol=1e-9)


def updated(config: OptimConfig, params: Any, grads: Any, clock: int = 0) -> tuple[Any, Any, float]:
    optimizer = optimizers.build(config, params, lr=LR, warmup=0, steps=10)
    norm = jnp.float32(np.sqrt(sum(np.sum(np.square(leaf, dtype=np.float64)) for leaf in flat(grads).values())))
    after, moments, rate = jax.jit(optimizer.update)(grads, norm, optimizer.init(params), params, jnp.int32(clock))
    return after, moments, float(rate)


def test_an_update_clips_moves_against_the_direction_and_follows_the_clock() -> None:
    """Beside the transcription in float64, of a gradient scaled to norm 1, at step 4 of a decay over 10: 0.6 of the rate."""
    params, grads = tree.from_leaves(start().items()), gradients(0)
    after, _, rate = updated(OptimConfig(), params, tree.from_leaves(grads.items()), clock=4)
    assert rate == pytest.approx(0.6 * LR, rel=1e-6)
    norm = np.sqrt(sum(np.sum(np.float64(leaf) ** 2) for leaf in grads.values()))
    direction = Transcription(OptimConfig())(start(), {path: leaf / norm for path, leaf in grads.items()})
    for path, leaf in flat(after).items():
        expected = start()[path] - 0.6 * LR * direction[path]
        np.testing.assert_allclose(leaf, expected, rtol=BOUND, atol=BOUND * np.abs(expected).max() + 1e-9, err_msg=path)


def test_rates_multiply_by_path_and_the_first_match_decides() -> None:
    params, grads = tree.from_leaves(start().items()), tree.from_leaves(gradients(0).items())
    rates = ("embeddings/word/.*=0.5", "embeddings/.*=0.25", "encoder/.*=0")
    plain, _, _ = updated(OptimConfig(), params, grads)
    scaled, _, _ = updated(OptimConfig(rates=rates), params, grads)
    expected = {path: 0.5 if "word" in path else 0.25 if "embeddings" in path else 0.0 if "encoder" in path else 1.0 for path in SHAPES}
    for path, leaf in flat(scaled).items():
        moved = expected[path] * (flat(plain)[path] - start()[path])
        np.testing.assert_allclose(leaf - start()[path], moved, rtol=1e-3, atol=1e-6 * np.abs(start()[path]).max(), err_msg=path)
        assert expected[path] or np.array_equal(leaf, start()[path]), path


def test_moments_are_stored_by_name() -> None:
    params = tree.from_leaves(start().items())
    stages = {name: set(build(OptimConfig(name=name), params).init(params)) for name in ("adamw", "lamb", "adagrad", "adafactor")}
    assert stages == {
        "adamw": {"adam", "decay"},
        "lamb": {"adam", "decay", "ratio"},
        "adagrad": {"adagrad", "decay"},
        "adafactor": {"adafactor", "clip", "scale", "decay"},
    }


def test_adafactor_is_optaxs_and_its_factored_moments_are_placed() -> None:
    """Ten updates beside optax.adafactor with the same rate and decay; a matrix of 128 x 256 has moments of 128 and of 256 numbers."""
    shapes = {"w/kernel": (128, 256), "w/bias": (256,)}
    draw = np.random.default_rng(0)
    arrays = lambda: tree.from_leaves((path, draw.normal(size=shape).astype(np.float32)) for path, shape in shapes.items())
    config, params = OptimConfig(name="adafactor", decay_exclude=(), clip=0.0, schedule="constant"), arrays()
    names = tree.from_leaves([("w/kernel", ("embed", "heads")), ("w/bias", ("heads",))])
    optimizer = optimizers.build(config, params, lr=LR, warmup=0, steps=10)
    placed = shardings(jax.eval_shape(optimizer.init, params), moment_names(optimizer, params, names), make(MeshConfig("fsdp")), "fsdp")
    moments, theirs = jax.jit(optimizer.init, out_shardings=placed)(params), params
    assert moments["adafactor"].v_row["w"]["kernel"].shape == (128,) and moments["adafactor"].v["w"]["bias"].shape == (256,)
    # Its own learning rate and decay come in another order; without decay both are the same product.
    peer = optax.chain(optax.adafactor(None, weight_decay_rate=None, momentum=None), optax.add_decayed_weights(-0.01), optax.scale(LR))
    state = peer.init(theirs)
    for _ in range(10):
        grads = arrays()
        params, moments, _ = jax.jit(optimizer.update)(grads, jnp.float32(1), moments, params, jnp.int32(0))
        step, state = jax.jit(peer.update)(grads, state, theirs)
        theirs = optax.apply_updates(theirs, step)
    for path, leaf in flat(params).items():
        np.testing.assert_allclose(leaf, flat(theirs)[path], rtol=1e-5, atol=1e-6, err_msg=path)
