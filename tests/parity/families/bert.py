"""BERT in transformers."""

from typing import Any

from tests.parity.family import LAYERS, POSITIONS, SHORT, Case, Family, answers, masked, tags, texts


def sizes(width: int) -> dict[str, Any]:
    """Also for the families whose config has the same fields."""
    return {
        "hidden_size": width,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": 2 * width,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
    }


BERT = Family("Bert", sizes)
BOTH = {"mlm": "prediction_logits", "next_sentence": "seq_relationship_logits"}
# Its heads stand for those of the other families that are one linear layer too.
CASES = (
    Case(BERT, "Model", logits={"pooled": "pooler_output"}, seed=0),
    Case(BERT, "ForPreTraining", ("labels", "next_sentence_label"), BOTH, seed=1, short=SHORT),
    masked(BERT, 2, "numbers"),
    texts(BERT, 3, "numbers", "gradients"),
    tags(BERT, 4, "numbers", "gradients"),
    answers(BERT, 5, "numbers", "gradients"),
)
