"""The sentence-order head (ALBERT, Lan et al. 2019, section 3.1): whether the two parts of a row have changed places."""

import jax

from jaxenc.heads.classifier import Classifier
from jaxenc.heads.contract import Head

# The objective mlm_sop trains it. Its prediction is the probability of in order and of swapped, float32 [batch, 2].
SENTENCE_ORDER = Head(
    name="sentence_order",
    role="text",
    site=50,
    module=lambda setting: Classifier(2, setting.initializer, setting.execution),
    prediction=jax.nn.softmax,
)
