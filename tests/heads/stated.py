"""What a file in `built_in/` states of a built-in head: existing runs rely on it."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True)
class Stated:
    """site: the number that seeds its parameters and its dropout, which may never change or be used again. role: what it reads.
    prediction: from logits, float64 [rows, tokens, classes], to what an evaluation keeps of them, in NumPy."""

    site: int
    role: str
    prediction: Callable[[np.ndarray], np.ndarray]


def by_name() -> Mapping[str, Stated]:
    """{name of the head: what its file states}, of every file in `built_in/`."""
    files = sorted((Path(__file__).parent / "built_in").glob("*.py"))
    return {file.stem: importlib.import_module(f"tests.heads.built_in.{file.stem}").STATED for file in files}


def softmax(logits: np.ndarray) -> np.ndarray:
    """The probability of each class."""
    odds = np.exp(logits)
    return odds / odds.sum(-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """The probability of each class, independent of the others."""
    return 1 / (1 + np.exp(-logits))


def likeliest(logits: np.ndarray) -> np.ndarray:
    """The class with the largest logit, int32."""
    return logits.argmax(-1).astype(np.int32)


def itself(logits: np.ndarray) -> np.ndarray:
    """The logits, scores or vectors as they are."""
    return logits
