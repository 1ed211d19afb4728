"""A generator without a network: what it draws, and that nothing of a network is left."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng
from jaxenc.errors import UserError
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.sharding import partition
from jaxenc.training.run import Run
from tests import tiny

UNIFORM = RtdConfig(rate=0.4, generator="uniform")


def test_uniform_samples_are_every_id_alike_and_no_padding() -> None:
    """Chi-square of 320,000 draws of 200 ids, within 6 deviations of its mean: a missing or a doubled id is 1,600 off."""
    keys = rng.training(0, jnp.int32(0), 64).per_row("sample", "generator")
    drawn = np.asarray(sample.uniform(keys, 5000, 200))
    assert drawn.min() == 0 and drawn.max() == 199 and len({tuple(row[:20]) for row in drawn}) == 64
    counts = np.bincount(drawn.ravel(), minlength=200)
    assert abs(np.sum((counts - 1600) ** 2 / 1600) - 199) <= 6 * np.sqrt(2 * 199)


def test_no_leaf_no_loss_and_no_output_of_a_generator() -> None:
    """Its step is the discriminator's on rows with uniform ids in the chosen places; the loss is 50 times the discriminator's."""
    objective, params = tiny.objective(UNIFORM, tiny.PAIR), tiny.drawn(Run(objective=UNIFORM, model=tiny.PAIR))
    both = tiny.drawn(Run(objective=RtdConfig(), model=tiny.PAIR))
    assert set(params) == set(both) - {"generator", "mlm"} == {"embeddings", "discriminator", "rtd"} and set(objective.heads) == {"rtd"}
    assert dict(objective.coef) == {"rtd": 50.0}
    keys, rows = rng.training(0, jnp.int32(1), tiny.ROWS), tiny.reads(tiny.batch(tiny.RAGGED), objective)

    def run(params: dict, rows: dict, keys: rng.Keys) -> tuple:
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step)
        fake = objective.generator.replace({}, example, keys, True)[0]
        terms, metrics, _ = objective.terms(params, {}, example, keys, False)
        outputs = jax.eval_shape(objective.outputs, params, rows)
        return example, fake, terms, metrics, objective.weights(example), {name: leaf.shape for name, leaf in outputs.items()}

    example, fake, terms, metrics, weights, outputs = jax.device_get(jax.jit(run)(params, rows, keys))
    assert set(terms) == set(weights) == {"rtd"} and weights["rtd"] == sum(tiny.RAGGED) and not any("mlm" in name for name in metrics)
    assert set(outputs) == {"hidden", "rtd"} and np.isfinite(terms["rtd"]) and metrics["mask_rate"][0] == example["masked"].sum()
    places = np.zeros_like(fake)
    np.put_along_axis(places, example["masked_at"], example["masked"], axis=1)
    places[:, 0] = 0  # Slots beyond a row's count point there, and [CLS] is never chosen.
    changed = fake != example["original"]
    assert fake.max() < 200 and changed.sum() >= 0.9 * places.sum(), "a hit is one in 200"
    drawn = np.take_along_axis(fake, example["masked_at"], axis=1)[example["masked"][:, 0] > 0, 0]
    assert len(set(drawn)) > len(drawn) / 2, "rows draw the same"
    assert (changed <= places).all() and places.sum() == example["masked"].sum() == metrics["replaced"][0] + (places - changed).sum()
    pair = tiny.objective(RtdConfig(), tiny.PAIR)
    assert objective.flops(48) == pair.flops(48) - pair.generator.flops(48)


def test_uniform_samples_are_those_of_one_device() -> None:
    """Bitwise, for rows that 8 devices share and for rows of the second half alone."""
    objective, rows = tiny.objective(UNIFORM, tiny.PAIR), tiny.batch(tiny.RAGGED)
    rows = tiny.reads(rows, objective)

    def fake(rows: dict, places: jax.Array) -> jax.Array:
        keys = rng.Keys(rng.training(0, jnp.int32(3), 1).base, places, jnp.int32(3))
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step)
        return objective.generator.replace({}, example, keys, True)[0]

    def on(devices: int, some: slice) -> np.ndarray:
        mesh = tiny.mesh("dp", devices)
        with jax.set_mesh(mesh):
            given = {name: array[some] for name, array in rows.items()}
            placed = partition.place({**given, "slot": np.arange(tiny.ROWS, dtype=np.uint32)[some]}, mesh)
            return np.asarray(jax.jit(lambda rows: fake({name: rows[name] for name in given}, rows["slot"]))(placed))

    whole = on(1, slice(None))
    np.testing.assert_array_equal(on(8, slice(None)), whole)
    np.testing.assert_array_equal(on(1, slice(16, None)), whole[16:])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"generator": "unigram"}, "objective.generator is 'unigram'; use learned or uniform"),
        ({"detects": "some"}, "objective.detects is 'some'; use all or chosen"),
        ({"generator": "uniform", "temperature": 2.0}, "leave objective.temperature and objective.mlm_coef at 1"),
        ({"generator": "uniform", "mlm_coef": 0.0}, "leave objective.temperature and objective.mlm_coef at 1"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        RtdConfig(**changes)
