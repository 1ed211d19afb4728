"""The choice between the texts of a row (SWAG, RACE): a score for each, and a softmax over those of a row."""

import jax

from jaxenc.heads.classifier import loss_of
from jaxenc.heads.contract import Head, Label
from jaxenc.heads.regressor import Score

# As in BertForMultipleChoice of transformers and in openai/finetune-transformer-lm train.py (clf). Its prediction is the probability of
# each choice, float32 [batch, choices], 0 for an empty one.
CHOICE = Head(
    name="choice",
    role="text",
    site=59,
    module=lambda setting: Score(setting.initializer, setting.execution),
    labels=(Label("choice", bound="choices"),),
    loss=loss_of("choice"),
    prediction=jax.nn.softmax,
)
