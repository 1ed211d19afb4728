"""How probable the tokens of a text are when a model with two streams predicts them one at a time, in orders of your choice."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc.errors import UserError
from jaxenc.inference import inputs
from jaxenc.inference.model import Model
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.plm import Plm
from jaxenc.tree import Tree

Scorer = Callable[[str, Sequence[Sequence[int]] | np.ndarray], np.ndarray]


def scorer(model: Model) -> Scorer:
    """A function of (text, orders) that returns log probabilities, float32 [orders, predicted]: at [i, k] that of the token at place
    orders[i][k] of the text, given the tokens at the places orders[i][:k] and at those that the order leaves out.

    The text is its tokens, without specials and without memory. orders: int [orders, predicted], places from 0, none twice in an order.
    An order of all places predicts the first token from nothing, and the sum over it is a log probability of the whole text. Texts of
    similar length share a compilation. Raises UserError for a model that was not trained by permutation (`objective.kind` plm); the
    function raises it for a text without tokens and for orders that are not such places.
    """
    if not isinstance(model.objective, Plm):
        kind = model.config.objective.kind
        raise UserError(
            f"its objective is {kind}, which does not predict in an order", fix="load a model that was trained with objective.kind plm"
        )
    tokenizer = inputs.needed(model.config.model, model.tokenizer)
    objective = dataclasses.replace(model.objective, memory=0)

    @jax.jit
    def compute(params: Tree, example: dict[str, Array]) -> Array:
        with jax.default_matmul_precision("highest"):
            streams = objective.read(params, None, example, None)
            logits = encoders.apply(objective.head, params, streams.query, streams.table)
        labels = jnp.take_along_axis(example["tokens"], example["predicted_at"], axis=1)
        return jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), labels[..., None], axis=-1)[..., 0]

    def score(text: str, orders: Sequence[Sequence[int]] | np.ndarray) -> np.ndarray:
        if not isinstance(text, str):
            raise UserError("a scorer takes one text", fix="call it for each of several")
        (ids,) = tokenizer.encode([text])
        places = _checked(orders, len(ids))
        rows, predicted = places.shape
        example = _example(np.array(ids, np.int32), places, inputs.power_of_two(rows, 1), inputs.compiled_length(len(ids)))
        return np.asarray(compute(model.params, example))[:rows, :predicted]

    return score


def _example(ids: np.ndarray, places: np.ndarray, rows: int, length: int) -> dict[str, np.ndarray]:
    """A row for each of `places`, i32 [orders, predicted], padded to `rows` rows, `length` tokens and as many predictions.

    Ranks as in `corrupt.permute`: what is predicted has one of its own, in order, above the 0 of what every prediction sees; padding has
    the highest.
    """
    number, predicted = places.shape
    tokens, rank, at = (np.zeros((rows, length), np.int32) for _ in range(3))
    tokens[:, : len(ids)] = ids
    rank[:, len(ids) :] = length + 1
    at[:number, :predicted] = places
    np.put_along_axis(rank[:number], places, np.arange(1, predicted + 1, dtype=np.int32)[None], axis=1)
    return {"tokens": tokens, "types": np.zeros_like(tokens), "rank": rank, "predicted_at": at, "direction": np.ones(rows, np.int32)}


def _checked(orders: Sequence[Sequence[int]] | np.ndarray, length: int) -> np.ndarray:
    """`orders` as i32 [orders, predicted]. Raises UserError unless each names some of `length` places, none twice."""
    try:
        places = np.asarray(orders)
    except ValueError:
        places = np.zeros(0)
    if places.ndim != 2 or places.dtype.kind not in "iu" or not places.size:
        raise UserError("orders are not rows of places", fix="give a list of orders of one length, such as [[0, 1, 2], [2, 1, 0]]")
    if places.min() < 0 or places.max() >= length:
        raise UserError(
            f"orders name the places {places.min()} to {places.max()}", fix=f"the text has {length} tokens: use 0 to {length - 1}"
        )
    if any(len(set(row)) < len(row) for row in places.tolist()):
        raise UserError("an order names a place twice", fix="name each place once")
    return places.astype(np.int32)
