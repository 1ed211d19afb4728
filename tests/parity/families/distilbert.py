"""DistilBERT in transformers."""

from typing import Any

from tests.parity.family import LAYERS, POSITIONS, Case, Family, answers, masked, tags, texts


def sizes(width: int) -> dict[str, Any]:
    return {"dim": width, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 2 * width, "max_position_embeddings": POSITIONS}


DISTILBERT = Family("DistilBert", sizes, activation="activation", typed=False)
CASES = (
    masked(DISTILBERT, 31, "numbers", "gradients", "live numbers"),
    texts(DISTILBERT, 32, "numbers"),
    tags(DISTILBERT, 33),
    answers(DISTILBERT, 34, "check"),
    Case(DISTILBERT, "Model", seed=35),
)
