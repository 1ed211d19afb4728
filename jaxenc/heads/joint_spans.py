"""The start and the end of an answer, the end given the start, and whether there is one (Clark et al. 2020)."""

from collections.abc import Mapping

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads import span_search
from jaxenc.heads.contract import Head
from jaxenc.layers import initializers
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.rng import Keys

HIDDEN = 512  # width of the layers before the logits of `end` and `no_answer`
BEAM = 20  # starts, and ends of each (configure_finetuning.py, beam_size)
MASKED = -1000.0  # added to the logits of the places outside of the context


class JointSpans(nn.Module):
    """google-research/electra finetune/qa/qa_tasks.py, get_prediction_module, with CLS at place 0.

    start: dense. end: dense of HIDDEN, activation, dense on [hidden of the start; hidden of the place]. no_answer: the same on [hidden of
    CLS; sum of the hidden states weighted by the softmax of the start logits]. There an answer may also begin or end at the SEP after the
    context, which `context` can mark too.
    """

    activation: str
    execution: Execution

    @nn.compact
    def __call__(
        self, hidden: Array, example: Mapping[str, Array], labels: Mapping[str, Array] | None, noise: Keys | None
    ) -> dict[str, Array]:
        """hidden [batch, length, width] to logits or the predictions of a search, as the role `search` says, with `no_answer` float32
        [batch] in both: positive means that there is no answer. There is no dropout."""
        logits = self.execution.policy.logits
        mask = jnp.where(span_search.allowed(example, jnp.zeros(len(hidden), jnp.int32)), 0, MASKED).astype(logits)
        start = self._dense(1, "start")(hidden)[..., 0].astype(logits) + mask
        summary = jnp.concatenate([hidden[:, 0], span_search.expected(start, hidden)], axis=-1)
        summary = activate(self.activation, self._dense(HIDDEN, "no_answer_hidden")(summary))
        no_answer = self._dense(1, "no_answer")(summary)[..., 0].astype(logits)
        between, output = self._dense(HIDDEN, "end_hidden"), self._dense(1, "end")
        kernel, bias = between.weights(2 * hidden.shape[-1])
        of_start, of_place = jnp.split(kernel, 2)

        def end(places: Array) -> Array:
            # The product with the kernel of both states, in halves: no array [batch, starts, length, 2 · width].
            both = (span_search.at(hidden, places) @ of_start)[:, :, None] + (hidden @ of_place)[:, None] + bias
            return output(activate(self.activation, both))[..., 0].astype(logits) + mask[:, None]

        if labels is None:
            return span_search.search(start, end, BEAM, BEAM) | {"no_answer": no_answer}
        return {"start": start, "end": end(labels["start"][:, None])[:, 0], "no_answer": no_answer}

    def _dense(self, features: int, name: str) -> Dense:
        names = ("embed", "norm" if features > 1 else None)
        return Dense(features, names, initializers.glorot_uniform, self.execution, name=name)


JOINT_SPANS = Head(
    name="joint_spans",
    role="search",
    site=60,
    module=lambda setting: JointSpans(setting.activation, setting.execution),
    labels=span_search.LABELS,
    loss=span_search.loss,
    inputs=span_search.INPUTS,
)
