"""Whether an exported tokenizer gives token types to the model of transformers."""

import dataclasses
import json
from pathlib import Path

import pytest

from jaxenc.convert import hf
from jaxenc.data.tokenizers import wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny

WITHOUT = ["input_ids", "attention_mask"]
SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 64, "positions": 16}


@pytest.mark.parametrize(
    ("model", "objective", "names"),
    [
        (GptConfig(**SIZES), CausalConfig(), WITHOUT),
        (DistilbertConfig(**SIZES), MlmConfig(), WITHOUT),
        (BertConfig(**SIZES), MlmConfig(), ["input_ids", "token_type_ids", "attention_mask"]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_token_types_are_given_to_models_that_have_them(
    model: ModelConfig, objective: MlmConfig | CausalConfig, names: list[str], tmp_path: Path
) -> None:
    """OpenAIGPTModel adds row 0 of the token table to every vector where it gets types of 0, and DistilBertModel takes none."""
    tokenizer = wordpiece.train(["the fox and the dog"] * 3, 60)
    run = Run(objective, dataclasses.replace(model, vocab_size=tokenizer.vocabulary.size))
    hf.save(tmp_path / "out", Model(run, tiny.drawn(run), tokenizer))
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["model_input_names"] == names
