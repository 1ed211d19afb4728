"""Parameter counts as in papers: without the rows that pad the vocabulary."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.families.contract import TOKEN_TABLE


def has_vocabulary(path: str, others: Collection[str]) -> bool:
    """Whether the first axis of the leaf at `path` is the padded vocabulary: true for a token table and for the paths in `others`
    (`Objective.vocabulary`)."""
    return path in others or f"/{path}".endswith(f"/{TOKEN_TABLE}")


def true_shape(path: str, shape: tuple[int, ...], vocab_size: int, others: Collection[str]) -> tuple[int, ...]:
    """The shape of the leaf at `path` without its padding rows; others: as in `has_vocabulary`.

    Raises ValueError when a vocabulary leaf does not have the padded number of rows.
    """
    if not has_vocabulary(path, others):
        return tuple(shape)
    if shape[0] != padded(vocab_size):
        raise ValueError(f"{path} has {shape[0]} rows, and {vocab_size} tokens are stored in {padded(vocab_size)}")
    return (vocab_size, *shape[1:])


def parameter_count(params: Mapping[str, Any], vocab_size: int, others: Collection[str]) -> int:
    """Number of true parameters; a leaf needs only a `shape` (arrays, or what jax.eval_shape returns, without axis names). others: as in
    `has_vocabulary`."""
    return sum(math.prod(true_shape(path, leaf.shape, vocab_size, others)) for path, leaf in tree.leaves(params))
