"""GPT-1 in transformers, which calls the tanh form of GELU gelu."""

from typing import Any

from tests.parity.family import LAYERS, POSITIONS, Case, Family


def sizes(width: int) -> dict[str, Any]:
    return {"n_embd": width, "n_layer": LAYERS, "n_head": 2, "n_positions": POSITIONS}


GPT = Family("OpenAIGPT", sizes, activation="afn", typed=False, tuned={})
FORMS = ("gelu",)
TWO = {"next_token": "logits", "choice": "mc_logits"}
CASES = (
    Case(GPT, "Model", seed=28, activations=FORMS),
    Case(GPT, "LMHeadModel", ("labels",), {"next_token": "logits"}, 29, FORMS, short=("numbers", "gradients", "live gradients")),
    # Its losses, of rows of several texts, are compared by test_live_heads.py.
    Case(GPT, "DoubleHeadsModel", (), TWO, 30, FORMS, short=("numbers", "live numbers")),
)
