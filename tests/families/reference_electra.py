"""ELECTRA's two networks in NumPy float64, with the layers of reference_bert; written from the paper and google-research/electra."""

import numpy as np

from tests.families import reference_bert as bert


def encode(params, config, network, tokens, types, positions, lengths):
    """Hidden states [layers + 1, batch, length, width] of the generator or the discriminator."""
    tables = params[network].get("embeddings", params["embeddings"])
    heads = config.generator_heads if network == "generator" else config.heads
    rows = []
    for row, kinds, places, length in zip(tokens, types, positions, lengths, strict=True):
        x = tables["token"]["table"][row] + tables["position"]["table"][places] + tables["type"]["table"][kinds]
        x = bert.layer_norm(x, tables["norm"], config.norm_epsilon)
        x = bert.dense(x, params[network]["project"]) if "project" in params[network] else x
        rows.append(bert.stack(params[network]["encoder"], x, heads, config.activation, config.norm_epsilon, length))
    return np.stack(rows, axis=1)


def mlm_logits(params, config, hidden):
    """Logits [..., vocab_size] of the generator's head."""
    tables = params["generator"].get("embeddings", params["embeddings"])
    return bert.mlm_logits(params["mlm"], tables["token"]["table"], config, hidden)


def rtd_logits(params, config, hidden):
    """Logits [...] of the discriminator's head."""
    return bert.dense(bert.gelu(bert.dense(hidden, params["rtd"]["dense"]), config.activation), params["rtd"]["output"])[..., 0]
