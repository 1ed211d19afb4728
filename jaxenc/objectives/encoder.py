"""An encoder with heads on it, as objectives use them: their parameters, the hidden states, and what each head says of them."""

from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import families, rng
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder, EncoderConfig, Encodes, ModelConfig, States
from jaxenc.heads.contract import Fitted, Head, Setting
from jaxenc.heads.pooler import TANH
from jaxenc.layers.attend import Visible
from jaxenc.layers.dropout import dropout
from jaxenc.rng import Keys
from jaxenc.tree import Tree

Heads = Mapping[str, Fitted]


def having(role: str, heads: Heads) -> Heads:
    """Those of `heads` that have this role."""
    return {name: one for name, one in heads.items() if one.head.role == role}


def of(kind: str, model: ModelConfig, names: Collection[str], execution: Execution) -> Encoder:
    """The network of `model` that has the heads `names`, for the objective of this kind. Raises UserError for a model that has no such
    heads, and as `EncoderConfig.encoder`."""
    return families.able(model, Encodes, f"objective.kind {kind} takes a model that heads sit on").encoder(names, execution)


def fit(encoder: Encoder, heads: Collection[Head], labels: tuple[str, ...] = (), pooler_activation: str = TANH) -> dict[str, Fitted]:
    """`heads` with their modules for an encoder, by name. labels: the names of the classes of those that classify.

    Raises UserError for a head that reads the first token of a model that attends to the past alone: it would be the same for all texts.
    """
    model = encoder.config
    for head in heads:
        if head.reads_first and model.attention == "causal":
            held = f"model.attention is causal and the head {head.name} reads the first token, which then sees nothing but itself"
            raise UserError(f"{held}: set model.attention to full, or do without the head")
    layer = (model.activation, model.norm_epsilon, model.initializer)
    setting = Setting(encoder.width, encoder.table_width, model.vocab_size, *layer, encoder.execution, labels, pooler_activation)
    return {head.name: Fitted(head, head.module(setting)) for head in heads}


def init(encoder: Encoder, heads: Heads, key: Array, site: str = "encoder") -> Tree:
    """Parameters of the encoder and, under its name, of each head; boxed with axis names, drawn part by part.

    site: of the encoder's draws, its own for each network of a pair.
    """
    row = jax.ShapeDtypeStruct((1, 2), jnp.int32)
    lengths = Visible.by_lengths(jax.ShapeDtypeStruct((1,), jnp.int32))
    params = dict(encoder.lazy_init(rng.part(key, site), row, row, row, lengths, None)["params"])
    return params | {name: own for name, one in heads.items() if (own := _parameters(encoder, one, key))}


def _parameters(encoder: Encoder, one: Fitted, key: Array) -> Tree:
    """Of one head; {} where it has none."""
    compute = encoder.execution.policy.compute
    tokens = jax.ShapeDtypeStruct((1, 1, encoder.width), compute)
    table = jax.ShapeDtypeStruct((padded(encoder.config.vocab_size), encoder.table_width), jnp.float32)
    inputs = {
        "pools": (tokens, jax.ShapeDtypeStruct((1, 1), jnp.int32)),
        "text": (jax.ShapeDtypeStruct((1, encoder.width), compute),),
        "tokens": (tokens,),
        "vocabulary": (tokens, table),
    }
    return one.module.lazy_init(rng.part(key, one.head.site), *inputs[one.head.role]).get("params", {})


def read(encoder: Encoder, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> States:
    """The states of rows as training reads them; noise: None without dropout.

    The padding of a row is at its end, or anywhere where the model's attention does not go by lengths (`EncoderConfig.visible`).
    """
    visible = encoder.config.visible(example["segments"])
    return encoder.apply({"params": params}, example["tokens"], example["types"], example["positions"], visible, noise)


def outputs(encoder: Encoder, heads: Heads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """What `Objective.outputs` gives: the hidden states of all layers and all that the heads say, float32."""
    visible = encoder.config.attended(Visible.by_keys(example["segments"]))
    inputs = (example["tokens"], example["types"], example["positions"], visible)
    states = encoder.apply({"params": params}, *inputs, None, all_layers=True)
    given = logits(encoder.config, heads, params, states, example["segments"], None)
    for name in having("vocabulary", heads):
        given[name] = given[name][..., : encoder.config.vocab_size]
    return {name: value.astype(jnp.float32) for name, value in {"hidden": states.layers, **given}.items()}


def logits(model: EncoderConfig, heads: Heads, params: Tree, states: States, segments: Array, noise: Keys | None) -> dict[str, Array]:
    """{`pooled`: [batch, width], and under its name what each head says} of the last layer.

    segments: i32 [batch, length], 0 = padding. noise: of the dropout on what heads read, where the model has one; None for none. Heads on
    the vocabulary give [batch, length, padded vocabulary].
    """
    given: dict[str, Array] = {}
    for one in having("pools", heads).values():
        given["pooled"] = apply(one, params, states.last, segments)
    for role, features in (("text", given.get("pooled")), ("tokens", states.last)):
        for name, one in having(role, heads).items():
            read = dropout(features, model.dropout, noise, one.head.site) if name in model.dropped_out else features
            given[name] = apply(one, params, read)
    return given | {name: apply(one, params, states.last, states.table) for name, one in having("vocabulary", heads).items()}


def row_logits(encoder: Encoder, heads: Heads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """{name: float32 logits} of each of `heads` on a text, [rows, ...], or on tokens, [rows, length, ...], without dropout: what the
    predictions of an evaluation are made of."""
    asked = {name: one for role in ("text", "tokens") for name, one in having(role, heads).items()}
    states = read(encoder, params, example, None)
    given = logits(encoder.config, {**having("pools", heads), **asked}, params, states, example["segments"], None)
    return {name: given[name].astype(jnp.float32) for name in asked}


def apply(one: Fitted, params: Tree, *inputs: Array) -> Array:
    """What a head says of what its role reads, with its own of the parameters `params`."""
    return one.module.apply({"params": params.get(one.head.name, {})}, *inputs)


def forward_flops(encoder: Encoder, one: Fitted, length: int) -> float:
    """FLOPs of a head's matrix products on one row of `length` tokens, forward; a multiply and an add are two."""
    shapes = jax.tree.leaves(jax.eval_shape(lambda: _parameters(encoder, one, rng.init_key(0))))
    products = sum(leaf.size for leaf in shapes if leaf.ndim > 1)
    if one.head.role == "vocabulary":
        products += encoder.table_width * encoder.config.vocab_size
    return 2.0 * products * (1 if one.head.role in ("pools", "text") else length)
