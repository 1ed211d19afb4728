"""Causal language modelling: each token from those before it (Radford et al. 2018, section 3.1)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import families
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, ModelConfig
from jaxenc.heads.contract import Fitted
from jaxenc.heads.next_token import NEXT_TOKEN, targets
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.rng import Keys
from jaxenc.tree import Tree


@dataclasses.dataclass(frozen=True)
class CausalConfig(ObjectiveConfig[ModelConfig]):
    """Causal language modelling: the next token at every place of a row, for a model with `model.attention=causal`. It has no fields."""

    kind: ClassVar[str] = "causal"
    trains: ClassVar[tuple[str, ...]] = (NEXT_TOKEN.name,)

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        return dict.fromkeys(("train.dupe_factor", "phases.max_predictions"), f"objective.kind={self.kind} masks nothing")

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Causal":
        """The objective of one phase. Raises UserError for a model whose attention is not causal."""
        if "causal" not in model.attentions:
            able = encoders.with_heads((NEXT_TOKEN.name,), setting.execution)
            kinds = [kind for kind in able if "causal" in families.MODELS[kind]().attentions]
            what = f"objective.kind {self.kind} needs model.attention=causal, which a model of kind {model.kind} does not have"
            raise UserError(what, fix=f"set model.kind to {' or '.join(kinds)}")
        encoder = encoders.of(self.kind, model, (NEXT_TOKEN.name,), setting.execution)
        if (attention := encoder.config.attention) != "causal":
            # A model that is made of others has none of its own: the encoder's config is that of one of its fields, in a pair the last.
            nested = [f".{field.name}" for field in dataclasses.fields(model) if getattr(model, field.name) is encoder.config]
            field = f"model{''.join(nested[-1:])}.attention"
            raise UserError(f"{field} is {attention}", fix=f"objective.kind {self.kind} needs {field}=causal")
        return Causal(encoder, encoders.fit(encoder, (NEXT_TOKEN,))[NEXT_TOKEN.name])


@dataclasses.dataclass(frozen=True)
class Causal(Objective):
    """The mean negative log-likelihood of each token given those before it in its segment; the first of a segment is not predicted.

    Parameters: the encoder's; the head has none.
    """

    encoder: Encoder
    head: Fitted
    coef: Mapping[str, float] = dataclasses.field(default_factory=lambda: {"causal": 1.0})

    @property
    def heads(self) -> encoders.FittedHeads:
        """The head by its name."""
        return {self.head.head.name: self.head}

    @property
    def reads(self) -> Mapping[str, int]:
        return {**self.encoder.config.inputs, "index": 0}

    def init(self, key: Array) -> Tree:
        return encoders.init(self.encoder, self.heads, key)

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {"causal": jnp.sum(targets(example["tokens"], example["segments"])[1])}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        states = encoders.read(self.encoder, params, example, keys if train else None)
        loss, correct, count = encoders.own_tokens(self.encoder, self.head, params, states, example)
        return {"causal": loss}, {"causal_loss": (loss, count), "causal_accuracy": (correct, count)}, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return encoders.outputs(self.encoder, self.heads, params, example)

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.encoder, params, example)

    def flops(self, length: int) -> float:
        return 3 * (self.encoder.forward_flops(length) + encoders.forward_flops(self.encoder, self.head, length))
