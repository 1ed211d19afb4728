"""An encoder with heads on it, as objectives use them: their parameters, the hidden states, and what each head says of them.

Heads go by their names in the parameter tree; ROLES says what each reads.
"""

from collections.abc import Collection, Iterable, Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import rng
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.layers.attend import Visible
from jaxenc.layers.dropout import dropout
from jaxenc.layers.heads import Classifier, LmHead, MlmHead, Pooler, RtdHead, Summary
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# What BERT has; `HeadsConfig` documents the others.
POOLER = "tanh"
Heads = Mapping[str, Pooler | Summary | MlmHead | LmHead | RtdHead | Classifier]

# `pools` makes one vector of a text's hidden states, and each family has one such head; `text` reads that vector, `tokens` the hidden state
# of every token, and `vocabulary` that and the token table, to which it is tied: it gives a logit for every token there is.
ROLES = {
    "pooler": "pools",
    "mlm": "vocabulary",
    "next_sentence": "text",
    "rtd": "tokens",
    "classifier": "text",
    "tags": "tokens",
    "spans": "tokens",
    "lm": "vocabulary",
    "summary": "pools",
}


def having(role: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that have this role; a head of another name, which an objective has for itself, reads `tokens`."""
    return tuple(name for name in names if ROLES.get(name, "tokens") == role)


def of(kind: str, model: ModelConfig, names: Collection[str], execution: Execution) -> Encoder:
    """The network of `model` that has the heads `names`, for the objective of this kind. Raises UserError for a model that has no such
    heads, and as `EncoderConfig.encoder`."""
    if not isinstance(model, EncoderConfig):
        raise UserError(f"objective.kind {kind} takes a model that heads sit on, such as bert: set model.kind, which is {model.kind}")
    return model.encoder(names, execution)


def made(names: Collection[str], encoder: Encoder, labels: int = 0, pooler_activation: str = POOLER) -> Heads:
    """The heads `names` for an encoder. labels: the number of classes of `classifier` and of `tags`."""
    model, execution, out = encoder.config, encoder.execution, {}
    init = model.initializer
    for name in names:
        if name == "pooler":
            out[name] = Pooler(encoder.width, pooler_activation, init, execution)
        elif name == "summary":
            out[name] = Summary(encoder.width, init, execution)
        elif name == "lm":
            out[name] = LmHead(model.vocab_size, execution)
        elif name == "mlm":
            out[name] = MlmHead(model.vocab_size, encoder.table_width, model.activation, model.norm_epsilon, init, execution)
        elif name == "rtd":
            out[name] = RtdHead(encoder.width, model.activation, init, execution)
        else:
            out[name] = Classifier(labels if name in ("classifier", "tags") else 2, init, execution)
    return out


def init(encoder: Encoder, heads: Heads, key: Array, site: str = "encoder") -> Tree:
    """Parameters of the encoder and, under its name, of each head; boxed with axis names, drawn part by part.

    site: of the encoder's draws, its own for each network of a pair.
    """
    config, row = encoder.config, jax.ShapeDtypeStruct((1, 2), jnp.int32)
    lengths = Visible.by_lengths(jax.ShapeDtypeStruct((1,), jnp.int32))
    params = dict(encoder.lazy_init(rng.part(key, site), row, row, row, lengths, None)["params"])
    hidden = jax.ShapeDtypeStruct((1, 1, encoder.width), encoder.execution.policy.compute)
    table = jax.ShapeDtypeStruct((padded(config.vocab_size), encoder.table_width), jnp.float32)
    segments = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    for name, head in heads.items():
        beside = (table,) if isinstance(head, MlmHead | LmHead) else (segments,) if isinstance(head, Pooler | Summary) else ()
        params[name] = head.lazy_init(rng.part(key, name), hidden, *beside)["params"]
    return params


def hidden(encoder: Encoder, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> Array:
    """The last layer, [batch, length, width] in the compute dtype; noise: None without dropout.

    The padding of a row is at its end, or anywhere where the model's attention does not go by lengths (`EncoderConfig.visible`).
    """
    visible = encoder.config.visible(example["segments"])
    return encoder.apply({"params": params}, example["tokens"], example["types"], example["positions"], visible, noise)


def outputs(encoder: Encoder, heads: Heads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """What `Objective.outputs` gives: the hidden states of all layers and all that the heads say, float32."""
    inputs = (example["tokens"], example["types"], example["positions"], Visible.by_keys(example["segments"]))
    states = encoder.apply({"params": params}, *inputs, None, all_layers=True)
    given = {"hidden": states, **pool_and_classify(encoder.config, heads, params, states[-1], example["segments"], None)}
    for name in having("vocabulary", heads):
        given[name] = tied_logits(name, heads[name], params, states[-1])[..., : encoder.config.vocab_size]
    return {name: value.astype(jnp.float32) for name, value in given.items()}


def pool_and_classify(
    model: EncoderConfig, heads: Heads, params: Tree, hidden: Array, segments: Array, noise: Keys | None
) -> dict[str, Array]:
    """{`pooled`: [batch, width], and under its name the logits of each head but a `vocabulary` one} from the last layer [batch, length,
    width].

    segments: i32 [batch, length], 0 = padding. noise: of the dropout on what classifiers read; None for none.
    """
    given: dict[str, Array] = {}
    for name in having("pools", heads):
        given["pooled"] = heads[name].apply({"params": params[name]}, hidden, segments)
    for role, features in (("text", given.get("pooled")), ("tokens", hidden)):
        for name in having(role, heads):
            read = dropout(features, model.dropout, noise, name) if name in model.dropped_out else features
            given[name] = heads[name].apply({"params": params[name]}, read)
    return given


def tied_logits(name: str, head: MlmHead | LmHead, params: Tree, hidden: Array) -> Array:
    """float32 [..., padded vocabulary] for hidden states [..., width]; the head `name` is tied to the token table."""
    return head.apply({"params": params[name]}, hidden, params["embeddings"]["token"]["table"])
