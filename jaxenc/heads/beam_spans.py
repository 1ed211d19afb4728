"""The start and the end of an answer, the end given the start, and whether there is one (Yang et al. 2019)."""

from collections.abc import Mapping

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.heads import span_search
from jaxenc.heads.contract import Head
from jaxenc.heads.last_token import last_places
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.dropout import dropout
from jaxenc.layers.initializers import Initializer
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys

STARTS = ENDS = 5  # run_squad.py, start_n_top and end_n_top
SITE = 61


class BeamSpans(nn.Module):
    """zihangdai/xlnet function_builder.py, get_qa_outputs, with CLS as the last token of a row.

    start: dense. end: dense of the model's width, tanh, norm, dense on [hidden of the place; hidden of the start]. no_answer: dense of the
    width, tanh, dropout, dense without a bias on [sum of the hidden states weighted by the softmax of the start logits; hidden of CLS].
    XLNetForQuestionAnswering of transformers takes the hidden state of the labelled start for that sum in training, but not afterwards.
    """

    width: int
    norm_epsilon: float
    dropout: float
    init_kernel: Initializer
    execution: Execution

    @nn.compact
    def __call__(
        self, hidden: Array, example: Mapping[str, Array], labels: Mapping[str, Array] | None, noise: Keys | None
    ) -> dict[str, Array]:
        """hidden [batch, length, width] to logits or the predictions of a search, as the role `search` says, with `no_answer` float32
        [batch] in both: positive means that there is no answer."""
        logits = self.execution.policy.logits
        cls = last_places(example["segments"])
        allowed = span_search.allowed(example, cls)
        start = jnp.where(allowed, self._dense(1, "start")(hidden)[..., 0].astype(logits), span_search.WORST)
        summary = jnp.concatenate([span_search.expected(start, hidden), span_search.at(hidden, cls[:, None])[:, 0]], axis=-1)
        summary = activate("tanh", self._dense(self.width, "no_answer_hidden")(summary))
        summary = dropout(summary, self.dropout, noise, SITE)
        no_answer = self._dense(1, "no_answer", use_bias=False)(summary)[..., 0].astype(logits)
        between, output = self._dense(self.width, "end_hidden"), self._dense(1, "end")
        norm = LayerNorm(self.norm_epsilon, self.execution, name="end_norm")
        kernel, bias = between.weights(2 * hidden.shape[-1])
        of_place, of_start = jnp.split(kernel, 2)

        def end(places: Array) -> Array:
            # The product with the kernel of both states, in halves: no array [batch, starts, length, 2 · width].
            both = (hidden @ of_place)[:, None] + (span_search.at(hidden, places) @ of_start)[:, :, None] + bias
            found = output(norm(activate("tanh", both)))[..., 0].astype(logits)
            return jnp.where(allowed[:, None], found, span_search.WORST)

        if labels is None:
            return span_search.search(start, end, STARTS, ENDS) | {"no_answer": no_answer}
        return {"start": start, "end": end(labels["start"][:, None])[:, 0], "no_answer": no_answer}

    def _dense(self, features: int, name: str, use_bias: bool = True) -> Dense:
        names = ("embed", "norm" if features > 1 else None)
        return Dense(features, names, self.init_kernel, self.execution, use_bias=use_bias, name=name)


BEAM_SPANS = Head(
    name="beam_spans",
    role="search",
    site=SITE,
    module=lambda setting: BeamSpans(setting.width, setting.norm_epsilon, setting.dropout, setting.initializer, setting.execution),
    labels=span_search.LABELS,
    loss=span_search.loss,
    inputs=span_search.INPUTS,
)
