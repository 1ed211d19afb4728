"""A trained model in a notebook or a script: `jaxenc.load(DIR)`."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc.checkpoint import restore
from jaxenc.data import tokenizers
from jaxenc.data.batch import Batch
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.objectives.base import Objective
from jaxenc.objectives.mlm import Mlm
from jaxenc.objectives.pair import Pair
from jaxenc.run import Run, from_dict
from jaxenc.train.state import parameters


@dataclasses.dataclass(frozen=True)
class Guess:
    """One candidate for a masked token. probability: of the softmax over the true vocabulary."""

    token: str
    probability: float


@dataclasses.dataclass(frozen=True)
class Model:
    """A checkpoint on one device. config: the Run it was trained with; params: a plain dict tree of float32 arrays."""

    config: Run
    params: Mapping[str, Any]
    tokenizer: Tokenizer

    def mlm(self) -> Mlm:
        """The masked-token part of the objective."""
        objective = _objective(self.config, self.tokenizer)
        return objective.mlm if isinstance(objective, Pair) else objective

    def fill_mask(self, text: str, k: int = 5) -> list[list[Guess]]:
        """For each [MASK] of `text`, the `k` likeliest tokens, likeliest first.

        Raises UserError without [MASK], with too long a text and for a `k` that the vocabulary does not have.
        """
        if not 1 <= k <= self.tokenizer.vocabulary.size:
            raise UserError(f"{k} candidates are asked for: ask for 1 to {self.tokenizer.vocabulary.size}")
        ids = self.tokenizer.encode_prompt(text)
        at = [i for i, token in enumerate(ids) if token == self.tokenizer.vocabulary.mask]
        if not at:
            raise UserError(f"{text!r} holds no [MASK]: write [MASK] in the place of a word")
        longest = self.config.model.positions
        if len(ids) > longest:
            raise UserError(f"the text has {len(ids)} tokens and the model takes {longest}: shorten it")
        probabilities = np.asarray(_probabilities(self.mlm(), self.params, _one_row(ids, at)))[0]
        return [[Guess(self.tokenizer.token(int(i)), float(row[i])) for i in np.argsort(-row)[:k]] for row in probabilities]


def load(path: str | pathlib.Path, step: int | None = None) -> Model:
    """The model of a run directory (its newest checkpoint that verifies, or `step`) or of one checkpoint's folder, on one device.

    It works for checkpoints of any mesh. Raises UserError when there is none, or it is damaged.
    """
    folder = pathlib.Path(path)
    where = restore.find(folder / "checkpoints" / str(step) if step is not None else folder, True, "the model")
    config = from_dict(restore.read_json(where, "config.json"))
    tokenizer = tokenizers.load(where / "tokenizer")
    shapes, _ = parameters(_objective(config, tokenizer))
    return Model(config, restore.restore_params(where, shapes), tokenizer)


def _objective(config: Run, tokenizer: Tokenizer) -> Objective:
    """The objective of the last phase, computed as the first device wants it."""
    return config.build(tokenizer.vocabulary, config.plan[-1], jax.devices()[0].platform)


def _one_row(ids: list[int], at: list[int]) -> Batch:
    row = np.array([ids], np.int32)
    same = {"types": np.zeros_like(row), "segments": np.ones_like(row), "positions": np.arange(row.size, dtype=np.int32)[None]}
    return {"tokens": row, **same, "masked_at": np.array([at], np.int32)}


def _probabilities(objective: Mlm, params: Mapping[str, Any], example: Batch) -> jax.Array:
    """[1, masks, vocabulary]"""
    example = {name: jnp.asarray(value) for name, value in example.items()}
    return jax.nn.softmax(objective.logits(params, objective.hidden(params, example, None), example["masked_at"]))
