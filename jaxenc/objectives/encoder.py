"""An encoder with its heads, for use by objectives: their parameters, hidden states and outputs."""

import dataclasses
from collections.abc import Collection, Mapping
from types import MappingProxyType

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import families, losses, rng
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families import attentive
from jaxenc.families.contract import Encoder, Encodes, ModelConfig
from jaxenc.families.states import States
from jaxenc.heads.contract import Fitted, Head, Setting
from jaxenc.heads.pooler import TANH
from jaxenc.layers.dropout import dropout
from jaxenc.layers.visible import Visible
from jaxenc.objectives import parts
from jaxenc.rng import Keys
from jaxenc.tree import Tree

FittedHeads = Mapping[str, Fitted]


def having(role: str, heads: FittedHeads) -> FittedHeads:
    """Those of `heads` with this role."""
    return {name: one for name, one in heads.items() if one.head.role == role}


def of(
    kind: str, model: ModelConfig, names: Collection[str], execution: Execution, chosen: bool = False, beside: Collection[str] = ()
) -> Encoder:
    """The network of `model` that the heads `names` read, for the objective `kind`.

    chosen: the heads are the user's choice and not those that every objective of this kind has; beside: the other heads that the objective
    has, of this network or of another. Raises UserError for a model without an encoder, with the kinds of model that have all these heads,
    and as `EncoderConfig.encoder`.
    """
    try:
        return families.able(model, Encodes, f"objective.kind {kind} takes an encoder").encoder(names, execution)
    except UserError as error:
        others = with_heads(beside, execution)
        fitting = [one for one in with_heads(names, execution) if one in others]
        if model.kind in fitting or not fitting or (chosen and isinstance(model, Encodes)):
            raise
        raise UserError(error.what, fix=f"set model.kind to {' or '.join(fitting)}, not {model.kind}") from error


def with_heads(names: Collection[str], execution: Execution) -> list[str]:
    """The built-in kinds of model that have an encoder with these heads."""
    return [kind for kind, cls in families.MODELS.items() if _has(cls(), names, execution)]


def _has(model: ModelConfig, names: Collection[str], execution: Execution) -> bool:
    """Whether `model` has an encoder with these heads."""
    try:
        return isinstance(model, Encodes) and bool(model.encoder(names, execution))
    except UserError:
        return False


def fit(
    encoder: Encoder,
    heads: Collection[Head],
    labels: tuple[str, ...] = (),
    pooler_activation: str = TANH,
    rates: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Fitted]:
    """{name: head with its module for `encoder`}. labels: the names of the classes, for heads that classify. rates: {name of a head: the
    dropout rate on its input}, 0 for the others.

    Raises UserError for a head that reads the first token in a model with causal attention: its output would be the same for all texts.
    """
    model = encoder.config
    for head in heads:
        if head.reads_first and model.attention == "causal":
            held = f"model.attention is causal and the head {head.name} reads the first token, which then sees nothing but itself"
            raise UserError(held, fix="set model.attention to full, or choose an objective or heads without it")
    layer = (model.activation, model.norm_epsilon, model.initializer)
    setting = Setting(encoder.width, encoder.table_width, model.pieces, *layer, encoder.execution, labels, pooler_activation, model.dropout)
    whole = dataclasses.replace(setting, pieces=model.vocab_size)
    return {head.name: Fitted(head, head.module(setting), head.module(whole), rates.get(head.name, 0.0)) for head in heads}


def init(encoder: Encoder, heads: FittedHeads, key: Array, site: str = "encoder") -> Tree:
    """The initial parameters of the encoder and, under its name, of each head, boxed with their axis names.

    site: the name in `rng.SITES` that the encoder's draws are derived from, a different one for each network of a pair.
    """
    row = jax.ShapeDtypeStruct((1, 2), jnp.int32)
    lengths = Visible.by_lengths(jax.ShapeDtypeStruct((1,), jnp.int32))
    params = dict(encoder.lazy_init(rng.part(key, site), row, row, row, lengths, None)["params"])
    return params | {name: own for name, one in heads.items() if (own := _parameters(encoder, one, key))}


def _parameters(encoder: Encoder, one: Fitted, key: Array) -> Tree:
    """The initial parameters of one head, {} for a head without parameters."""
    compute = encoder.execution.policy.compute
    tokens, segments = jax.ShapeDtypeStruct((1, 1, encoder.width), compute), jax.ShapeDtypeStruct((1, 1), jnp.int32)
    table = jax.ShapeDtypeStruct((padded(encoder.config.vocab_size), encoder.table_width), jnp.float32)
    fields = {field.name: jax.ShapeDtypeStruct((1, 1) if field.axis else (1,), jnp.dtype(field.dtype)) for field in one.head.inputs}
    inputs = {
        "pools": (tokens, segments),
        "text": (jax.ShapeDtypeStruct((1, encoder.width), compute),),
        "tokens": (tokens,),
        "vocabulary": (tokens, table),
        "search": (tokens, {"segments": segments, **fields}, None, None),
    }
    return one.module.lazy_init(rng.part(key, one.head.site), *inputs[one.head.role]).get("params", {})


