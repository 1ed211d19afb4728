"""ELECTRA's joint objective beside two networks of transformers: the rows, our loss of them and its gradients. Needs neither library."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng
from jaxenc.convert import assemble, hf
from jaxenc.data.batch import Batch
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.families.electra import two_models
from jaxenc.inference.model import Model
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.rtd import Rtd, RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training import accumulate
from jaxenc.training.state import layout
from jaxenc.tree import Tree
from tests import tiny
from tests.parity import ours
from tests.parity.cases import CASES, GOLDEN, VOCAB, example, inputs

NETWORKS = ("generator", "discriminator")
# So many of 20 tokens are predicted that draws with replacement fall twice on one place.
OBJECTIVES = {
    "clean": RtdConfig(rate=0.6),
    "with_replacement": RtdConfig(rate=0.6, mask_share=0.85, with_replacement=True, temperature=0.7),
}
SETTINGS = [(sharing, name) for sharing in ("embeddings", "none") for name in OBJECTIVES]
# The golden arrays have each mode and each sharing once.
COMMITTED = [("embeddings", "with_replacement"), ("none", "clean")]
# The id that the generator mostly says, so that some of its guesses are right.
USUAL = 7
FILE = GOLDEN / "electra_pair.npz"
VOCABULARY = Vocabulary(size=VOCAB, pad=0, unk=1, cls=2, sep=3, mask=4, reserved=(0, 1, 2, 3, 4), fingerprint="")


@dataclasses.dataclass(frozen=True)
class Joint:
    """What both sides are fed, and what ours makes of it. example: the corrupted rows; fake: i32 [batch, length], with the samples in
    them; gap: the least by which any sample was the best; gradients: of `loss` by the parameters of `model`."""

    model: Model
    example: Batch
    fake: np.ndarray
    gap: float
    loss: float
    gradients: Tree


def write(folder: Path, configs: Mapping[str, Any], weights: Mapping[str, Mapping[str, np.ndarray]]) -> Path:
    """The folders of both networks, as `hf.load` opens them."""
    for network in NETWORKS:
        ours.write_folder(folder / network, configs[network], weights[network])
    return folder


def computed(folder: Path, config: RtdConfig) -> Joint:
    """Our side in float32, by what the trainer calls, in training but without dropout."""
    model = hf.load(folder)
    quiet = dataclasses.replace(model.config.model, dropout=0.0, attention_dropout=0.0)
    objective, params = config.build(quiet, PhaseSetting(VOCABULARY, tiny.execution(), DataConfig(length=11))), model.params
    rows = _rows(model)
    place = layout(objective, OptimConfig(), len(rows["tokens"]), tiny.mesh("dp", 1), "dp")
    keys = rng.training(0, jnp.int32(0), len(rows["tokens"]))

    @jax.jit
    def run(params: Tree, rows: Batch) -> tuple:
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step)
        with jax.default_matmul_precision("highest"):
            grads, sums, counts, _, _ = accumulate.gradients(objective, 1, place, params, {}, {}, example, keys)
            logits = objective.generator.logits(params, example, None)
        fake, gap = objective.generator.sampled(logits, example, keys), _gap(objective, logits, example, keys)
        return example, fake, gap, accumulate.combine(objective, sums, counts), grads

    return Joint(model, *jax.device_get(run(params, rows)))


def _rows(model: Model) -> Batch:
    """Three rows of 11, 7 and 2 tokens padded to 11, of two types, that begin with [CLS]; every third token is USUAL."""
    case = CASES["ElectraModel"]
    theirs = inputs(case, seed=8)
    theirs["input_ids"][:, 1::3] = np.where(theirs["attention_mask"][:, 1::3] > 0, USUAL, VOCABULARY.pad)
    theirs["input_ids"][:, 0] = VOCABULARY.cls
    rows = example(case, theirs, model.config.model.positions_of(theirs["input_ids"]))
    return {**rows, "index": np.arange(len(rows["tokens"]), dtype=np.uint32)}


def _gap(objective: Rtd, logits: jax.Array, example: Batch, keys: rng.Keys) -> jax.Array:
    noise = sample.gumbel(keys.per_row("sample", "generator"), *logits.shape[1:])
    best = jax.lax.top_k(logits + objective.generator.temperature * noise, 2)[0]
    return jnp.min(jnp.where(example["masked"] > 0, best[..., 0] - best[..., 1], jnp.inf))


def in_our_layout(model: Model, theirs: Mapping[str, Mapping[str, np.ndarray]]) -> Tree:
    """A tree of ours from {network: {transformers' name: value}}; what both networks share comes with each of them."""
    one = hf.models(model)
    turned = {network: dataclasses.replace(one[network], params=ours.in_our_layout(one[network], theirs[network])) for network in NETWORKS}
    whole, _ = two_models.join({network: assemble.weights(part) for network, part in turned.items()})
    return whole.params


def golden(prefix: str) -> dict[str, np.ndarray]:
    """What tests/golden/hf/make.py left of the pair: the arrays whose names begin with `prefix`, by what follows it."""
    with np.load(FILE) as file:
        return {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}


def golden_folder(folder: Path, sharing: str) -> Path:
    """The folders of both networks. The file has tables of the generator's own; where they are shared, the discriminator's are in both."""
    weights = {network: golden(f"weights/{network}/") for network in NETWORKS}
    if sharing == "embeddings":
        weights["generator"] |= {name: value for name, value in weights["discriminator"].items() if name.startswith("electra.embeddings.")}
    return write(folder, {network: json.loads(str(text)) for network, text in golden("config/").items()}, weights)


def assert_all_kinds_of_places(rows: Batch, fake: np.ndarray, name: str) -> None:
    """Predictions that were replaced, others that were guessed right, padding, and with replacement a place that was drawn twice."""
    row, slot = np.nonzero(rows["masked"])
    places = set(zip(row.tolist(), rows["masked_at"][row, slot].tolist(), strict=True))
    wrong = fake != rows["original"]
    assert (len(places) < len(row)) == (name == "with_replacement")
    assert 0 < wrong.sum() < len(places) and not wrong[rows["segments"] == 0].any() and (rows["segments"] == 0).any()
