"""What our models are compared on with transformers: architectures, random rows and labels. Needs neither of the two libraries."""

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.batch import Batch
from tests.parity.family import Case

VOCAB, LABELS = 131, 3
LENGTHS = (11, 7, 2)
GOLDEN = Path(__file__).parents[1] / "golden" / "hf"

# Every file in families/ is read; a new family needs no line here.
FILES = sorted((Path(__file__).parent / "families").glob("*.py"))
CASES: Mapping[str, Case] = {
    case.architecture: case for file in FILES for case in importlib.import_module(f"tests.parity.families.{file.stem}").CASES
}
FAMILIES = {case.family.name: case.family for case in CASES.values()}


def pairs(compared: str = "", others: Iterable[str] = ()) -> list:
    """pytest's parameters (architecture, form of GELU), for every architecture with every form; of gradients, for those with a loss. The
    short suite has the first form of those whose case names `compared` ('' for all), and the tanh form of `others`."""
    short = {(name, case.activations[0]) for name, case in CASES.items() if not compared or compared in case.short}
    short |= {(name, "gelu_new") for name in others}
    wanted = {name: case for name, case in CASES.items() if case.labels or not compared.endswith("gradients")}
    all_pairs = [(name, activation) for name, case in wanted.items() for activation in case.activations]
    return [pytest.param(pair, id="-".join(pair), marks=[] if pair in short else pytest.mark.full) for pair in all_pairs]


def golden(architecture: str, prefix: str = "") -> dict[str, np.ndarray]:
    """What tests/golden/hf/make.py left of one architecture: the arrays whose names begin with `prefix`, by what follows it."""
    assert (GOLDEN / f"{architecture}.npz").exists(), f"no golden arrays: python -m tests.golden.hf.make {architecture}"
    with np.load(GOLDEN / f"{architecture}.npz") as file:
        return {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}


def inputs(case: Case, seed: int) -> dict[str, np.ndarray]:
    """transformers' arguments, int64: rows of an odd length, padded on the side of the family; types where the models are given them;
    and the architecture's labels."""
    random = np.random.default_rng(seed)
    rows, length = len(LENGTHS), max(LENGTHS)
    places = np.arange(length) - (length - np.array(LENGTHS)[:, None] if case.family.pads_left else 0)
    mask = ((places >= 0) & (places < np.array(LENGTHS)[:, None])).astype(np.int64)
    words = random.integers(5, VOCAB, (rows, length))
    out = {"input_ids": np.where(mask == 1, words, case.family.pad), "attention_mask": mask}
    if case.architecture.endswith("DoubleHeadsModel"):
        out["mc_token_ids"] = np.array(LENGTHS) - 1
    if case.family.typed:
        out["token_type_ids"] = mask * (places >= np.array(LENGTHS)[:, None] // 2)
    counted = mask * (random.random((rows, length)) < 0.4)
    counted[np.arange(rows), mask.argmax(axis=1)] = 1
    makers = {
        "next_sentence_label": lambda: random.integers(0, 2, rows),
        "sentence_order_label": lambda: random.integers(0, 2, rows),
        "start_positions": lambda: random.integers(0, LENGTHS),
        "end_positions": lambda: random.integers(0, LENGTHS),
        "labels": lambda: _labels(case, random, counted, words),
    }
    return out | {name: makers[name]().astype(np.int64) for name in case.labels}


def _labels(case: Case, random: np.random.Generator, counted: np.ndarray, words: np.ndarray) -> np.ndarray:
    if "next_token" in case.logits:
        return np.where(np.arange(words.shape[1]) < np.array(LENGTHS)[:, None], words, -100)
    if "mlm" in case.logits:
        return np.where(counted == 1, random.integers(5, VOCAB, words.shape), -100)
    if "tags" in case.logits:
        return np.where(counted == 1, random.integers(0, LABELS, words.shape), -100)
    return random.integers(0, LABELS, len(words))


def example(case: Case, theirs: Mapping[str, np.ndarray], positions: np.ndarray) -> Batch:
    """The same rows and labels as a corrupted example of ours; positions i32 [batch, length], as the model counts them."""
    tokens = theirs["input_ids"]
    out = {"tokens": tokens, "types": theirs.get("token_type_ids", np.zeros_like(tokens)), "segments": theirs["attention_mask"]}
    out["positions"] = positions
    labels = theirs.get("labels")
    if "mlm" in case.logits:
        masked = labels >= 0
        at = np.argsort(~masked, axis=1, kind="stable")[:, : masked.sum(1).max()]
        out |= {"masked_at": at, "masked": np.take_along_axis(masked, at, 1)}
        out["masked_ids"] = np.where(out["masked"], np.take_along_axis(labels, at, 1), 0)
    elif "tags" in case.logits:
        out["tags"] = np.where(labels >= 0, labels, -1)
    elif "classifier" in case.logits and case.labels:
        out["label"] = labels
    names = {"next_sentence_label": "is_random", "sentence_order_label": "is_random", "start_positions": "start", "end_positions": "end"}
    out |= {ours: theirs[name] for name, ours in names.items() if name in theirs}
    return {name: np.asarray(value, np.int32) for name, value in out.items()}
