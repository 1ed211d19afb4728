"""Bidirectional language modelling (Peters et al. 2018, ELMo, section 3.1): each word from those before it, and from those after it."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import families, losses, rng
from jaxenc import metrics as metric_sums
from jaxenc.config import at_least
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.families.both_directions import DIRECTIONS, Both, BothDirections, Read, TwoReaders
from jaxenc.families.contract import ModelConfig
from jaxenc.layers.softmax import Softmax
from jaxenc.objectives import parts, sampled
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.objectives.sampled import LogUniform
from jaxenc.rng import Keys
from jaxenc.tree import Tree

SOFTMAX = ("sampled", "full")
# The batch field with the targets of each direction.
TARGETS = MappingProxyType({"forward": "targets", "backward": "reverse_targets"})


@dataclasses.dataclass(frozen=True)
class BilmConfig(ObjectiveConfig[ModelConfig]):
    """Language modelling in both directions (ELMo), on rows with both directions (`data.rows=sentences`).

    The numbers are those of allenai/bilm-tf (bin/train_elmo.py).

    softmax: `sampled` trains on each target and `negatives` random ids, `full` on the whole vocabulary. The ids are drawn once a step and
        direction, for a vocabulary sorted by falling frequency (`objectives/sampled.py`). Held-out numbers use the full softmax.
    negatives: number of ids that a sampled softmax compares each target with.
    scale: factor of the loss, which is half the sum of both directions' means. It scales the gradients before they are clipped, and for
        Adagrad relative to its initial accumulator. The published factor is the number of words in a row, 20 (bilm/training.py).
    """

    kind: ClassVar[str] = "bilm"
    softmax: str = "sampled"
    negatives: int = 8192
    scale: float = 20.0

    def __post_init__(self) -> None:
        at_least(1, "objective", self, "negatives")
        if self.softmax not in SOFTMAX:
            raise UserError(f"objective.softmax is {self.softmax!r}", fix=f"use {' or '.join(SOFTMAX)}")
        if not self.scale > 0:
            raise UserError(f"objective.scale is {self.scale}", fix="it takes a positive number")

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        out = dict.fromkeys(("train.dupe_factor", "phases.max_predictions"), f"objective.kind={self.kind} masks nothing")
        return out if self.softmax == "sampled" else {**out, "objective.negatives": "objective.softmax=full takes every word"}

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Bilm":
        """The objective of one phase; with as many negatives as ids it uses the full softmax. Raises UserError for a model that does not
        read both ways."""
        readers = families.able(model, BothDirections, "objective.kind bilm takes a model that reads both ways").readers(setting.execution)
        samples = self.softmax == "sampled" and self.negatives < model.pieces
        law = LogUniform(model.pieces, self.negatives) if samples else None
        softmax = Softmax(model.vocab_size, model.pieces, model.width, setting.execution)
        return Bilm(readers, softmax, law, {name: 0.5 * self.scale for name in DIRECTIONS})


@dataclasses.dataclass(frozen=True)
class Bilm(Objective):
    """The mean negative log-likelihood of the words of a row, read forward and read backward. Each direction has a state, which is carried
    from row to row of a slot. Parameters: the model's and `softmax`, which both directions share.

    law: the distribution of the negatives in training, None for the full softmax. The carry is that of `TwoReaders.zero_state`; no gradient
    flows into it.
    """

    readers: TwoReaders
    softmax: Softmax
    law: LogUniform | None
    coef: Mapping[str, float]

    @property
    def heads(self) -> Mapping[str, Softmax]:
        """The softmax by its name in the parameter tree."""
        return {"softmax": self.softmax}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The paths of the softmax."""
        return ("softmax/table", "softmax/bias")

    @property
    def reads(self) -> Mapping[str, int]:
        model = self.readers.config
        reverse = {f"reverse_{name}": bound for name, bound in model.inputs.items() if name != "segments"}
        return {**model.inputs, **reverse, **dict.fromkeys(TARGETS.values(), model.vocab_size), "fresh": 2, "index": 0}

    def init(self, key: Array) -> Tree:
        hidden = jax.ShapeDtypeStruct((1, 1, self.readers.config.width), self.readers.execution.policy.compute)
        softmax = self.softmax.lazy_init(rng.part(key, "softmax"), hidden)["params"]
        return {**self.readers.start(rng.part(key, "encoder")), "softmax": softmax}

    def carry(self, batch: int) -> Tree:
        return self.readers.zero_state(batch)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {name: jnp.sum(example["segments"] > 0, dtype=jnp.int32) for name in self.coef}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        both, state = self.read(params, carry, example, keys if train else None)
        samples = train and self.law is not None
        scored = self.of_sample(params, both, example, keys) if samples else self.of_all(params, both, example)
        count = jnp.sum(example["segments"] > 0).astype(jnp.float32)
        terms, metrics, mark = {}, {}, "sampled_" if samples else ""
        for name, (loss, correct) in scored.items():
            terms[name] = loss
            metrics |= {f"{name}_{mark}loss": (loss, count), f"{name}_{mark}accuracy": (correct, count)}
        return terms, metrics, state

    def read(self, params: Tree, carry: Tree, example: Mapping[str, Array], noise: Keys | None) -> tuple[Both, Tree]:
        """(last layers of both directions, states after the rows). The state starts from zeros where `fresh`, i32 [batch], is 1, and stays
        as it is for a padding row."""
        fresh, real = example["fresh"] > 0, example["segments"] > 0
        state = jax.tree.map(lambda leaf: jnp.where(fresh.reshape(-1, *[1] * (leaf.ndim - 1)), 0, leaf), carry)
        reads = [Read(example.get(f"{way}tokens"), example.get(f"{way}characters"), real) for way in ("", "reverse_")]
        return self.readers.apply({"params": params}, *reads, state, noise)

    def of_all(self, params: Tree, both: Both, example: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
        """{direction: (sum of losses, number of correct predictions)} of the full softmax, computed for part of the places at a time."""
        weights = (example["segments"] > 0).astype(jnp.int32)

        def some(hidden: Array, targets: Array, weights: Array) -> tuple[Array, Array]:
            return losses.cross_entropy(self.logits(params, hidden), targets, weights)

        def one(name: str) -> tuple[Array, Array]:
            return parts.of_logits(some, padded(self.softmax.vocab_size), (getattr(both, name), example[TARGETS[name]], weights))

        return {name: one(name) for name in DIRECTIONS}

    def of_sample(self, params: Tree, both: Both, example: Mapping[str, Array], keys: Keys) -> dict[str, tuple[Array, Array]]:
        """As `of_all`, with a softmax over the targets and one sample of ids for each direction."""
        weights = example["segments"] > 0
        targets = jnp.stack([example[TARGETS[name]] for name in DIRECTIONS])
        ids = jnp.stack([self.law.draw(keys.shared("sample", name)) for name in DIRECTIONS])
        # The gradient of a look-up is as large as the table, so both directions share one look-up of targets and one of sampled ids.
        look_up = lambda ids: [jnp.take(leaf, ids, axis=0, mode="clip") for leaf in (params["softmax"]["table"], params["softmax"]["bias"])]
        rows = look_up(targets), look_up(ids)

        def one(at: int, hidden: Array) -> tuple[Array, Array]:
            own = jax.tree.map(lambda leaf: leaf[at], (targets, ids, *rows))
            return sampled.cross_entropy(self.law, hidden, own[0], weights, *own[1:])

        return {name: one(at, getattr(both, name)) for at, name in enumerate(DIRECTIONS)}

    def logits(self, params: Tree, hidden: Array) -> Array:
        """float32 [..., padded vocabulary] from the output of a direction, [..., width]."""
        return self.softmax.apply({"params": params["softmax"]}, hidden)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """`hidden` has both directions concatenated; `forward` has the logits of the next word, `backward` of the previous word, [batch,
        length, vocab_size]. example: with `characters` for a model that reads them."""
        hidden, _ = self.readers.text(params, example["tokens"], example.get("characters"), example["segments"])
        halves = zip(DIRECTIONS, jnp.split(hidden[-1], 2, axis=-1), strict=True)
        logits = {name: self.logits(params, half)[..., : self.softmax.vocab_size] for name, half in halves}
        return {"hidden": hidden.astype(jnp.float32), **logits}

    def flops(self, length: int) -> float:
        classes = self.law.count + 1 if self.law else self.softmax.vocab_size
        return 3 * (self.readers.forward_flops(length) + 2 * 2.0 * length * self.softmax.width * classes)

    def summary(self, sums: metric_sums.Sums) -> dict[str, float]:
        """The means and, for losses of the full softmax, the perplexity of each direction and of their mean loss, as in
        bilm/training.py."""
        means = super().summary(sums)
        nats = {name: means[f"{name}_loss"] for name in DIRECTIONS if f"{name}_loss" in means}
        if nats:
            means |= {f"{name}_perplexity": float(np.exp(value)) for name, value in nats.items()}
            means["perplexity"] = float(np.exp(np.mean(list(nats.values()))))
        return means
