"""XLNet in transformers. Its loss, of permuted rows, is compared by `tests/parity/xlnet.py`."""

import types
from typing import Any

from tests.parity.family import LAYERS, TUNED, Case, Family, answers, tags, texts


def sizes(width: int) -> dict[str, Any]:
    return {"d_model": width, "n_layer": LAYERS, "n_head": 2, "d_inner": 2 * width, "clamp_len": 6}


def adapt(model: Any) -> None:
    """Its sinusoids in the dtype of its weights: it makes them in float32 whatever these are."""
    base = model.base_model
    base.relative_positional_encoding = types.MethodType(_sinusoids, base)


def _sinusoids(model: Any, *args: object, **kwargs: object) -> Any:
    return type(model).relative_positional_encoding(model, *args, **kwargs).to(model.dtype)


XLNET = Family(
    "XLNet",
    sizes,
    activation="ff_activation",
    pad=5,
    pads_left=True,
    tuned={**TUNED, "spans": "ForQuestionAnsweringSimple"},
    adapt=adapt,
)
CASES = (
    Case(XLNET, "Model", seed=17),
    Case(XLNET, "LMHeadModel", logits={"lm": "logits"}, seed=18, short=("numbers", "live numbers", "check")),
    texts(XLNET, 19, "numbers", "gradients", "live gradients"),
    tags(XLNET, 20),
    answers(XLNET, 21),
)
