"""Parameters that train later or never: bit for bit what they were until then, and from then on as if the run began."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim import unfreeze
from jaxenc.optim.optimizer import OptimConfig, moment_names
from jaxenc.training.settings import TrainConfig
from tests import tiny

SHAPES = {"embeddings/token/table": (8, 4), "encoder/layer_00/kernel": (4, 4), "encoder/layer_01/kernel": (4, 4), "head/kernel": (4, 2)}
NAMES = ("adamw", "lamb", "adagrad", "adafactor")
# The embeddings never, layer 0 from step 2, the head from step 0: it takes the first item.
GRADUAL = {"freeze": ("embeddings/.*",), "unfreeze": ("encoder/layer_00/.*=2", "encoder/.*=1")}


def arrays(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return tree.from_leaves((path, rng.normal(size=shape).astype(np.float32)) for path, shape in SHAPES.items())


def only(values: Any, *prefixes: str) -> Any:
    return tree.split(values, lambda path: path.startswith(prefixes))[0]


def run(config: OptimConfig, prefixes: tuple[str, ...], clocks: range) -> tuple[list[Any], Any]:
    """Parameters under `prefixes` after each update of these clocks, from `arrays(0)` and the gradients `arrays(clock + 1)`, and the last
    moments. One compiled program makes all updates."""
    params = only(arrays(0), *prefixes)
    optimizer = optimizers.build(config, arrays(0) if config.freeze else params, lr=0.1, warmup=0, steps=10)
    moments, seen = optimizer.init(params), []
    update = jax.jit(optimizer.update).lower(params, jnp.float32(0), moments, params, jnp.int32(0)).compile()
    for clock in clocks:
        grads = only(arrays(clock + 1), *prefixes)
        params, moments, _ = update(grads, optax.tree.norm(grads), moments, params, jnp.int32(clock))
        seen.append(params)
    return seen, moments


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_starts_at_its_step_as_in_a_run_that_begins_there(name: str) -> None:
    """Each part beside a run of that part alone, which begins at its step: parameters, moments and their counts. Without clipping, an
    update does not depend on other parts."""
    config = OptimConfig(name=name, decay_exclude=(), weight_decay=0.1, schedule="constant", clip=0.0)
    seen, moments = run(dataclasses.replace(config, **GRADUAL), ("encoder", "head"), range(5))
    for prefix, first in (("encoder/layer_00", 2), ("encoder/layer_01", 1), ("head", 0)):
        start = only(arrays(0), prefix)
        for clock in range(first):
            tiny.assert_bitwise(only(seen[clock], prefix), start)
        alone, fresh = run(config, (prefix,), range(first, 5))
        for clock in range(first, 5):
            for path, leaf in tree.leaves(only(seen[clock], prefix)):
                np.testing.assert_allclose(leaf, dict(tree.leaves(alone[clock - first]))[path], rtol=1e-6, atol=1e-6, err_msg=path)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), moments[f"from_{first}"], fresh)


def test_the_norm_that_is_clipped_has_no_part_of_what_does_not_train_yet() -> None:
    """Adam's first moment is a tenth of the clipped gradient: at step 0 that of the head alone has the norm 0.5, at step 2 all have."""
    _, one = run(OptimConfig(clip=0.5, decay_exclude=(), **GRADUAL), ("encoder", "head"), range(1))
    assert np.linalg.norm(one["from_0"]["adam"].mu["head"]["kernel"]) == pytest.approx(0.05, rel=1e-5)
    _, three = run(OptimConfig(clip=0.5, beta1=1e-9, decay_exclude=(), **GRADUAL), ("encoder", "head"), range(3))
    squares = [np.sum(np.square(leaf)) for part in three.values() for leaf in jax.tree.leaves(part["adam"].mu)]
    assert np.sqrt(sum(squares)) == pytest.approx(0.5, rel=1e-5)


