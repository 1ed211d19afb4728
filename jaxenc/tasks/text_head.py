"""The heads of a fine-tuned model whose task reads the vector of a text."""

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives.heads import HeadsConfig


def on_text(model: ModelConfig, head: str, labels: tuple[str, ...] = (), choices: int = 0) -> HeadsConfig:
    """`head` on the family's vector of a text, with the heads that the family trains together with it (`ModelConfig.beside`).

    labels, choices: as in `HeadsConfig`. Raises UserError for a family without such a vector.
    """
    if not model.pools:
        raise UserError(f"{model.kind} models have no vector of a text to fine-tune", fix="choose a model of another family")
    weights = (1.0, 1.0, *model.beside.values()) if model.beside else ()
    return HeadsConfig((model.pools, head, *model.beside), labels, model.pooler_activation, choices, weights)
