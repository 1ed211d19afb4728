"""ALBERT in transformers."""

from tests.parity.families import bert
from tests.parity.family import EMBEDDING, Case, Family, answers, masked, tags, texts

ALBERT = Family("Albert", lambda width: {**bert.sizes(width), "embedding_size": EMBEDDING})
BOTH = {"mlm": "prediction_logits", "sentence_order": "sop_logits"}
CASES = (
    # Covers the masked-token head and, with BERT's, the classifier.
    Case(ALBERT, "ForPreTraining", ("labels", "sentence_order_label"), BOTH, seed=27, short=("numbers", "gradients", "live numbers")),
    masked(ALBERT, 22),
    texts(ALBERT, 23),
    tags(ALBERT, 24),
    answers(ALBERT, 25),
    Case(ALBERT, "Model", logits={"pooled": "pooler_output"}, seed=26),
)
