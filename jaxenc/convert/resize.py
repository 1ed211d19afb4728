"""Changes the vocabulary size of a trained model."""

from collections.abc import Collection

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.families.count import has_vocabulary, true_shape
from jaxenc.tree import Tree


def resized(params: Tree, old: int, new: int, others: Collection[str]) -> Tree:
    """`params` with `new` rows instead of `old`, without padding, in every leaf with one row for each token: token tables, and the paths in
    `others` (`Objective.vocabulary`), such as the bias of the tied head.

    Old rows are kept bit for bit. A new row is the mean of the old ones (Hewitt 2021, "Initializing new word embeddings for pretrained
    language models": a new token is then no more probable than the average one; with small random rows it could be the most probable). Rows
    that pad the table to `padded(new)` are zeros. Other leaves are unchanged. Raises ValueError when a vocabulary leaf does not have
    `padded(old)` rows.
    """

    def resize(path: str, leaf: Array) -> Array:
        if not has_vocabulary(path, others):
            return leaf
        true = np.asarray(leaf)[: true_shape(path, leaf.shape, old, others)[0]]
        out = np.zeros((padded(new), *true.shape[1:]), true.dtype)
        out[:new] = true.mean(axis=0, dtype=np.float64)
        out[: min(old, new)] = true[:new]
        return jnp.asarray(out)

    return tree.map_with_path(resize, params)
