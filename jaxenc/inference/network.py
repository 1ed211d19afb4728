"""What the model of a run computes, as functions of its parameters: arrays in, arrays out."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import rng
from jaxenc.data import characters
from jaxenc.data.batch import CHARACTERS, Batch
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.data.vocabulary import unnamed
from jaxenc.execution import Execution
from jaxenc.heads import BUILT_IN, Head
from jaxenc.heads.contract import Fitted
from jaxenc.inference import inputs
from jaxenc.inference.inputs import SHORTEST, compiled_length, power_of_two
from jaxenc.objectives.base import Objective, PhaseSetting
from jaxenc.precision import policy
from jaxenc.sharding.mesh import platform
from jaxenc.training.run import Run
from jaxenc.tree import Tree


def exact() -> Execution:
    """How a loaded model computes: in float32 on one device."""
    return Execution(policy("float32"), "xla", "none", False, platform=platform(jax.devices()[0]))


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """The functions of a run's model, at the highest matmul precision. Owns their compiled programs, which take any parameters.

    config: the Run; objective: that of the Run, from `objective_of`.
    """

    config: Run
    objective: Objective

    def apply(self, params: Tree, batch: Mapping[str, Any]) -> dict[str, Array]:
        """The result of `Objective.outputs` for `batch`, as in `Model.apply`; pure."""
        with jax.default_matmul_precision("highest"):
            return self.objective.outputs(params, self._example(batch))

    def _example(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        """The fields of `batch`, as `apply` takes it, and the defaults of those that it leaves out."""
        tokens = batch["tokens"]
        heads = (one.head for one in self.objective.heads.values() if isinstance(one, Fitted))
        given = {field.name for head in heads for field in head.inputs} & batch.keys()
        example = {
            **{name: batch[name] for name in given},
            **({CHARACTERS: batch[CHARACTERS]} if CHARACTERS in self.config.model.inputs else {}),
            "tokens": tokens,
            "types": batch.get("types", np.zeros(tokens.shape, np.int32)),
            "segments": batch.get("segments", np.ones(tokens.shape, np.int32)),
            "positions": batch["positions"] if "positions" in batch else self.config.model.positions_of(tokens),
        }
        return {name: jnp.asarray(value) for name, value in example.items()}

    def compute(self, name: str, params: Tree, rows: Batch) -> Array:
        """The output `name` for `rows`, as in `Model.compute`, compiled."""
        count, length = rows["tokens"].shape
        padded = compiled_length(length)
        wanted = (power_of_two(count, 1), min(padded, self.config.model.positions or padded))
        return self._compiled(name, params, inputs.filled(rows, *wanted))

    def shape(self, params: Tree) -> tuple[int, int]:
        """(layers + 1, width) of `hidden` in `Objective.outputs`; for a pair, those of the network that is used."""
        row = {name: jax.ShapeDtypeStruct((1, SHORTEST), jnp.int32) for name in ("tokens", "types", "segments", "positions")}
        row[CHARACTERS] = jax.ShapeDtypeStruct((1, SHORTEST, characters.WIDTH), jnp.uint16)
        states, _, _, width = jax.eval_shape(self.apply, params, row)["hidden"].shape
        return states, width

    @functools.cached_property
    def predict(self) -> Callable[[Tree, Batch], Mapping[str, Array]]:
        """`Objective.predict` of (params, rows), compiled, with the keys of an evaluation."""

        def run(params: Tree, rows: Batch) -> Mapping[str, Array]:
            keys = rng.evaluation(self.config.train.seed, jnp.arange(len(rows["segments"])))
            with jax.default_matmul_precision("highest"):
                return self.objective.predict(params, rows, keys)

        return jax.jit(run)

    @functools.cached_property
    def _compiled(self) -> Callable[[str, Tree, Batch], Array]:
        def run(name: str, params: Tree, batch: Batch) -> Array:
            if name == "attentions":
                with jax.default_matmul_precision("highest"):
                    return self.objective.attentions(params, self._example(batch))
            outputs = self.apply(params, batch)
            return outputs["hidden"][-1:] if name == "top" else outputs[name]

        return jax.jit(run, static_argnums=0)


def objective_of(config: Run, tokenizer: Tokenizer | None, heads: Mapping[str, Head] = BUILT_IN) -> Objective:
    """The objective of a run for inference: in float32, on one device, at any length that the model supports."""
    vocabulary = tokenizer.vocabulary if tokenizer else unnamed(config.model.pieces)
    longest = config.model.positions or config.longest_row
    data = dataclasses.replace(config.data, length=longest)
    return config.objective.build(config.model, PhaseSetting(vocabulary, exact(), data, heads=heads))
