"""What heads for answers share that predict the end of a span given its start: labels, loss, and the search for the best spans."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import losses
from jaxenc.heads.contract import Label

# answerable: 1 = the question has an answer, 0 = it has none; both ends are then labelled with the place of CLS.
LABELS = (Label("start", bound="length"), Label("end", bound="length"), Label("answerable", bound=2))
# 1 = a place where an answer may begin or end. The place of CLS, which stands for no answer, need not be marked.
INPUTS = (Label("context", axis="length", bound=2),)
# The weight of the loss of `answerable` (google-research/electra configure_finetuning.py, answerable_weight; zihangdai/xlnet run_squad.py).
ANSWERABLE_WEIGHT = 0.5
# The place and the score of an entry of the search if the row has no place left for it.
NOWHERE, WORST = -1, -1e30


def loss(logits: Mapping[str, Array], labels: Mapping[str, Array], counted: Array) -> tuple[Array, Mapping[str, Array]]:
    """The mean of the cross-entropies of both ends plus ANSWERABLE_WEIGHT times that of `answerable`, and the mean of the accuracies of
    both ends. logits: start and end, float32 [batch, length], no_answer, float32 [batch]."""
    pairs = [losses.cross_entropy(logits[name], labels[name], counted) for name in ("start", "end")]
    total, correct = (sum(values) / 2 for values in zip(*pairs, strict=True))
    none = losses.binary_cross_entropy(logits["no_answer"], 1 - labels["answerable"], counted)
    right = jnp.sum(((logits["no_answer"] > 0) == (labels["answerable"] == 0)) * counted)
    return total + ANSWERABLE_WEIGHT * none, {"accuracy": correct, "answerable_accuracy": right.astype(jnp.float32)}


def allowed(example: Mapping[str, Array], cls: Array) -> Array:
    """bool [batch, length], whether an answer may begin or end at a place; cls: i32 [batch], the place of CLS, which is always allowed.

    In a row without the field `context`, as a model that is only applied may get it, every token is allowed.
    """
    context = example.get("context", example["segments"])
    return (context > 0) | (jnp.arange(context.shape[1]) == cls[:, None])


def at(hidden: Array, places: Array) -> Array:
    """The hidden states [batch, n, width] of the places i32 [batch, n]."""
    return jnp.take_along_axis(hidden, places[..., None], axis=1)


def expected(logits: Array, hidden: Array) -> Array:
    """The sum of the hidden states weighted by the softmax of the logits [batch, length]: [batch, width]."""
    return jnp.einsum("bl,blw->bw", jax.nn.softmax(logits, axis=-1).astype(hidden.dtype), hidden)


def search(start: Array, end: Callable[[Array], Array], starts: int, ends: int) -> dict[str, Array]:
    """The `starts` most probable starts and, given each of them, the `ends` most probable ends.

    start: logits float32 [batch, length]. end: from places i32 [batch, starts] to logits float32 [batch, starts, length]. Returns the
    places `start`, i32 [batch, starts], and `end`, i32 [batch, starts, ends], and the logarithms of their probabilities, `start_score` and
    `end_score`, float32 of the same shapes. Where a row has fewer places, the rest is NOWHERE with the score WORST.
    """
    length = start.shape[1]
    start_score, first = jax.lax.top_k(jax.nn.log_softmax(start, axis=-1), min(starts, length))
    end_score, last = jax.lax.top_k(jax.nn.log_softmax(end(first), axis=-1), min(ends, length))
    few = starts - first.shape[1], ends - last.shape[2]
    one, two = ((0, 0), (0, few[0])), ((0, 0), (0, few[0]), (0, few[1]))
    return {
        "start": jnp.pad(first, one, constant_values=NOWHERE),
        "end": jnp.pad(last, two, constant_values=NOWHERE),
        "start_score": jnp.pad(start_score, one, constant_values=WORST),
        "end_score": jnp.pad(end_score, two, constant_values=WORST),
    }
