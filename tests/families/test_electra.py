"""Both networks of ELECTRA against a NumPy float64 forward pass, their parameter trees, where they start, what is refused."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen as nn

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.families.electra import sizes
from jaxenc.families.electra.model import Electra, ElectraConfig
from jaxenc.layers.visible import Visible
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny
from tests.families import reference_electra as reference

# Other widths than the tables', the same width, tables of the generator's own.
SHAPES = {
    "projected": tiny.PAIR,
    "plain": dataclasses.replace(tiny.PAIR, embedding=32),
    "untied": dataclasses.replace(tiny.PAIR, sharing="none"),
}


def run(model: ElectraConfig) -> Run:
    return Run(objective=RtdConfig(), model=model)


@pytest.mark.parametrize("name", SHAPES)
def test_equals_the_reference(name: str) -> None:
    """<= 2e-5 in every hidden state and logit, all of the order of 1, float32 against float64."""
    config = SHAPES[name]
    params, rows = tiny.drawn(run(config)), tiny.batch([9, 1, 13], 13)
    inputs = (rows["tokens"], rows["types"], rows["positions"])
    lengths = rows["segments"].sum(1)
    wide = jax.tree.map(np.float64, params)

    @jax.jit
    def states(params: Any) -> dict[str, tuple[jax.Array, jax.Array]]:
        """{network: (every layer, the last)}."""
        networks = {network: Electra(config, network, tiny.execution()) for network in ("generator", "discriminator")}
        given = ({"params": params}, *inputs, Visible.by_lengths(lengths), None)
        return {network: (one.apply(*given, all_layers=True).layers, one.apply(*given).last) for network, one in networks.items()}

    for network, (layers, last) in states(params).items():
        np.testing.assert_allclose(layers, reference.encode(wide, config, network, *inputs, lengths), rtol=0, atol=2e-5)
        np.testing.assert_allclose(last, layers[-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_what_each_network_reads(name: str) -> None:
    """The whole tree but for the layers: one set of tables or two, a projection where the widths differ, no pooler."""
    shapes, _ = parameters(tiny.objective(RtdConfig(), SHAPES[name]))
    paths = {path for path, _ in tree.leaves(shapes)}
    tables = [f"embeddings/{leaf}" for leaf in ("token/table", "position/table", "type/table", "norm/scale", "norm/bias")]
    layers = [path for path, _ in tree.leaves(parameters(tiny.objective())[0]) if path.startswith("encoder/")]
    expected = [*tables, *(f"discriminator/{path}" for path in layers)]
    expected += [f"generator/{path}" for path in layers if "layer_00" in path]
    expected += [f"mlm/{leaf}" for leaf in ("dense/kernel", "dense/bias", "norm/scale", "norm/bias", "bias")]
    expected += [f"rtd/{layer}/{leaf}" for layer in ("dense", "output") for leaf in ("kernel", "bias")]
    expected += [f"generator/project/{leaf}" for leaf in ("kernel", "bias")]
    expected += [f"discriminator/project/{leaf}" for leaf in ("kernel", "bias")] if name != "plain" else []
    expected += [f"generator/{path}" for path in tables] if name == "untied" else []
    assert paths == set(expected)
    assert shapes["mlm"]["dense"]["kernel"].shape == (16, SHAPES[name].embedding) and shapes["mlm"]["bias"].shape == (256,)


@pytest.mark.parametrize(
    "name, body, whole, generator, masked, joint",
    [
        ("small", 13_483_008, 13_549_057, 4_580_928, 4_620_026, 14_196_219),
        ("base", 108_891_648, 109_483_009, 33_511_168, 33_740_602, 119_386_427),
        ("large", 334_092_288, 335_142_913, 50_999_552, 51_295_290, 354_655_291),
    ],
)
def test_published_sizes(name: str, body: int, whole: int, generator: int, masked: int, joint: int) -> None:
    """Parameters of the discriminator and with its head, of the generator and with its head, and of all that pretraining trains."""
    config = sizes.electra(*sizes.ELECTRA[name])
    objective = tiny.objective(RtdConfig(), config)
    shapes, _ = parameters(objective)
    count = lambda *parts: parameter_count({part: shapes[part] for part in parts}, config.vocab_size, objective.vocabulary)
    assert count("embeddings", "discriminator") == body and count("embeddings", "discriminator", "rtd") == whole
    assert count("embeddings", "generator") == generator and count("embeddings", "generator", "mlm") == masked
    assert count(*shapes) == joint


def test_a_generator_as_wide_as_the_released_small_one() -> None:
    config = sizes.electra(12, 256, 128, 256)
    objective = tiny.objective(RtdConfig(), config)
    shapes, _ = parameters(objective)
    parts = {part: shapes[part] for part in ("embeddings", "generator", "mlm")}
    count = lambda params: parameter_count(params, config.vocab_size, objective.vocabulary)
    assert (count(parts), count(shapes)) == (13_546_682, 23_122_875)


def test_projections_start_from_glorot_draws_and_the_rest_from_the_config() -> None:
    """Uniform to ± sqrt(6 / (in + out)): the deviation is the bound / sqrt(3), within 10 %."""
    objective = tiny.objective(RtdConfig(), dataclasses.replace(sizes.electra(1, 512, 384, 128), vocab_size=200))

    @jax.jit
    def drawn(key: jax.Array) -> tuple[list, list]:
        """What is looked at below: the rest of the network is not compiled."""
        params = nn.meta.unbox(objective.init(key))
        glorot = [params["generator"]["project"], params["discriminator"]["project"], params["rtd"]["output"]]
        return glorot, [params["rtd"]["dense"]["kernel"], params["mlm"]["dense"]["kernel"]]

    glorot, cut = jax.device_get(drawn(rng.init_key(0)))
    for kernel in glorot:
        bound = np.sqrt(6 / sum(kernel["kernel"].shape))
        assert np.abs(kernel["kernel"]).max() <= bound and abs(np.std(kernel["kernel"]) * np.sqrt(3) / bound - 1) <= 0.1
        assert not kernel["bias"].any()
    for kernel in cut:
        assert np.abs(kernel).max() <= 0.04 and abs(np.std(kernel) / (0.87963 * 0.02) - 1) <= 0.05


def test_the_networks_drop_out_independently() -> None:
    """The same layer of both has the same site: their keys differ."""
    keys = rng.training(0, np.int32(3), 8)
    words = [keys.apart(network).words("attention_output", 0) for network in ("generator", "discriminator")]
    assert not any(np.array_equal(a, b) for a, b in zip(*words, strict=True))
    # Linen gives one network its noise apart from the other's, from the same keys.
    rows = tiny.batch([9, 13], 13)
    twins = dataclasses.replace(tiny.PAIR, layers=1, generator_width=32, generator_heads=4, generator_feed_forward=64)
    params = tiny.drawn(run(twins))
    params["generator"] = params["discriminator"]
    noise, lengths = rng.training(0, np.int32(0), 2), Visible.by_lengths(rows["segments"].sum(1))
    inputs = (rows["tokens"], rows["types"], rows["positions"], lengths)

    @jax.jit
    def both(given: rng.Keys | None) -> list[jax.Array]:
        networks = (Electra(twins, network, tiny.execution()) for network in ("generator", "discriminator"))
        return [network.apply({"params": params}, *inputs, given).last for network in networks]

    for given, same in ((None, True), (noise, False)):
        assert np.array_equal(*both(given)) == same


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"generator_width": 17}, "model.generator_width 17 does not divide into model.generator_heads 2"),
        ({"width": 33}, "model.width 33 does not divide into model.heads 4"),
        ({"generator_heads": 0}, "model.generator_heads is 0; it is at least 1"),
        ({"embedding": 0}, "model.embedding is 0; it is at least 1"),
        ({"sharing": "all"}, "model.sharing is 'all'; use embeddings or none"),
        ({"dropout": 1.0}, "model.dropout is 1.0"),
        ({"activation": "gelu"}, "model.activation is 'gelu'"),
    ],
)
def test_refusals_name_the_field(changes: dict, message: str) -> None:
    with pytest.raises(UserError, match=message.replace(".", r"[.]")):
        dataclasses.replace(tiny.PAIR, **changes)
