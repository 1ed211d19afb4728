"""The next-sentence head (Devlin et al. 2018): whether the second part of a row follows the first in the text."""

import jax

from jaxenc.heads.classifier import Classifier
from jaxenc.heads.contract import Head

# The objective mlm_nsp trains it. Its prediction is the probability of next and of random, float32 [batch, 2].
NEXT_SENTENCE = Head(
    name="next_sentence",
    role="text",
    site=35,
    module=lambda setting: Classifier(2, setting.initializer, setting.execution),
    prediction=jax.nn.softmax,
)
