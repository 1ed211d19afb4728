"""ELECTRA in transformers. Both of its networks at once are compared by `tests/parity/pair.py`."""

from tests.parity.families import bert
from tests.parity.family import EMBEDDING, Case, Family, answers, masked, tags, texts

ELECTRA = Family("Electra", lambda width: {**bert.sizes(width), "embedding_size": EMBEDDING})
CASES = (
    # The head of its generator has the erf form whatever is configured.
    masked(ELECTRA, 11, "numbers", "gradients", activations=("gelu",)),
    texts(ELECTRA, 12, "numbers"),
    tags(ELECTRA, 13),
    answers(ELECTRA, 14),
    Case(ELECTRA, "Model", seed=15),
    Case(ELECTRA, "ForPreTraining", logits={"rtd": "logits"}, seed=16, short=("numbers", "gradients", "live numbers")),
)
