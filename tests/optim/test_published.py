"""The optimizers of published fine-tuning as fields of `OptimConfig`: five updates beside float64 loops written from their sources.

Bounds: |a - b| <= 1e-6 · (|b| + max|b| of the leaf), and 2e-4 of what the five updates moved the leaf by.
"""

import math
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import tree
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.masks import decay_mask
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.state import parameters
from tests import tiny

SHAPES = {
    "classifier/dense/bias": (2,),
    "classifier/dense/kernel": (4, 2),
    "embeddings/norm/scale": (4,),
    "embeddings/token/table": (8, 4),
    "encoder/layer_00/attention/query/bias": (4,),
    "encoder/layer_00/attention/query/kernel": (4, 4),
    "encoder/layer_01/attention/query/kernel": (4, 4),
    "encoder/layer_01/feed_forward/norm/bias": (4,),
}
# zihangdai/xlnet:modeling.py, r_w_bias.
OF_XLNET = {"encoder/layer_00/attention/content_bias": (4,)}
LR, STEPS = 1e-2, 40
Params = dict[str, np.ndarray]
# A step of a loop: (state, parameters, gradients, step from 0) -> parameters after it. The state starts empty.
Rule = Callable[[dict, Params, Params, int], Params]


def start(shapes: dict[str, tuple[int, ...]]) -> Params:
    rng = np.random.default_rng(1)
    return {path: rng.normal(size=shape).astype(np.float32) for path, shape in shapes.items()}


def gradients(shapes: dict[str, tuple[int, ...]], step: int) -> Params:
    """Of 1e-7 to 1: the smallest are of the size of every epsilon, and the norm is above 1."""
    rng = np.random.default_rng(100 + step)
    size = lambda shape: 10.0 ** rng.uniform(-7, 0, size=shape) * rng.choice([-1, 1], size=shape)
    return {path: size(shape).astype(np.float32) for path, shape in shapes.items()}


def clipped(grads: Params, limit: float = 1.0) -> Params:
    """tf.clip_by_global_norm."""
    norm = math.sqrt(sum(np.sum(np.float64(g) ** 2) for g in grads.values()))
    return {path: np.float64(g) * limit / max(norm, limit) for path, g in grads.items()}


def moments(state: dict, path: str, g: np.ndarray, beta1: float, beta2: float) -> tuple[np.ndarray, np.ndarray]:
    m, v = state.get(path, (np.zeros(g.shape), np.zeros(g.shape)))
    state[path] = m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
    return m, v


def uncorrected(state: dict, params: Params, grads: Params, lr: Callable[[str], float], decay: float, kept: str = "^$") -> Params:
    """AdamWeightDecayOptimizer of google-research/bert, albert, electra (optimization.py) and zihangdai/xlnet (model_utils.py).

    Its epsilon is 1e-6. Names with LayerNorm, layer_norm or bias do not decay, except those that match `kept`.
    """
    out = {}
    for path, g in clipped(grads).items():
        m, v = moments(state, path, g, 0.9, 0.999)
        update = m / (np.sqrt(v) + 1e-6)
        if re.search(kept, path) or not re.search("norm|bias", path):
            update = update + decay * params[path]
        out[path] = params[path] - lr(path) * update
    return out


def bert(state: dict, params: Params, grads: Params, step: int) -> Params:
    """google-research/bert:optimization.py: tf.train.polynomial_decay from step 0, its first steps replaced by the warm-up."""
    lr = LR * step / 4 if step < 4 else LR * (1 - step / STEPS)
    return uncorrected(state, params, grads, lambda _: lr, 0.01)


def electra(decay: float) -> Rule:
    """google-research/electra:model/optimization.py: the decay from step 0 times the ramp, and _get_layer_lrs with 0.8 and two layers."""
    exponents = {"embeddings/": 4, "encoder/layer_00/": 3, "encoder/layer_01/": 2, "classifier/": 0}

    def rule(state: dict, params: Params, grads: Params, step: int) -> Params:
        lr = LR * (1 - step / STEPS) * min(1.0, step / 4)
        share = lambda path: 0.8 ** next(exponent for name, exponent in exponents.items() if path.startswith(name))
        return uncorrected(state, params, grads, lambda path: lr * share(path), decay)

    return rule


def xlnet_rate(step: int) -> float:
    """zihangdai/xlnet:model_utils.py, decay_method poly: from the end of the warm-up."""
    return LR * step / 4 if step < 4 else LR * (1 - (step - 4) / (STEPS - 4))


def xlnet(state: dict, params: Params, grads: Params, step: int) -> Params:
    """zihangdai/xlnet:model_utils.py with weight_decay 0, which takes tf.train.AdamOptimizer, and adam_epsilon 1e-6 and lr_layer_decay_rate
    0.75 as in run_squad.py: gradients of layer l of 2 times 0.75^(1 - l) after clipping. r_w_bias is outside its layers."""
    out = {}
    for path, g in clipped(grads).items():
        inside = path.startswith("encoder/layer_00") and not path.endswith("content_bias")
        m, v = moments(state, path, g * (0.75 if inside else 1), 0.9, 0.999)
        corrected = xlnet_rate(step) * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        out[path] = params[path] - corrected * m / (np.sqrt(v) + 1e-6)
    return out


