"""Counting parameters as papers do: rows that only pad the vocabulary do not count."""

import math
import re
from collections.abc import Mapping
from typing import Any

from jaxenc import tree
from jaxenc.data.vocabulary import padded

# The leaves whose first axis is the padded vocabulary: the token table, the biases of the heads tied to it and ELMo's softmax.
VOCABULARY = re.compile(r"(.*/)?((token|softmax)/table|(lm|mlm|replaced_mlm|softmax)/bias)")


def true_shape(path: str, shape: tuple[int, ...], vocab_size: int) -> tuple[int, ...]:
    """The shape of the leaf at `path` without its padding rows.

    Raises ValueError when a vocabulary leaf does not have the padded number of rows.
    """
    if not VOCABULARY.fullmatch(path):
        return tuple(shape)
    if shape[0] != padded(vocab_size):
        raise ValueError(f"{path} has {shape[0]} rows, and {vocab_size} tokens are stored in {padded(vocab_size)}")
    return (vocab_size, *shape[1:])


def parameter_count(params: Mapping[str, Any], vocab_size: int) -> int:
    """Number of true parameters; a leaf needs only a `shape` (arrays, or what jax.eval_shape returns, without axis names)."""
    return sum(math.prod(true_shape(path, leaf.shape, vocab_size)) for path, leaf in tree.leaves(params))
