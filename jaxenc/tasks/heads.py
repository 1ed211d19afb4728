"""The heads of a fine-tuned model whose task reads the vector of a text."""

from jaxenc.errors import UserError
from jaxenc.families.contract import EncoderConfig, ModelConfig
from jaxenc.objectives.heads import HeadsConfig


def on_text(model: ModelConfig, head: str, labels: tuple[str, ...] = (), choices: int = 0) -> HeadsConfig:
    """`head` on the family's vector of a text, with the heads that the family trains together with it (`EncoderConfig.beside`).

    labels, choices: as in `HeadsConfig`. Raises UserError for a family without such a vector.
    """
    pools = getattr(model, "pools", "")
    if not pools:
        raise UserError(f"{model.kind} models have no vector of a text to fine-tune", fix="choose a model of another family")
    beside = model.beside if isinstance(model, EncoderConfig) else {}
    weights = (1.0, 1.0, *beside.values()) if beside else ()
    activation = model.pooler_activation if isinstance(model, EncoderConfig) else HeadsConfig.pooler_activation
    return HeadsConfig((pools, head, *beside), labels, activation, choices, weights)
