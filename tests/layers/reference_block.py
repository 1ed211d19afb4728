"""Transformer layers of every frame in NumPy float64, one row, one head, one query at a time; written from the papers, not from jaxenc."""

import math

import numpy as np


def dense(x, p):
    return x @ p["kernel"] + p.get("bias", 0.0)


def layer_norm(x, p, epsilon):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * p["scale"] + p.get("bias", 0.0)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(x, p, heads, sees):
    """x [length, width]; sees(query, key)."""
    q, k, v = (dense(x, p[name]) for name in ("query", "key", "value"))
    d, mixed = x.shape[-1] // heads, np.zeros_like(x)
    for head, query in np.ndindex(heads, len(x)):
        part = slice(head * d, (head + 1) * d)
        keys = [key for key in range(len(x)) if sees(query, key)]
        weights = np.exp([q[query, part] @ k[key, part] / math.sqrt(d) for key in keys])
        mixed[query, part] = sum(weight * v[key, part] for weight, key in zip(weights / weights.sum(), keys, strict=True))
    return dense(mixed, p["output"])


def feed_forward(x, p):
    """Gated where there is a gate (Shazeer 2020: the activation is on the gate)."""
    inner = gelu(dense(x, p["gate"])) * dense(x, p["up"]) if "gate" in p else gelu(dense(x, p["up"]))
    return dense(inner, p["down"])


def stack(params, x, spec, uses, sees):
    """[layers + 1, length, width]: x [length, width] and every layer's output; uses: the stored layer that each layer computes with."""
    states = [x]
    for number in uses:
        p = params[f"layer_{number:02d}"]
        for name, sublayer in (
            ("attention", lambda x, p: attention(x, p, spec.heads, sees)),
            ("feed_forward", feed_forward),
        ):
            norm = lambda x, p=p[name]["norm"]: layer_norm(x, p, spec.norm_epsilon)
            x = x + sublayer(norm(x), p[name]) if spec.norm == "pre" else norm(x + sublayer(x, p[name]))
        states.append(x)
    if spec.norm == "pre":
        states[-1] = layer_norm(states[-1], params["final_norm"], spec.norm_epsilon)
    return np.stack(states)