def read(encoder: Encoder, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> States:
    """The states of training rows under the model's own mask (`EncoderConfig.visible`), which for most models expects padding at the end
    of a row; in packed rows (`Execution.packed`) a token sees the tokens of its own text only. noise: the keys of dropout, None for
    evaluation."""
    config, segments = encoder.config, example["segments"]
    visible = config.attended(Visible.by_segments(segments)) if encoder.execution.packed else config.visible(segments)
    return encoder.apply({"params": params}, example["tokens"], example["types"], example["positions"], visible, noise)


def outputs(encoder: Encoder, heads: FittedHeads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """The result of `Objective.outputs`: the hidden states of all layers and the outputs of all heads, float32. Logits on the vocabulary
    cover the spare rows of the model, which losses, predictions and samples leave out."""
    visible = encoder.config.attended(Visible.by_keys(example["segments"]))
    inputs = (example["tokens"], example["types"], example["positions"], visible)
    states = encoder.apply({"params": params}, *inputs, None, all_layers=True)
    whole = {name: dataclasses.replace(one, module=one.whole) for name, one in heads.items()}
    given = logits(whole, params, states, example["segments"], None)
    for name in having("vocabulary", heads):
        given[name] = given[name][..., : encoder.config.vocab_size]
    given |= flat(searched(heads, params, states, example))
    return {name: _float32(value) for name, value in {"hidden": states.layers, **given}.items()}


def attentions(encoder: Encoder, params: Tree, example: Mapping[str, Array]) -> Array:
    """The result of `Objective.attentions`. Raises UserError for an encoder that is not `families.attentive.Attentive`."""
    visible = encoder.config.attended(Visible.by_keys(example["segments"]))
    inputs = (example["tokens"], example["types"], example["positions"], visible)
    return attentive.required(encoder).attention_maps(params, *inputs)


def logits(heads: FittedHeads, params: Tree, states: States, segments: Array, noise: Keys | None) -> dict[str, Array]:
    """{`pooled`: [batch, width], name of each other head: its logits}, from the last layer.

    segments: i32 [batch, length], 0 = padding. noise: the keys of the dropout on the inputs of heads (`Fitted.dropout`); None for
    evaluation. Heads on the vocabulary return [batch, length, padded vocabulary].
    """
    given: dict[str, Array] = {}
    for one in having("pools", heads).values():
        given["pooled"] = apply(one, params, dropout(states.last, one.dropout, noise, one.head.site), segments)
    for role, features in (("text", given.get("pooled")), ("tokens", states.last)):
        for name, one in having(role, heads).items():
            given[name] = apply(one, params, dropout(features, one.dropout, noise, one.head.site))
    return given | {name: apply(one, params, states.last, states.table) for name, one in having("vocabulary", heads).items()}


def own_tokens(encoder: Encoder, one: Fitted, params: Tree, states: States, texts: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """(sum of the cross-entropies of a head that learns from the tokens of its rows (`Head.targets`), number of right predictions, number
    of predictions), float32 scalars. texts: fields [batch, length]. The logits are computed part by part where they are too many."""
    targets, counted = one.head.targets(texts["tokens"], texts["segments"])

    def some(hidden: Array, targets: Array, counted: Array) -> tuple[Array, Array]:
        return losses.cross_entropy(apply(one, params, hidden, states.table), targets, counted)

    loss, correct = parts.of_logits(some, padded(encoder.config.vocab_size), (states.last, targets, counted))
    return loss, correct, jnp.sum(counted).astype(jnp.float32)


def row_logits(encoder: Encoder, heads: FittedHeads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """{name: float32 logits} of each of `heads` on a text, [rows, ...], or on tokens, [rows, length, ...], and {name: predictions} of those
    that search, without dropout, for the predictions of an evaluation."""
    asked = {name: one for role in ("text", "tokens") for name, one in having(role, heads).items()}
    states = read(encoder, params, example, None)
    given = logits({**having("pools", heads), **asked}, params, states, example["segments"], None)
    return {name: given[name].astype(jnp.float32) for name in asked} | searched(heads, params, states, example)


def searched(heads: FittedHeads, params: Tree, states: States, example: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """{name: predictions} of each of `heads` with the role `search`, floats in float32. example: holds `segments` and their inputs."""
    found = {name: apply(one, params, states.last, example, None, None) for name, one in having("search", heads).items()}
    return jax.tree.map(_float32, found)


def flat(given: Mapping[str, Array | Mapping[str, Array]]) -> dict[str, Array]:
    """{name: array}, with every array of a dict, such as the predictions of a search, under `name_part`."""
    parts = {name: value if isinstance(value, Mapping) else {"": value} for name, value in given.items()}
    return {f"{name}_{part}" if part else name: array for name, value in parts.items() for part, array in value.items()}


def _float32(array: Array) -> Array:
    """Floats as float32, integers as they are."""
    return array.astype(jnp.float32) if jnp.issubdtype(array.dtype, jnp.floating) else array


def apply(one: Fitted, params: Tree, *inputs: Tree) -> Tree:
    """The output of a head for the inputs of its role; params: those of the whole objective."""
    return one.module.apply({"params": params.get(one.head.name, {})}, *inputs)


def forward_flops(encoder: Encoder, one: Fitted, length: int) -> float:
    """FLOPs of a head's matrix products on one row of `length` tokens, forward; a multiply-add counts as two. A head that searches counts
    as if every product were on all tokens."""
    shapes = jax.tree.leaves(jax.eval_shape(lambda: _parameters(encoder, one, rng.init_key(0))))
    products = sum(leaf.size for leaf in shapes if leaf.ndim > 1)
    if one.head.role == "vocabulary":
        products += encoder.table_width * encoder.config.vocab_size
    return 2.0 * products * (1 if one.head.role in ("pools", "text") else length)
