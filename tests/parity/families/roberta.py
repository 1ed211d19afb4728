"""RoBERTa in transformers."""

from typing import Any

from tests.parity.families import bert
from tests.parity.family import POSITIONS, Case, Family, answers, masked, tags, texts

PAD = 1


def sizes(width: int) -> dict[str, Any]:
    """Its first position is the one after the pad id."""
    return {**bert.sizes(width), "max_position_embeddings": POSITIONS + PAD + 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}


ROBERTA = Family("Roberta", sizes, pad=PAD, typed=False)
CASES = (
    # Its masked-token head has the erf form whatever is configured.
    masked(ROBERTA, 6, "numbers", "live numbers", activations=("gelu",)),
    texts(ROBERTA, 7, "numbers", "gradients"),
    tags(ROBERTA, 8),
    answers(ROBERTA, 9),
    Case(ROBERTA, "Model", logits={"pooled": "pooler_output"}, seed=10),
)