def test_the_moments_of_each_part_have_the_axes_of_their_parameters() -> None:
    axes = tree.from_leaves((path, ("embed", path)) for path in SHAPES)
    params = only(arrays(0), "encoder", "head")
    optimizer = optimizers.build(OptimConfig(decay_exclude=(), **GRADUAL), arrays(0), lr=1.0, warmup=0, steps=1)
    names = moment_names(optimizer, params, only(axes, "encoder", "head"))
    assert names["from_2"]["adam"].nu == only(axes, "encoder/layer_00") and names["from_2"]["adam"].count == ()
    assert {name: list(dict(tree.leaves(part["adam"].mu))) for name, part in names.items()} == {
        "from_0": ["head/kernel"],
        "from_1": ["encoder/layer_01/kernel"],
        "from_2": ["encoder/layer_00/kernel"],
    }


@pytest.mark.parametrize(
    "config, words",
    [
        (OptimConfig(unfreeze=("layer.*=3",)), "optim.unfreeze: no parameter's path matches 'layer"),
        (OptimConfig(unfreeze=("encoder/.*",)), r"optim.unfreeze: 'encoder/\.\*' is not PATTERN=STEP; give a step from 0 to 2147483647"),
        (OptimConfig(unfreeze=("encoder/.*=1.5",)), "is not PATTERN=STEP"),
        (OptimConfig(unfreeze=("encoder/.*=-1",)), "is not PATTERN=STEP"),
        (OptimConfig(unfreeze=("encoder/.*=9999999999",)), "is not PATTERN=STEP"),
        (OptimConfig(unfreeze=(".*=3", "head/.*=2")), "optim.unfreeze: nothing is trained before step 3; leave out"),
        (OptimConfig(freeze=("encoder/.*",), unfreeze=("encoder/layer_00/.*=3",)), "optim.freeze freezes all that 'encoder/layer_00/"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(config: OptimConfig, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        optimizers.build(dataclasses.replace(config, decay_exclude=()), arrays(0), lr=1.0, warmup=0, steps=1)
    assert "\n" not in str(error.value)


def test_a_path_takes_the_first_item_that_matches_it() -> None:
    items = ("encoder/layer_01/.*=0", "encoder/.*=7", "embeddings/.*=9")
    assert [start for _, start in tree.leaves(unfreeze.starts(items, arrays(0), arrays(0)))] == [9, 7, 0, 0]


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_three_compiled_steps_leave_frozen_parameters_bit_for_bit(name: str) -> None:
    """The step of a training run: a classifier on a tiny BERT with dropout and weight decay 0.1 on everything. The embeddings are frozen,
    layer 0 starts at step 2 and layer 1 at step 1."""
    gradual = {"freeze": GRADUAL["freeze"], "unfreeze": ("encoder/layer_00/.*=2", "encoder/.*=1")}
    optim = OptimConfig(name=name, weight_decay=0.1, decay_exclude=(), schedule="constant", **gradual)
    model = dataclasses.replace(tiny.MODEL, width=16, heads=2, feed_forward=32)
    objective = tiny.objective(HeadsConfig(heads=("pooler", "classifier"), labels=("a", "b")), model, 16)
    config, rows = TrainConfig(batch=8, precision="float32"), tiny.batch([16, 5] * 4, 16)
    rows = tiny.reads({**rows, "label": np.arange(8, dtype=np.int32) % 2}, objective)
    compiled = tiny.compile_for(objective, optim, config, tiny.phase(8, 16), tiny.mesh("dp", 1))
    states = [jax.device_get(compiled.start())]
    for _ in range(3):
        states.append(compiled.run(rows, jax.device_put(states[-1], compiled.layout.shardings))[0])
    for prefix, first in (("embeddings", 3), ("encoder/layer_00", 2), ("encoder/layer_01", 1), ("pooler", 0), ("classifier", 0)):
        before = only(states[0].all_params, prefix)
        for step in range(first):
            tiny.assert_bitwise(only(states[step + 1].all_params, prefix), before)
        if prefix != "embeddings":
            tiny.assert_bitwise(states[first].moments[f"from_{first}"], states[0].moments[f"from_{first}"])
            assert int(states[first + 1].moments[f"from_{first}"]["adam"].count) == 1
            # The keys' bias has no gradient, and with weight decay it moves too.
            after = dict(tree.leaves(only(states[first + 1].params, prefix)))
            assert all((leaf != after[path]).any() for path, leaf in tree.leaves(before))
    assert "embeddings" not in states[-1].params and list(states[-1].frozen) == ["embeddings"]
