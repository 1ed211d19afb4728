"""Models with a vocabulary of another family's frame, exported: transformers frames a text and a pair as we do, and its model gives the
same numbers for them."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import jaxenc
from jaxenc.convert import hf
from jaxenc.data.tokenizers import load
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks.framing import Framing
from jaxenc.training.run import Run
from tests import tiny
from tests.data.kinds import KINDS, TEXT

SIZE = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 64, "init_scale": 0.2}
MODELS: dict[str, ModelConfig] = {
    "bert": BertConfig(**SIZE, positions=40),
    "electra": ElectraConfig(**SIZE, positions=40, embedding=12),
    "albert": AlbertConfig(**SIZE, positions=40),
    "roberta": BertConfig(**SIZE, positions=40, types=1, first_position=2, norm_epsilon=1e-5, activation="gelu_erf"),
    "fairseq": BertConfig(**SIZE, positions=40, types=0, first_position=2, norm_epsilon=1e-5, activation="gelu_erf"),
    "distilbert": DistilbertConfig(**SIZE, positions=40),
    "gpt": GptConfig(**SIZE, positions=40),
    "xlnet": XlnetConfig(**SIZE),
}
FIRST, SECOND = "the cat sat on the old red mat.", "a dog ran"
SHORT = {
    ("bert", "unigram"),
    ("electra", "unigram"),
    ("albert", "unigram"),
    ("gpt", "wordpiece"),
    ("xlnet", "wordpiece"),
    ("roberta", "wordpiece"),
}
CASES = [
    pytest.param(family, kind, marks=() if (family, kind) in SHORT else pytest.mark.full)
    for family in MODELS
    for kind in KINDS
    if kind != "characters"
]


@pytest.mark.parametrize("family, kind", CASES)
def test_a_text_and_a_pair_in_transformers(family: str, kind: str, tmp_path: Path) -> None:
    """From a run directory, as a user has it: ids, types where the model reads them, and the last layer, largest difference 1e-5."""
    tool = KINDS[kind]()
    run = Run(objective=HeadsConfig(), model=MODELS[family]).with_vocabulary(tool.vocabulary)
    Model(run, tiny.drawn(run), tool).save(tmp_path / "run")
    model = jaxenc.load(tmp_path / "run")
    (folder,) = hf.save(tmp_path / "out", model)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    network = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    assert theirs.padding_side == ("left" if family == "xlnet" else "right")
    first, second = model.tokenizer.encode([FIRST, SECOND])
    framing = Framing(model.tokenizer, model.config.model, 40)
    for texts, ids in (((FIRST,), (first,)), ((FIRST, SECOND), (first, second))):
        given = theirs(*texts, return_tensors="pt")
        rows = {name: array[:, : given["input_ids"].shape[1]] for name, array in framing.rows([ids]).rows.items()}
        assert given["input_ids"].tolist() == rows["tokens"].tolist() and rows["segments"].all()
        assert given.get("token_type_ids", torch.zeros(rows["types"].shape, dtype=int)).tolist() == rows["types"].tolist()
        with torch.no_grad():
            expected = network(**given)[0].numpy()
        rows["positions"] = model.config.model.positions_of(rows["tokens"])
        assert np.abs(model.hidden(rows)[-1] - expected).max() <= 1e-5
    theirs.save_pretrained(tmp_path / "theirs")
    back = load(tmp_path / "theirs")
    assert (
        back.frame(2) == model.tokenizer.frame(2) and back.reframed == model.tokenizer.reframed and back.encode(TEXT) == tool.encode(TEXT)
    )
    assert theirs(FIRST)["input_ids"] == model.encode([FIRST]).tokens[0].tolist()
    if kind == "unigram":  # with a blank around the mask and without
        for prompt in ("a dog <mask> under", "a dog r<mask>n", "<mask>dog"):
            assert theirs(prompt)["input_ids"] == model.tokenizer.encode_prompt(prompt)
