"""GPT: its published size, what a token sees, dropout on the tables, its head on a text, and its folders of transformers."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import config, rng
from jaxenc.convert import hf
from jaxenc.errors import UserError
from jaxenc.families.count import parameter_count
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.gpt.sizes import GPT, gpt
from jaxenc.inference.model import Model
from jaxenc.layers.dropout import dropout
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run, from_dict
from jaxenc.training.state import parameters
from tests import tiny
from tests.convert import folders
from tests.layers.reference_block import stack
from tests.parity.cases import golden

TINY = GptConfig(vocab_size=200, width=16, layers=2, heads=2, feed_forward=64, positions=64)
QUIET = dataclasses.replace(TINY, dropout=0.0, table_dropout=0.0, attention_dropout=0.0)
DOUBLE = HeadsConfig(("next_token", "last_token", "choice"), choices=2)
LENGTH = 12


def test_the_published_size() -> None:
    """40,478 tokens and 512 positions, 12 layers; the tied softmax adds nothing."""
    model = gpt(*GPT["base"])
    assert model == GptConfig()
    objective = tiny.objective(CausalConfig(), model, 512)
    assert parameter_count(parameters(objective)[0], model.vocab_size, objective.vocabulary) == 116_534_784


def test_equals_the_reference_in_float64() -> None:
    """Every layer and the logits within 1e-5 of a loop over places: no norm before the first layer or after the last, no types."""
    run = Run(CausalConfig(), QUIET)
    params, batch = tiny.drawn(run), tiny.batch((LENGTH,), LENGTH)
    found = Model(run, params, None).apply(params, {"tokens": batch["tokens"]})
    wide = jax.tree.map(np.float64, params)
    table = wide["embeddings"]["token"]["table"]
    x = table[batch["tokens"][0]] + wide["embeddings"]["position"]["table"][:LENGTH]
    layers = stack(wide["encoder"], x, QUIET.block, (0, 1), lambda query, key: key <= query)
    np.testing.assert_allclose(found["hidden"][:, 0], layers, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["next_token"][0], layers[-1] @ table[:200].T, rtol=0, atol=1e-5)
    assert set(params["embeddings"]) == {"token", "position"} and set(params) == {"embeddings", "encoder"}


def test_nothing_before_a_change_moves() -> None:
    """Bitwise, with dropout and without, at every layer and in the logits; the place of the change does move, in every row."""
    run = Run(CausalConfig(), TINY)
    objective, params = tiny.objective(CausalConfig(), TINY, LENGTH), tiny.drawn(run)
    batch, keys = tiny.batch([LENGTH] * 4, LENGTH), rng.training(0, jnp.int32(3), 4)

    @jax.jit
    def given(batch: Any) -> list[jax.Array]:
        seen = [encoders.read(objective.encoder, params, batch, noise).last for noise in (keys, None)]
        outputs = objective.outputs(params, batch)
        return [*seen, *outputs["hidden"], outputs["next_token"]]

    before = jax.device_get(given(batch))
    for place in (0, 5, LENGTH - 2):
        tokens = np.where(np.arange(LENGTH) > place, (batch["tokens"] + 7) % 200, batch["tokens"])
        for old, new in zip(before, jax.device_get(given({**batch, "tokens": tokens})), strict=True):
            np.testing.assert_array_equal(new[:, : place + 1], old[:, : place + 1])
            assert (new[:, place + 1] != old[:, place + 1]).any(axis=-1).all()


def test_the_tied_softmax_reads_the_dropped_table() -> None:
    """With dropout on the tables alone, the training loss is within 1e-5 of an evaluation on the dropped tables: one draw for tokens and
    softmax, and none on the sum."""
    model = dataclasses.replace(QUIET, table_dropout=0.3)
    objective, params = tiny.objective(CausalConfig(), model, LENGTH), tiny.drawn(Run(CausalConfig(), model))
    batch, keys = tiny.reads(tiny.batch((12, 9, 3, 12), LENGTH), objective), rng.training(0, jnp.int32(3), 4)
    loss = jax.jit(lambda params, train: objective.terms(params, {}, batch, keys, train)[0]["causal"], static_argnums=1)
    tables = {
        name: {"table": dropout(jnp.asarray(params["embeddings"][name]["table"]), 0.3, keys.over(rows), "tables", number)}
        for number, (name, rows) in enumerate({"token": 256, "position": 64}.items())
    }
    dropped, whole = loss({**params, "embeddings": tables}, False), loss(params, False)
    assert abs(loss(params, True) - dropped) <= 1e-5 * dropped
    softmax_alone = {**params, "embeddings": {**tables, "token": params["embeddings"]["token"]}}
    assert abs(dropped - whole) > 1e-3 * whole < abs(dropped - loss(softmax_alone, False))


def test_a_text_is_its_last_token() -> None:
    """The vector and the score of rows of all lengths, padded at the end or at the start; the score is a dense layer on that vector."""
    run = Run(DOUBLE, QUIET)
    params, batch = tiny.drawn(run), tiny.batch((LENGTH, 7, 1), LENGTH)
    tokens, segments = batch["tokens"].copy(), batch["segments"].copy()
    tokens[1], segments[1] = np.roll(tokens[1], 5), np.roll(segments[1], 5)
    for rows, last in ((batch, (11, 6, 0)), ({"tokens": tokens, "segments": segments}, (11, 11, 0))):
        found = Model(run, params, None).apply(params, {name: rows[name] for name in ("tokens", "segments")})
        vectors = np.asarray(found["hidden"])[-1, np.arange(3), last]
        np.testing.assert_array_equal(found["pooled"], vectors)
        dense = params["choice"]["dense"]
        np.testing.assert_allclose(found["choice"], (vectors @ dense["kernel"] + dense["bias"])[:, 0], rtol=0, atol=1e-5)
    assert "last_token" not in params and "next_token" not in params


@pytest.mark.parametrize(
    "objective, architecture",
    [(HeadsConfig(), "OpenAIGPTModel"), (CausalConfig(), "OpenAIGPTLMHeadModel"), (DOUBLE, "OpenAIGPTDoubleHeadsModel")],
    ids=lambda one: getattr(one, "kind", one),
)
def test_out_and_in_is_the_identity(objective: Any, architecture: str, tmp_path: Path) -> None:
    """Parameters bitwise, the model and the objective; the run goes through JSON. Rates that differ find their own fields."""
    model = dataclasses.replace(TINY, dropout=0.2, table_dropout=0.3, attention_dropout=0.4)
    run = Run(objective, model)
    ours = Model(run, tiny.drawn(run), None)
    assert from_dict(json.loads(json.dumps(config.to_dict(run)))) == run
    assert hf.save(tmp_path / "out", ours) == {tmp_path / "out": architecture}
    again = hf.load(tmp_path / "out")
    assert (again.config.model, again.config.objective) == (model, objective)
    tiny.assert_bitwise(again.params, ours.params)
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    names = ("resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_first_dropout", "afn", "n_positions")
    assert [written[name] for name in names] == [0.2, 0.3, 0.4, 0.2, "gelu", 64]


def theirs(folder: Path, rename: Any = lambda name: name, drop: str = "", **changed: Any) -> Path:
    """The golden OpenAIGPTDoubleHeadsModel as a folder, tensors renamed or left out, and fields of its config changed."""
    name = "OpenAIGPTDoubleHeadsModel"
    settings = {**json.loads(str(golden(name)["config"])), "architectures": [name], **changed}
    arrays = {rename(key): value for key, value in golden(name, "weights/").items() if not (drop and key.startswith(drop))}
    return folders.write(folder, arrays, {key: value for key, value in settings.items() if value != "absent"})


def test_files_of_other_versions_hold_the_same(tmp_path: Path) -> None:
    """Masks and positions as buffers, no prefix, the softmax beside the table or alone, and a config from before model_type."""
    first = hf.load(theirs(tmp_path / "first"))
    arrays = folders.read(tmp_path / "first" / "model.safetensors")
    (tied,) = (name for name in arrays if name in ("lm_head.weight", "transformer.tokens_embed.weight"))
    table = arrays.pop(tied)
    masks = {f"transformer.h.{n}.attn.bias": np.ones((1, 1, 14, 14), np.float32) for n in range(2)}
    bare = {name.removeprefix("transformer."): array for name, array in (arrays | masks).items()}
    settings = json.loads((tmp_path / "first" / "config.json").read_text())
    del settings["model_type"]
    for number, held in enumerate(
        (
            arrays | masks | {"transformer.position_ids": np.arange(14, dtype=np.int64), "lm_head.weight": table},
            bare | {"tokens_embed.weight": table},
            bare | {"tokens_embed.weight": table, "lm_head.weight": table},
        )
    ):
        again = hf.load(folders.write(tmp_path / str(number), held, settings))
        assert again.config == first.config
        tiny.assert_bitwise(again.params, first.params)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"architectures": ["OpenAIGPTForSequenceClassification"]}, "its LMHeadModel and its DoubleHeadsModel can be converted"),
        ({"summary_type": "mean"}, "summary_type is 'mean'; only 'cls_index'"),
        ({"summary_proj_to_labels": False}, "summary_proj_to_labels is False; only True"),
        ({"summary_activation": "tanh"}, "summary_activation is 'tanh'; only None"),
        ({"afn": "silu"}, "afn is 'silu'; only gelu, relu can be converted"),
        ({"n_head": 3}, "n_embd 8 does not divide into n_head 3"),
        ({"n_embd": "8"}, "n_embd is '8'"),
        ({"n_layer": 10**6}, "its config has 1000000 layers"),
        ({"n_embd": 16}, "n_embd is 16, which the shapes of the tensors contradict; set n_embd to 8 there"),
        ({"embd_pdrop": 1.0}, "embd_pdrop is 1.0"),
    ],
)
def test_what_cannot_come_in_is_one_line(changed: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words) as error:
        hf.load(theirs(tmp_path / "theirs", **changed))
    assert str(error.value).startswith(str(tmp_path)) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "objective, changed, words",
    [
        (CausalConfig(), {"feed_forward": 48}, "model.feed_forward is 48; transformers' GPT has 4 · model.width, 64"),
        (CausalConfig(), {"activation": "gelu_erf"}, "model.activation is gelu_erf; transformers' GPT takes gelu_tanh or relu"),
        (HeadsConfig(("last_token", "classifier"), ("a", "b")), {}, "the head classifier has a bias, .* only choice can be exported"),
    ],
)
def test_what_transformers_does_not_have_is_one_line(objective: Any, changed: dict, words: str, tmp_path: Path) -> None:
    run = Run(objective, dataclasses.replace(TINY, **changed))
    with pytest.raises(UserError, match=words):
        hf.save(tmp_path / "out", Model(run, tiny.drawn(run), None))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: GptConfig(width=10, heads=3), "model.width 10 does not divide into model.heads 3"),
        (lambda: GptConfig(table_dropout=1.0), "model.table_dropout is 1.0"),
        (lambda: GptConfig(attention="full"), "model.attention is 'full'; model.kind gpt takes causal"),
        (lambda: tiny.objective(MlmConfig(), TINY), "mlm is not a head of model.kind gpt; set model.kind to bert or "),
        (
            lambda: tiny.objective(HeadsConfig(("classifier",), ("a", "b")), TINY),
            "without pooler or summary or last_token or first_token, whose vector",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()
