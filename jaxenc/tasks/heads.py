"""The heads of a fine-tuned model whose task reads the vector of a text."""

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig


def on_text(model: ModelConfig, head: str) -> tuple[str, str]:
    """The family's head that gives a text its vector, and `head` on it. Raises UserError for a family that has none."""
    pools = getattr(model, "pools", "")
    if not pools:
        raise UserError(f"{model.kind} models have no vector of a text to fine-tune", fix="choose a model of another family")
    return pools, head
