"""Adds pieces to the tokenizer of a trained model, and their rows to its tables."""

import dataclasses
from collections.abc import Collection, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.families.count import has_vocabulary, true_shape
from jaxenc.inference.model import Model
from jaxenc.tree import Tree


def extended(model: Model, pieces: Sequence[str]) -> Model:
    """`model`, which has a tokenizer, with `pieces` after those it has. They take the spare rows of its tables first, then new ones; see
    `resized`. Raises UserError as `Tokenizer.extended`."""
    tokenizer, rows = model.tokenizer.extended(pieces), model.config.model.vocab_size
    size, new = model.tokenizer.vocabulary.size, tokenizer.vocabulary.size
    larger = model.config.model.with_spare_rows(max(rows - new, 0)).with_vocabulary(tokenizer.vocabulary)
    params = resized(model.params, rows, size, new, model.objective.vocabulary)
    return Model(dataclasses.replace(model.config, model=larger), params, tokenizer)


def resized(params: Tree, rows: int, pieces: int, new: int, others: Collection[str]) -> Tree:
    """`params` for `new` pieces, in every leaf with one row for each token: token tables, and the paths in `others`
    (`Objective.vocabulary`), such as the bias of the tied head.

    rows, pieces: those of `params`, without padding; the result has `max(rows, new)` rows. The rows of old pieces are kept bit for bit. The
    row of a new piece, also where it takes a spare one of a published table, is the mean of the rows of the old pieces (Hewitt 2021,
    "Initializing new word embeddings for pretrained language models": a new token is then no more probable than the average one; with small
    random rows it could be the most probable). Spare rows that are left keep their values. Rows that pad the table are zeros. Other leaves
    are unchanged. Raises ValueError when a vocabulary leaf does not have `padded(rows)` rows.
    """
    larger = max(rows, new)

    def resize(path: str, leaf: Array) -> Array:
        if not has_vocabulary(path, others):
            return leaf
        true = np.asarray(leaf)[: true_shape(path, leaf.shape, rows, others)[0]]
        out = np.zeros((padded(larger), *true.shape[1:]), true.dtype)
        out[:rows] = true
        out[pieces:new] = true[:pieces].mean(axis=0, dtype=np.float64)
        return jnp.asarray(out)

    return tree.map_with_path(resize, params)
