"""Exports of fine-tuned models in the pipelines of transformers: text and tokenizer in, our predictions out.

transformers 5.24 has no pipeline for questions; its class for them opens the folder. Collected where torch and transformers are installed.
"""

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
import transformers

from jaxenc.convert import hf
from jaxenc.data.batch import Batch
from jaxenc.data.tokenizers import Tokenizer, bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.heads import BUILT_IN
from jaxenc.inference import inputs
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run
from tests import tiny

TEXT = ["The quick brown fox jumps over the lazy dog.", "A dog, a fox! Does the brown dog jump?", "Pack my box with five dozen jugs, dear."]
TEXTS = ["The fox jumps.", "A lazy dog, a quick dog!", "brown"]
PAIR = ("The quick fox jumps over the dog.", "A dog jumps?")
LABELS = ("good", "bad", "ugly")
SIZES = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32}
# {family: (its model, what trains its tokenizer, the activation of its pooler)}
FAMILIES = {
    "bert": (BertConfig(**SIZES, positions=64), wordpiece.train, "tanh"),
    "roberta": (BertConfig(**SIZES, positions=64, first_position=2, types=1, activation="gelu_erf"), bpe.train, "tanh"),
    "electra": (ElectraConfig(**SIZES, embedding=8, positions=64), wordpiece.train, "gelu_erf"),
    "albert": (AlbertConfig(**SIZES, embedding=8, positions=64), wordpiece.train, "tanh"),
    "xlnet": (XlnetConfig(**SIZES), unigram.train, "tanh"),
    "distilbert": (DistilbertConfig(**SIZES, positions=64), wordpiece.train, "relu"),
}
HEADS = ("classifier", "regressor", "multilabel", "tags", "spans")
SHORT = {"bert-classifier", "roberta-tags"}
CASES = [
    pytest.param(family, head, id=f"{family}-{head}", marks=[] if f"{family}-{head}" in SHORT else pytest.mark.full)
    for family in FAMILIES
    for head in HEADS
]


@functools.cache
def trained(family: str) -> Tokenizer:
    return FAMILIES[family][1](TEXT * 3, 300)


def exported(family: str, head: str, folder: Path) -> Model:
    """A random model, written to `folder`."""
    model, _, activation = FAMILIES[family]
    pools = {"xlnet": "summary"}.get(family, "pooler")
    heads = (head,) if BUILT_IN[head].role == "tokens" else (pools, head)
    objective = HeadsConfig(heads, LABELS if head in ("classifier", "multilabel", "tags") else (), activation)
    tokenizer = trained(family)
    run = Run(objective, model).with_vocabulary(tokenizer.vocabulary)
    # Wide enough for texts to differ.
    params = jax.tree.map(lambda leaf: 3 * leaf, tiny.drawn(run))
    made = Model(run, params, tokenizer)
    hf.save(folder, made)
    return made


def told(model: Model, rows: Batch, head: str) -> np.ndarray:
    """Our predictions for rows, with the probabilities of all tags instead of the likeliest."""
    logits = jax.jit(model.apply)(model.params, rows)[head]
    return np.asarray(jax.nn.softmax(logits) if head == "tags" else BUILT_IN[head].prediction(logits))


@pytest.mark.parametrize("family, head", CASES)
def test_a_pipeline_says_what_we_predict(family: str, head: str, tmp_path: Path) -> None:
    """The value, or the probability of every label by its name, of texts and of a pair of texts, or of every token (<= 1e-5); the logits of
    answers within that of the largest."""
    model = exported(family, head, tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    found = told(model, inputs.of_texts(model.config.model, model.tokenizer, TEXTS), head)
    both = tokenizer(*PAIR, return_tensors="np", return_token_type_ids=True)
    names = {"input_ids": "tokens", "attention_mask": "segments", "token_type_ids": "types"}
    pair = {names[name]: array.astype(np.int32) for name, array in both.items()}
    if model.config.model.types < 2:
        pair["types"] *= 0
    if head == "spans":
        opened = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "out").eval()
        given = {name: torch.tensor(array) for name, array in both.items() if name != "token_type_ids" or model.config.model.types > 1}
        with torch.no_grad():
            out = opened(**given)
        logits = torch.stack([out.start_logits, out.end_logits], -1).numpy()
        np.testing.assert_allclose(told(model, pair, head), logits, rtol=0, atol=1e-5 * np.abs(logits).max())
        return
    if head == "tags":
        classify = transformers.pipeline("token-classification", model=str(tmp_path / "out"), ignore_labels=[])
        for text, probabilities, said in zip(TEXTS, found, classify(TEXTS), strict=True):
            assert len(said) == len(tokenizer(text, add_special_tokens=False)["input_ids"]) > 0
            for one in said:
                of_token = probabilities[one["index"]]
                assert one["entity"] == LABELS[of_token.argmax()] and abs(one["score"] - of_token.max()) <= 1e-5
        return
    classify = transformers.pipeline("text-classification", model=str(tmp_path / "out"), top_k=None)
    rows = [*found, *told(model, pair, head)]
    given = [*TEXTS, {"text": PAIR[0], "text_pair": PAIR[1]}]
    labels = ("LABEL_0",) if head == "regressor" else LABELS
    for ours, text in zip(rows, given, strict=True):
        said = classify(text if isinstance(text, dict) else [text])
        scores = {one["label"]: one["score"] for one in (said if isinstance(text, dict) else said[0])}
        np.testing.assert_allclose([scores[label] for label in labels], np.atleast_1d(ours), rtol=0, atol=1e-5)
    assert np.ptp(np.float64(rows), axis=0).max() > 1e-3
    again = hf.load(tmp_path / "out")
    tiny.assert_bitwise(again.params, jax.tree.map(np.asarray, model.params))
    assert dataclasses.replace(again.config.objective, heads=model.config.objective.heads) == model.config.objective
    assert set(again.config.objective.heads) == set(model.config.objective.heads)
