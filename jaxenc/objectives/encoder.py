"""An encoder with heads on it, as objectives use them: their parameters, the hidden states, and what each head says of them.

Heads go by their names in the parameter tree: `pooler`, `mlm`, `rtd`, and the classifiers `next_sentence`, `classifier`, `tags`,
`spans`.
"""

from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import rng
from jaxenc.layers.attend import Visible
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import padded
from jaxenc.layers.heads import Classifier, MlmHead, Pooler, RtdHead
from jaxenc.models.base import Encoder
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# What BERT has; `HeadsConfig` documents the others.
POOLER = "tanh"
Heads = Mapping[str, Pooler | MlmHead | RtdHead | Classifier]

# Classifiers of a whole text read the pooler's vector; the others read the hidden state of every token.
ON_POOLED = ("next_sentence", "classifier")
# As transformers' BertForSequenceClassification and BertForTokenClassification drop out what the head reads; the others do not.
DROPPED_OUT = ("classifier", "tags")


def made(names: Collection[str], encoder: Encoder, labels: int = 0, pooler_activation: str = POOLER) -> Heads:
    """The heads `names` for an encoder. labels: the number of classes of `classifier` and of `tags`."""
    model, execution, out = encoder.config, encoder.execution, {}
    init = model.initializer
    for name in names:
        if name == "pooler":
            out[name] = Pooler(encoder.width, pooler_activation, init, execution)
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
    for name, head in heads.items():
        inputs = (hidden, table) if isinstance(head, MlmHead) else (hidden,)
        params[name] = head.lazy_init(rng.part(key, name), *inputs)["params"]
    return params


def hidden(encoder: Encoder, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> Array:
    """The last layer, [batch, length, width] in the compute dtype, of rows whose padding is at their end; noise: None without dropout."""
    visible = Visible.by_lengths(jnp.sum(example["segments"] > 0, axis=1))
    return encoder.apply({"params": params}, example["tokens"], example["types"], example["positions"], visible, noise)


def outputs(encoder: Encoder, heads: Heads, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
    """What `Objective.outputs` gives: the hidden states of all layers and all that the heads say, float32."""
    inputs = (example["tokens"], example["types"], example["positions"], Visible.by_keys(example["segments"]))
    states = encoder.apply({"params": params}, *inputs, None, all_layers=True)
    given = {"hidden": states, **pool_and_classify(heads, params, states[-1], None, 0.0)}
    if "mlm" in heads:
        given["mlm"] = mlm_logits(heads["mlm"], params, states[-1])[..., : encoder.config.vocab_size]
    return {name: value.astype(jnp.float32) for name, value in given.items()}


def pool_and_classify(heads: Heads, params: Tree, hidden: Array, noise: Keys | None, rate: float) -> dict[str, Array]:
    """{`pooled`: [batch, width], and under its name the logits of each head but `mlm`} from the last layer [batch, length, width].

    rate: of the dropout on what classifiers read, where `noise` is given.
    """
    given: dict[str, Array] = {}
    if "pooler" in heads:
        given["pooled"] = heads["pooler"].apply({"params": params["pooler"]}, hidden)
    for name, head in heads.items():
        if name not in ("pooler", "mlm"):
            features = given["pooled"] if name in ON_POOLED else hidden
            features = dropout(features, rate, noise, name) if name in DROPPED_OUT else features
            given[name] = head.apply({"params": params[name]}, features)
    return given


def mlm_logits(head: MlmHead, params: Tree, hidden: Array) -> Array:
    """float32 [..., padded vocabulary] for hidden states [..., width]; the head is tied to the token table."""
    return head.apply({"params": params["mlm"]}, hidden, params["embeddings"]["token"]["table"])
