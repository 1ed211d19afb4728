"""BERT in NumPy float64, one row, one head, one query at a time: slow, and written from the paper and facts, not from jaxenc."""

import math

import numpy as np


def dense(x, p):
    return x @ p["kernel"] + p["bias"]


def layer_norm(x, p, epsilon):
    out = np.empty_like(x)
    for index in np.ndindex(x.shape[:-1]):
        mean = math.fsum(x[index]) / x.shape[-1]
        variance = math.fsum((x[index] - mean) ** 2) / x.shape[-1]
        out[index] = (x[index] - mean) / math.sqrt(variance + epsilon) * p["scale"] + p["bias"]
    return out


def gelu(x, name):
    if name == "gelu_erf":
        return np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel()]).reshape(x.shape)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(x, p, heads, length):
    """x [length, width]; every query sees the first `length` keys."""
    q, k, v = dense(x, p["query"]), dense(x, p["key"]), dense(x, p["value"])
    d = x.shape[-1] // heads
    mixed = np.zeros_like(x)
    for head in range(heads):
        part = slice(head * d, (head + 1) * d)
        for query in range(len(x)):
            scores = [q[query, part] @ k[key, part] / math.sqrt(d) for key in range(length)]
            weights = np.exp(np.array(scores) - max(scores))
            weights /= weights.sum()
            for key in range(length):
                mixed[query, part] += weights[key] * v[key, part]
    return dense(mixed, p["output"])


def encode_row(params, config, tokens, types, positions, length):
    """Hidden states [layers + 1, length, width] of one row."""
    tables = params["embeddings"]
    x = tables["token"]["table"][np.asarray(tokens)] + tables["position"]["table"][np.asarray(positions) + config.first_position]
    if config.types:
        x = x + np.stack([tables["type"]["table"][t] for t in types])
    x = layer_norm(x, tables["norm"], config.norm_epsilon)
    return stack(params["encoder"], x, config.heads, config.activation, config.norm_epsilon, length)


def stack(encoder, x, heads, activation, epsilon, length):
    """x [length, width] and the output of every layer."""
    states = [x]
    for number in range(len(encoder)):
        p = encoder[f"layer_{number:02d}"]
        x = layer_norm(x + attention(x, p["attention"], heads, length), p["attention"]["norm"], epsilon)
        inner = gelu(dense(x, p["feed_forward"]["up"]), activation)
        x = layer_norm(x + dense(inner, p["feed_forward"]["down"]), p["feed_forward"]["norm"], epsilon)
        states.append(x)
    return np.stack(states)


def encode(params, config, tokens, types, positions, lengths):
    """Hidden states [layers + 1, batch, length, width]."""
    return np.stack([encode_row(params, config, *row) for row in zip(tokens, types, positions, lengths, strict=True)], axis=1)


def mlm_logits(head, table, config, hidden):
    """Logits [..., vocab_size]."""
    x = layer_norm(gelu(dense(hidden, head["dense"]), config.activation), head["norm"], config.norm_epsilon)
    return (x @ table.T + head["bias"])[..., : config.vocab_size]


def nsp_logits(pooler, head, hidden):
    """Logits [batch, 2]."""
    return dense(np.tanh(dense(hidden[:, 0], pooler["dense"])), head["dense"])
