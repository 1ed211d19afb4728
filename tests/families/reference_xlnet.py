"""XLNet's two streams in NumPy float64, one row, one head, one query at a time; written from the paper and facts, not from jaxenc."""

import math

import numpy as np

from tests.families.reference_bert import dense, gelu, layer_norm


def sinusoid(distance, width):
    """[sin | cos] of one distance."""
    angles = [distance / 10000 ** (2 * i / width) for i in range(width // 2)]
    return np.array([math.sin(a) for a in angles] + [math.cos(a) for a in angles])


def attention(queries, places, labels, sees, keys, key_labels, p, heads, direction, clamp):
    """queries [n, width] at `places` of a line of `keys` [m, width], memory first; sees bool [n, m]. The sum before the norm."""
    width, d = keys.shape[1], keys.shape[1] // heads
    q, k, v = queries @ p["query"]["kernel"], keys @ p["key"]["kernel"], keys @ p["value"]["kernel"]
    mixed = np.zeros_like(queries)
    for head in range(heads):
        part = slice(head * d, (head + 1) * d)
        for query, place in enumerate(places):
            scores = []
            for key in range(len(keys)):
                distance = (place - key) * direction
                distance = max(-clamp, min(clamp, distance)) if clamp else distance
                r = (sinusoid(distance, width) @ p["relative"]["kernel"])[part]
                s = p["segment"]["table"][0 if labels[query] == key_labels[key] else 1][part]
                three = [(p["content_bias"], k[key, part]), (p["position_bias"], r), (p["segment_bias"], s)]
                scores.append(sum((q[query, part] + bias[part]) @ value for bias, value in three) / math.sqrt(d))
            seen = np.flatnonzero(sees[query])
            if len(seen):  # else the query reads nothing
                weights = np.exp(np.array(scores)[seen] - max(scores[key] for key in seen))
                mixed[query, part] = weights / weights.sum() @ v[seen, part]
    return queries + mixed @ p["output"]["kernel"]


def layer(x, places, labels, sees, keys, key_labels, p, config, direction):
    """One layer on the queries x of either stream."""
    epsilon = config.norm_epsilon
    x = attention(x, places, labels, sees, keys, key_labels, p["attention"], config.heads, direction, config.clamp)
    x = layer_norm(x, p["attention"]["norm"], epsilon)
    inner = gelu(dense(x, p["feed_forward"]["up"]), config.activation)
    return layer_norm(x + dense(inner, p["feed_forward"]["down"]), p["feed_forward"]["norm"], epsilon)


def encode_row(params, config, tokens, types, direction, memory, sees, at=(), query_sees=None):
    """([layers + 1, length, width], [layers + 1, predictions, width]) of one row; memory: [layers, places, width], all of it real."""
    h = params["embeddings"]["token"]["table"][tokens]
    g = np.tile(params["embeddings"]["mask"], (len(at), 1))
    before = memory.shape[1]
    key_labels, places = [0] * before + list(types), [before + i for i in range(len(tokens))]
    content, query = [h], [g]
    for number in range(config.layers):
        p, keys = params["encoder"][f"layer_{number:02d}"], np.concatenate([memory[number], h])
        g = layer(g, [before + i for i in at], [types[i] for i in at], query_sees, keys, key_labels, p, config, direction)
        h = layer(h, places, types, sees, keys, key_labels, p, config, direction)
        content.append(h)
        query.append(g)
    return np.stack(content), np.stack(query)


def summary(head, hidden, last):
    """[batch, width]: of the token at `last` of each row."""
    return np.tanh(dense(hidden[np.arange(len(last)), last], head["dense"]))
