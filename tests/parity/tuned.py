"""What the heads of fine-tuned models are compared on with transformers: architectures, random rows of one or two texts, and labels."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxenc.data.batch import Batch
from tests.parity import cases
from tests.parity.cases import LABELS, LENGTHS
from tests.parity.family import Case, Family

CHOICES = 3
# GPT's factor of the language model beside the choice (openai/finetune-transformer-lm train.py, lm_coef).
LANGUAGE = 0.5


def _case(family: Family, head: str) -> Case:
    spans = head == "spans"
    labels = ("start_positions", "end_positions") if spans else ("labels",)
    return Case(family, family.tuned[head], labels, {head: "start_logits end_logits" if spans else "logits"})


TUNED = {f"{family.name}-{head}": _case(family, head) for family in cases.FAMILIES.values() for head in family.tuned}
TUNED["OpenAIGPT-double"] = dataclasses.replace(
    cases.CASES["OpenAIGPTDoubleHeadsModel"],
    labels=("labels", "mc_labels"),
    logits={"choice": "mc_logits", "next_token": "logits"},
)


def head_of(case: Case) -> str:
    """The head that has labels."""
    return next(iter(case.logits))


def inputs(case: Case, seed: int, pair: bool) -> dict[str, np.ndarray]:
    """transformers' arguments: three rows of one text, or of two with types of their own; [rows, choices, length] for a choice. The labels
    are int64, but float32 scores and sets of labels."""
    random, head = np.random.default_rng(seed), head_of(case)
    plain = dataclasses.replace(case, labels=())
    texts = [cases.inputs(plain, seed + i) for i in range(CHOICES if head == "choice" else 1)]
    out = {name: np.stack([one[name] for one in texts], axis=1) if head == "choice" else array for name, array in texts[0].items()}
    if not pair and "token_type_ids" in out:
        out["token_type_ids"] = np.zeros_like(out["token_type_ids"])
    rows, mask = len(LENGTHS), out["attention_mask"]
    if head == "spans":
        return out | {f"{end}_positions": random.integers(0, LENGTHS).astype(np.int64) for end in ("start", "end")}
    if "next_token" in case.logits:
        # Its mask has one row for each text and not for each choice; padding at the end is seen by no text.
        del out["attention_mask"]
        return out | {"labels": np.where(mask > 0, out["input_ids"], -100), "mc_labels": random.integers(0, CHOICES, rows)}
    labels = {
        "classifier": lambda: random.integers(0, LABELS, rows),
        "regressor": lambda: random.normal(size=rows).astype(np.float32),
        "multilabel": lambda: random.integers(0, 2, (rows, LABELS)).astype(np.float32),
        "tags": lambda: np.where((mask > 0) & (random.random(mask.shape) < 0.7), random.integers(0, LABELS, mask.shape), -100),
        "choice": lambda: random.integers(0, CHOICES, rows),
    }
    return out | {"labels": labels[head]()}


def example(case: Case, theirs: Mapping[str, np.ndarray], positions: np.ndarray) -> Batch:
    """The same rows and labels as a batch of ours; positions i32, of the shape of the tokens."""
    tokens, head = theirs["input_ids"], head_of(case)
    mask = theirs.get("attention_mask")
    if mask is None:
        mask = theirs["labels"] >= 0
    out = {"tokens": tokens, "types": theirs.get("token_type_ids", np.zeros_like(tokens)), "segments": mask, "positions": positions}
    out = {name: np.asarray(value, np.int32) for name, value in out.items()}
    if head == "spans":
        return out | {end: theirs[f"{end}_positions"].astype(np.int32) for end in ("start", "end")}
    labels = theirs["mc_labels" if "mc_labels" in theirs else "labels"]
    name = {"classifier": "label", "regressor": "score", "multilabel": "classes"}.get(head, head)
    if head == "regressor":
        return out | {name: labels}
    return out | {name: np.where(labels < 0, -1, labels).astype(np.int32)}