def xlnet_decayed(state: dict, params: Params, grads: Params, step: int) -> Params:
    """The same file with weight_decay 0.01: its uncorrected Adam, which decays r_w_bias, r_r_bias and r_s_bias."""
    return uncorrected(state, params, grads, lambda _: xlnet_rate(step), 0.01, kept="content_bias")


def fairseq(state: dict, params: Params, grads: Params, step: int) -> Params:
    """facebookresearch/fairseq: optim/adam.py with betas (0.9, 0.98), eps 1e-6 and weight decay 0.1 on everything, clip_norm 0, and
    optim/lr_scheduler/polynomial_decay_schedule.py (examples/roberta/config/finetuning)."""
    lr, out = LR * step / 4 if step <= 4 else LR * (1 - (step - 4) / (STEPS - 4)), {}
    for path, grad in grads.items():
        m, v = moments(state, path, np.float64(grad), 0.9, 0.98)
        step_size = lr * math.sqrt(1 - 0.98 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        p = params[path] - 0.1 * lr * params[path]
        out[path] = p - step_size * m / (np.sqrt(v) + 1e-6)
    return out


def gpt(state: dict, params: Params, grads: Params, step: int) -> Params:
    """openai/finetune-transformer-lm:opt.py, adam with l2 0.01, vector_l2 off, e 1e-8, max_grad_norm 1 and warmup_linear: bias correction
    multiplies the decay too. Its warm-up is 0.002 of the updates: of 40, only the first has x <= 0.002, and the rate 0."""
    x, out = step / STEPS, {}
    s = float(x <= 0.002)
    for path, g in clipped(grads).items():
        m, v = moments(state, path, g, 0.9, 0.999)
        lrt = LR * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1)) * (s * (x / 0.002) + (1 - s)) * (1 - x)
        l2 = 0.01 * params[path] if params[path].ndim > 1 else 0
        out[path] = params[path] - lrt * (m / (np.sqrt(v) + 1e-8) + l2)
    return out


UNCORRECTED = {"bias_correction": False, "lr": LR, "warmup": 4}
OUTSIDE = ("embeddings/.*", "encoder/.*/attention/[a-z]+_bias")
PUBLISHED: dict[str, tuple[OptimConfig, Rule]] = {
    "bert_and_albert": (OptimConfig(origin="step_zero", **UNCORRECTED), bert),
    "electra": (OptimConfig(origin="step_zero_ramp", layer_decay=0.8, **UNCORRECTED), electra(0.01)),
    "electra_without_decay": (OptimConfig(origin="step_zero_ramp", layer_decay=0.8, weight_decay=0.0, **UNCORRECTED), electra(0.0)),
    "xlnet": (
        OptimConfig(
            lr=LR,
            warmup=4,
            epsilon_added="before_correction",
            weight_decay=0.0,
            layer_decay=0.75,
            layer_decay_top=0,
            layer_decay_of="gradient",
            layer_decay_exclude=OUTSIDE,
        ),
        xlnet,
    ),
    "xlnet_with_decay": (OptimConfig(**UNCORRECTED), xlnet_decayed),
    "roberta": (
        OptimConfig(lr=LR, warmup=4, beta2=0.98, epsilon_added="before_correction", weight_decay=0.1, decay_exclude=(), clip=0.0),
        fairseq,
    ),
    "gpt": (
        OptimConfig(
            lr=LR,
            warmup=1,
            origin="step_zero_ramp",
            epsilon=1e-8,
            epsilon_added="before_correction",
            decay_corrected=True,
        ),
        gpt,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_five_updates_are_those_of_the_source(name: str) -> None:
    """At steps 0 to 4 of 40, of which 4 are the warm-up, or the first for GPT-1."""
    (config, rule), shapes = PUBLISHED[name], {**SHAPES, **(OF_XLNET if "xlnet" in name else {})}
    first = start(shapes)
    params, exact, memory = tree.from_leaves(first.items()), {path: np.float64(leaf) for path, leaf in first.items()}, {}
    optimizer = optimizers.build(config, params, config.lr, config.warmup, STEPS)
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for step in range(5):
        grads = gradients(shapes, step)
        norm = jnp.float32(math.sqrt(sum(np.sum(np.float64(g) ** 2) for g in grads.values())))
        params, state, _ = update(tree.from_leaves(grads.items()), norm, state, params, jnp.int32(step))
        exact = rule(memory, exact, grads, step)
    for path, leaf in tree.leaves(params):
        change, expected = np.float64(leaf) - first[path], exact[path] - first[path]
        np.testing.assert_allclose(leaf, exact[path], rtol=1e-6, atol=1e-6 * np.abs(exact[path]).max(), err_msg=path)
        assert np.linalg.norm(change - expected) <= 2e-4 * np.linalg.norm(expected), path


def test_matrices_alone_decay_in_a_gpt() -> None:
    """len(p.get_shape()) > 1 in openai/finetune-transformer-lm:opt.py is what the default patterns leave."""
    model = GptConfig(width=8, heads=2, feed_forward=16, positions=16, layers=2)
    shapes, _ = parameters(tiny.objective(HeadsConfig(heads=("last_token", "classifier", "next_token"), labels=("a", "b")), model))
    decays = dict(tree.leaves(decay_mask(PUBLISHED["gpt"][0].decay_exclude, shapes)))
    assert decays == {path: leaf.ndim > 1 for path, leaf in tree.leaves(shapes)}
