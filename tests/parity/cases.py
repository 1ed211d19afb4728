"""What our models are compared on with transformers: architectures, random rows and labels. Needs neither of the two libraries."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jaxenc.data.batch import Batch

VOCAB, LABELS, PAD = 131, 3, {"bert": 0, "roberta": 1, "electra": 0, "xlnet": 5, "albert": 0, "openaigpt": 0, "distilbert": 0}
LENGTHS = (11, 7, 2)
GOLDEN = Path(__file__).parents[1] / "golden" / "hf"


@dataclasses.dataclass(frozen=True)
class Case:
    """One architecture of transformers. labels: the arguments that make it return a loss. logits: {our output: attribute of its output}."""

    architecture: str
    labels: tuple[str, ...]
    logits: Mapping[str, str]

    @property
    def family(self) -> str:
        return next(family for family in PAD if self.architecture.lower().startswith(family))

    @property
    def activation_field(self) -> str:
        """Of the config that names the form of GELU."""
        return {"xlnet": "ff_activation", "openaigpt": "afn", "distilbert": "activation"}.get(self.family, "hidden_act")

    @property
    def activations(self) -> tuple[str, ...]:
        """transformers' names; its RoBERTa and ELECTRA have the erf form in the masked-token head whatever is configured, and its GPT calls
        the tanh form gelu."""
        only = self.architecture in ("RobertaForMaskedLM", "ElectraForMaskedLM") or self.family == "openaigpt"
        return ("gelu",) if only else ("gelu", "gelu_new")

    @property
    def typed(self) -> bool:
        """Whether it is given token types."""
        return self.family not in ("roberta", "openaigpt", "distilbert")


def _heads(family: str, kind: str = "") -> tuple[Case, ...]:
    """The architectures that every family has. kind: of the head for answers, where there are several."""
    return (
        Case(f"{family}ForMaskedLM", ("labels",), {"mlm": "logits"}),
        Case(f"{family}ForSequenceClassification", ("labels",), {"classifier": "logits"}),
        Case(f"{family}ForTokenClassification", ("labels",), {"tags": "logits"}),
        Case(f"{family}ForQuestionAnswering{kind}", ("start_positions", "end_positions"), {"spans": "start_logits end_logits"}),
    )


# The order gives the seeds of the golden arrays: what is new comes last.
CASES = {
    case.architecture: case
    for case in (
        Case("BertModel", (), {"pooled": "pooler_output"}),
        Case(
            "BertForPreTraining",
            ("labels", "next_sentence_label"),
            {"mlm": "prediction_logits", "next_sentence": "seq_relationship_logits"},
        ),
        *_heads("Bert"),
        *_heads("Roberta"),
        Case("RobertaModel", (), {"pooled": "pooler_output"}),
        *_heads("Electra"),
        Case("ElectraModel", (), {}),
        Case("ElectraForPreTraining", (), {"rtd": "logits"}),
        Case("XLNetModel", (), {}),
        Case("XLNetLMHeadModel", (), {"lm": "logits"}),  # its loss, of permuted rows, is compared by xlnet.py
        *_heads("XLNet", "Simple")[1:],
        *_heads("Albert"),
        Case("AlbertModel", (), {"pooled": "pooler_output"}),
        Case("AlbertForPreTraining", ("labels", "sentence_order_label"), {"mlm": "prediction_logits", "sentence_order": "sop_logits"}),
        Case("OpenAIGPTModel", (), {}),
        Case("OpenAIGPTLMHeadModel", ("labels",), {"next_token": "logits"}),
        # Its losses, of rows of several texts, are compared by test_live_heads.py.
        Case("OpenAIGPTDoubleHeadsModel", (), {"next_token": "logits", "choice": "mc_logits"}),
        *_heads("DistilBert"),
        Case("DistilBertModel", (), {}),
    )
}


def golden(architecture: str, prefix: str = "") -> dict[str, np.ndarray]:
    """What tests/golden/hf/make.py left of one architecture: the arrays whose names begin with `prefix`, by what follows it."""
    with np.load(GOLDEN / f"{architecture}.npz") as file:
        return {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}


def inputs(case: Case, seed: int) -> dict[str, np.ndarray]:
    """transformers' arguments, int64: rows of an odd length padded on the right, XLNet's on the left; types where the model has them; and
    the architecture's labels."""
    random = np.random.default_rng(seed)
    rows, length = len(LENGTHS), max(LENGTHS)
    places = np.arange(length) - (length - np.array(LENGTHS)[:, None] if case.family == "xlnet" else 0)
    mask = ((places >= 0) & (places < np.array(LENGTHS)[:, None])).astype(np.int64)
    words = random.integers(5, VOCAB, (rows, length))
    out = {"input_ids": np.where(mask == 1, words, PAD[case.family]), "attention_mask": mask}
    if case.architecture.endswith("DoubleHeadsModel"):
        out["mc_token_ids"] = np.array(LENGTHS) - 1
    if case.typed:
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


PAIRS = [(name, activation) for name, case in CASES.items() for activation in case.activations]
# Architectures whose head is one linear layer in every family, and Albert's that BertForPreTraining and AlbertForPreTraining cover.
PLAIN = {name for name in CASES if "ForTokenClassification" in name or "ForQuestion" in name} | {
    "AlbertForMaskedLM",
    "AlbertForSequenceClassification",
}
