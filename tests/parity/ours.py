"""Our side of a comparison: a transformers folder opened, what the model says of whole rows, and the gradients of its loss."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng, tree
from jaxenc.convert import hf
from jaxenc.data.batch import Batch
from jaxenc.formats import key_map, safetensors
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.model import Model
from jaxenc.tree import Tree

BOUND = 1e-5


def write_folder(folder: Path, config: Mapping[str, Any], theirs: Mapping[str, np.ndarray]) -> Path:
    """A folder as save_pretrained leaves it, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.write(folder / "model.safetensors", theirs, np.dtype("float32"))
    return folder


def loss(model: Model, params: Tree, example: Batch) -> jax.Array:
    """The loss as the trainer defines it: sum over terms of coef · sum / weight."""
    objective = model.objective
    keys = rng.evaluation(0, jnp.arange(len(example["tokens"]), dtype=jnp.uint32))
    with jax.default_matmul_precision("highest"):
        sums, _, _ = objective.terms(params, {}, example, keys, train=False)
    counts = objective.weights(example)
    return sum(factor * sums[term] / counts[term] for term, factor in objective.coef.items())


def slopes(model: Model, example: Batch) -> tuple[jax.Array, Tree]:
    """(loss, its gradient with respect to the model's parameters), compiled as one program."""
    return jax.jit(jax.value_and_grad(lambda params: loss(model, params, example)))(model.params)


def in_our_layout(model: Model, theirs: Mapping[str, np.ndarray]) -> Tree:
    """A tree of ours from values by transformers' names: every transform is linear, so gradients turn as weights do."""
    shapes = {path: leaf.shape for path, leaf in tree.leaves(model.params)}
    tensors = {name: Tensor(name, value.shape, value.dtype, value.copy) for name, value in theirs.items()}
    return key_map.to_ours(hf.export(model).entries, tensors, shapes, "gradients")


def assert_outputs(ours: Mapping[str, Any], theirs: Mapping[str, np.ndarray]) -> None:
    """Every number of theirs, at padded places too, within BOUND."""
    for name, value in theirs.items():
        if name != "loss":
            assert ours[name].shape == value.shape, name
            difference = np.abs(np.asarray(ours[name], np.float64) - value).max()
            assert difference <= BOUND, f"{name} differs by {difference}"
