"""The registry of built-in heads, one file each in this folder."""

from collections.abc import Mapping

from jaxenc.heads.beam_spans import BEAM_SPANS
from jaxenc.heads.choice import CHOICE
from jaxenc.heads.classifier import CLASSIFIER
from jaxenc.heads.contract import Head, registry
from jaxenc.heads.first_token import FIRST_TOKEN
from jaxenc.heads.joint_spans import JOINT_SPANS
from jaxenc.heads.last_token import LAST_TOKEN
from jaxenc.heads.lm import LM
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.heads.multilabel import MULTILABEL
from jaxenc.heads.next_sentence import NEXT_SENTENCE
from jaxenc.heads.next_token import NEXT_TOKEN
from jaxenc.heads.pooler import POOLER
from jaxenc.heads.regressor import REGRESSOR
from jaxenc.heads.replaced import REPLACED
from jaxenc.heads.sentence_order import SENTENCE_ORDER
from jaxenc.heads.spans import SPANS
from jaxenc.heads.summary import SUMMARY
from jaxenc.heads.tags import TAGS

BUILT_IN = registry(
    (
        *(POOLER, MASKED_LM, NEXT_SENTENCE, REPLACED, CLASSIFIER, TAGS, SPANS, LM, SUMMARY, SENTENCE_ORDER, NEXT_TOKEN, LAST_TOKEN),
        *(FIRST_TOKEN, REGRESSOR, MULTILABEL, CHOICE, JOINT_SPANS, BEAM_SPANS),
    )
)

# Those of fine-tuned models: on the vector of a text, and these and those on tokens.
ON_TEXTS = ("classifier", "regressor", "multilabel", "choice")
TUNED = (*ON_TEXTS, "tags", "spans")


def with_built_in(*own: Head) -> Mapping[str, Head]:
    """{name: head} of the built-in heads and `own`, for the argument `heads` of `load`, `pretrain` and others. Raises UserError as
    `registry`."""
    return registry((*BUILT_IN.values(), *own))
