"""A head on the features of a frozen encoder of any family (Peters et al. 2018; Liu et al. 2019, Linguistic Knowledge and Transferability
of Contextual Representations)."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import rng
from jaxenc.config import at_least
from jaxenc.data.batch import FIELDS, Field
from jaxenc.errors import UserError
from jaxenc.families.both_directions import BothDirections
from jaxenc.families.contract import ModelConfig
from jaxenc.heads.contract import Head, Setting
from jaxenc.heads.probe import MIX, Probe
from jaxenc.layers import initializers
from jaxenc.layers.scalar_mix import regulariser
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting, Sums
from jaxenc.objectives.features import Features, FeaturesConfig
from jaxenc.objectives.heads import Heads, HeadsConfig, counted_labels
from jaxenc.rng import Keys
from jaxenc.tree import Tree

PROBE = "probe"  # the key of all parameters that are trained
# For `optim.freeze`: the path of every other parameter.
ALL_OTHERS = rf"(?!{PROBE}/).*"
READERS = ("linear", "bilstm")


@dataclasses.dataclass(frozen=True)
class FrozenConfig:
    """What reads the features of a frozen encoder, between the encoder and the classes of the task. Raises UserError for a value that does
    not fit.

    part: the name of this part in a recipe, for messages.
    reader: `linear`, a linear layer on the features, or `bilstm`, one on the outputs of a BiLSTM. Empty, the encoder is not frozen.
    layer: the layer whose features are read, 0 for the input of the first layer; -1 = a learned mix of all (Peters et al. 2018).
    layer_norm: whether each layer is normalised before it is mixed (`layers.scalar_mix.normalised`).
    penalty: strength of the L2 on the weights of the mix; 1 holds it at the average, 0.001 lets it vary (Peters et al. 2018).
    dropout: rate on the features and on the outputs of the BiLSTM; ELMo's published use has 0.5 (allennlp modules/elmo.py).
    cells: of the BiLSTM in each direction.
    depth: number of BiLSTM layers.
    """

    part: ClassVar[str] = "frozen"

    reader: str = ""
    layer: int = MIX
    layer_norm: bool = False
    penalty: float = 0.0
    dropout: float = 0.0
    cells: int = 200
    depth: int = 1

    def __post_init__(self) -> None:
        if self.reader and self.reader not in READERS:
            raise UserError(f"{self.part}.reader is {self.reader!r}", fix=f"use {' or '.join(READERS)}")
        at_least(MIX, self.part, self, "layer")
        at_least(0, self.part, self, "penalty")
        at_least(1, self.part, self, "cells", "depth")
        if not 0 <= self.dropout < 1:
            raise UserError(f"{self.part}.dropout is {self.dropout}", fix="it takes a rate from 0 up to but not including 1")


@dataclasses.dataclass(frozen=True)
class ProbeConfig(FrozenConfig, ObjectiveConfig[ModelConfig]):
    """A head on the features of a frozen encoder, which `reader` and the other fields describe. A run of it freezes the encoder:
    `optim.freeze` holds ALL_OTHERS.

    head: the head that reads them, one on a text or on tokens with labels. The vector of a text is the mean over the tokens of its row,
        special tokens included.
    labels: names of the classes, in the order of the logits.
    """

    kind: ClassVar[str] = "probe"
    part: ClassVar[str] = "objective"

    reader: str = "linear"
    head: str = "tags"
    labels: tuple[str, ...] = ()

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Probing":
        """The objective, whatever the vocabulary and the predictions. Raises UserError for a head that is not on a text or on tokens, for a
        head without classes, and for a layer that the model does not have."""
        head = setting.heads.get(self.head)
        if head is None or head.role not in ("text", "tokens") or not head.labels or head.chooses:
            known = [name for name, one in setting.heads.items() if one.role in ("text", "tokens") and one.labels and not one.chooses]
            raise UserError(f"objective.head is {self.head!r}", fix=f"it takes {', '.join(known)}")
        if head.classifies and not self.labels:
            raise UserError("objective.labels is empty", fix=f"name the classes of {head.name}")
        if not self.reader:
            raise UserError("objective.reader is ''", fix=f"use {' or '.join(READERS)}")
        encoder = frozen_encoder(model, setting)
        layers, width = _shape(encoder)
        if self.layer >= layers:
            fix = f"use 0 (the input of the first layer) to {layers - 1}, or -1 for a mix of all"
            raise UserError(f"the layer is {self.layer}, and the model has {layers - 1} layers", fix=fix)
        depth, policy = self.depth if self.reader == "bilstm" else 0, setting.execution
        read = 2 * self.cells if depth else width
        # Of a head, only the width of what it reads, its initializer and its classes matter here.
        head_setting = Setting(read, read, 1, "tanh", 1e-12, initializers.glorot_uniform, policy, self.labels, "tanh", 0.0)
        pools = head.role == "text"
        module = Probe(self.layer, self.layer_norm, self.dropout, self.cells, depth, pools, head.module(head_setting), policy)
        return Probing(encoder, module, head, len(self.labels), self.penalty if self.layer == MIX else 0.0)


def frozen_encoder(model: ModelConfig, setting: PhaseSetting) -> Features | Heads:
    """The objective of the encoder alone, whose output `hidden` is the features. Raises UserError for a model without an encoder."""
    # Its attention takes padding at any place of a row.
    setting = dataclasses.replace(setting, execution=dataclasses.replace(setting.execution, attention="xla"))
    return (FeaturesConfig() if isinstance(model, BothDirections) else HeadsConfig()).build(model, setting)


@dataclasses.dataclass(frozen=True)
class Probing(Objective):
    """The loss of one head on the features of an encoder, through which no gradient flows.

    encoder: an objective whose `outputs` hold `hidden`. classes: the number of labels. penalty: of the mix, as `FrozenConfig` says.
    Parameters: the encoder's, and those of `heads.probe.Probe` under PROBE.
    """

    encoder: Features | Heads
    module: Probe
    head: Head
    classes: int
    penalty: float

    @property
    def coef(self) -> Mapping[str, float]:
        """The head's loss, and the L2 of the mix where it has a strength."""
        return {self.head.name: 1.0, **({"mix": self.penalty} if self.penalty else {})}

    @property
    def heads(self) -> Mapping[str, Any]:
        """The probe by its key in the parameter tree."""
        return MappingProxyType({PROBE: self.module})

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """None: no head has a row for each token."""
        return ()

    @property
    def fields(self) -> Mapping[str, Field]:
        """The standard fields and the labels of the head."""
        return {**{label.name: label.field.sized("classes", self.classes) for label in self.head.labels}, **FIELDS}

    @property
    def reads(self) -> Mapping[str, int]:
        bounds = {"classes": self.classes, "length": 0}
        return {**self.encoder.reads, **{label.name: bounds.get(label.bound, label.bound) for label in self.head.labels}}

    def init(self, key: Array) -> Tree:
        layers, width = _shape(self.encoder)
        hidden, segments = jax.ShapeDtypeStruct((layers, 1, 1, width), jnp.float32), jax.ShapeDtypeStruct((1, 1), jnp.int32)
        probe = self.module.lazy_init(rng.part(key, PROBE), hidden, segments, None)["params"]
        return {**self.encoder.init(key), PROBE: probe}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return dict(one)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        rows = {"mix": jnp.int32(len(example["segments"]))} if self.penalty else {}
        return {self.head.name: jnp.sum(counted_labels(self.head, example)), **rows}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        logits = self._logits(params, self._hidden(params, example), example, keys if train else None)
        counted = counted_labels(self.head, example)
        labels = {label.name: jnp.where(counted > 0, example[label.name], 0) for label in self.head.labels}
        total, sums = self.head.loss(logits, labels, counted)
        count = jnp.sum(counted).astype(jnp.float32)
        metrics = {f"{self.head.name}_{metric}": (value, count) for metric, value in {"loss": total, **sums}.items()}
        # A sum over rows, as every term is: divided by their number it is the same for any split of the batch.
        squares = {"mix": regulariser(params[PROBE]["mix"], 1.0) * len(example["segments"])} if self.penalty else {}
        return {self.head.name: total, **squares}, metrics, carry

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        hidden = self._hidden(params, example)
        return {"hidden": hidden, self.head.name: self._logits(params, hidden, example, None)}

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return self.encoder.attentions(params, example)

    def predict(self, params: Tree, example: Mapping[str, Array], keys: Keys) -> dict[str, Array]:
        """The head's prediction; labels are not read."""
        return {self.head.name: self.head.prediction(self._logits(params, self._hidden(params, example), example, None))}

    def flops(self, length: int) -> float:
        """Of the encoder forward, and of the probe forward and backward."""
        shapes = jax.tree.leaves(jax.eval_shape(self.init, rng.init_key(0))[PROBE])
        products = sum(leaf.size for leaf in shapes if leaf.ndim > 1)
        return self.encoder.flops(length) / 3 + 3 * 2.0 * products * length

    def _hidden(self, params: Tree, example: Mapping[str, Array]) -> Array:
        """float32 [layers + 1, batch, length, width], without dropout and without a gradient."""
        # A model that reads characters has no use for the tokens, which its batches leave out.
        hidden = self.encoder.outputs(params, {"tokens": example["segments"], **example})["hidden"]
        return jax.lax.stop_gradient(hidden)

    def _logits(self, params: Tree, hidden: Array, example: Mapping[str, Array], noise: Keys | None) -> Array:
        """float32 logits of the head."""
        return self.module.apply({"params": params[PROBE]}, hidden, example["segments"], noise).astype(jnp.float32)


def _shape(encoder: Features | Heads) -> tuple[int, int]:
    """(layers + 1, width) of the features."""
    if isinstance(encoder, Features):
        return encoder.readers.config.layers + 1, 2 * encoder.readers.config.width
    return encoder.encoder.config.layers + 1, encoder.encoder.width
