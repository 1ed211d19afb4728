"""Another number of tokens for a trained model."""

from collections.abc import Collection

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.families.count import has_vocabulary, true_shape
from jaxenc.tree import Tree


def resized(params: Tree, old: int, new: int, others: Collection[str]) -> Tree:
    """`params` with `new` true rows instead of `old` in every leaf that has a row a token: token tables, and `others`, the paths of
    `Objective.vocabulary`, such as the bias of the tied head.

    Rows that stay are kept bit by bit. A new one is the mean of the old true rows (Hewitt 2021, "Initializing new word embeddings for
    pretrained language models": the new token starts no likelier than the average one, where small random rows would be the likeliest).
    Rows that pad the table to `padded(new)` are zeros. Other leaves come back as they are.
    Raises ValueError when a vocabulary leaf does not have `padded(old)` rows.
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
