"""One training step: corrupt, count, differentiate, clip, update. Pure, compiled once a phase."""

from collections.abc import Callable, Mapping, Set
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.sharding import Mesh

from jaxenc import rng
from jaxenc.objectives.base import Objective
from jaxenc.optim import optimizer as optimizers
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding import partition
from jaxenc.training import accumulate
from jaxenc.training.phases import Phase
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import Layout, State, without

StepReport = dict[str, Any]


def fields(objective: Objective, config: TrainConfig) -> Set[str]:
    """The batch fields that a step takes: those that the objective reads, and with static masks `epoch` and `index`."""
    return {*objective.reads, *(("epoch", "index") if config.dupe_factor else ())}


def corruption_keys(config: TrainConfig, seed: Array, keys: rng.Keys, batch: Mapping[str, Array]) -> rng.Keys:
    """The keys for corrupting the rows of a step: `keys`, or with `dupe_factor` keys from the epoch and the number of each row.

    seed: i32 or u32 scalar, the run's; may be traced.
    """
    if not config.dupe_factor:
        return keys
    return rng.static(seed, batch["epoch"], batch["index"], config.dupe_factor, keys.step)


def corrupt(objective: Objective, keys: rng.Keys, batch: Mapping[str, Array], mesh: Mesh) -> dict[str, Array]:
    """`Objective.corrupt` of every row of a batch, with a key for each row, on the device that holds the row."""
    rows = {name: batch[name] for name in objective.reads}
    every_row = jax.vmap(objective.corrupt, in_axes=(0, 0, None))
    return partition.by_rows(lambda key, one: every_row(key, one, keys.step), mesh)(keys.per_row("corrupt", "mask"), rows)


def train_step(
    objective: Objective,
    config: TrainConfig,
    optimizer: OptimConfig,
    phase: Phase,
    layout: Layout,
    state: State,
    batch: Mapping[str, Array],
    seed: Array,
) -> tuple[State, StepReport]:
    """(the state after one more batch, a report of float32 and i32 scalars).

    seed: i32 scalar, `train.seed`: an argument and not a constant of the program, so that runs which differ only in the seed share one
    compilation. The report holds `loss`, `metrics` {name: (sum, weight)}, `gradient_norm`, `lr`, `bad` (1 if this step was skipped) and
    `skipped` (the number of skipped steps so far). A step whose loss or gradient is not finite is skipped: it leaves parameters, moments
    and carry unchanged.
    """
    keys = rng.training(seed, state.step, phase.batch)
    example = corrupt(objective, corruption_keys(config, seed, keys, batch), batch, layout.mesh)
    grads, terms, weights, metrics, carry = accumulate.gradients(
        objective, config.microbatches, layout, state.params, state.frozen, state.carry, example, keys
    )
    own = without(state.all_params, objective.frozen)
    update = optimizers.build(optimizer, own, phase.lr, phase.warmup, phase.schedule_steps).update
    with jax.named_scope("optimizer"):  # the name that bench/kinds.py looks for
        loss, norm = accumulate.combine(objective, terms, weights), optax.tree.norm(grads)
        good = jnp.isfinite(loss) & jnp.isfinite(norm)
        params, moments, lr = update(grads, norm, state.moments, state.params, state.step - phase.schedule_start)
        before = state.params, state.moments, state.carry
        kept = jax.tree.map(lambda new, old: jnp.where(good, new, old), (params, moments, carry), before)

    bad = (~good).astype(jnp.int32)
    after = State(state.step + 1, state.skipped + bad, kept[0], state.frozen, kept[1], kept[2])
    return after, {"loss": loss, "metrics": metrics, "gradient_norm": norm, "lr": lr, "bad": bad, "skipped": after.skipped}


def compile_step(
    objective: Objective, config: TrainConfig, optimizer: OptimConfig, phase: Phase, layout: Layout
) -> Callable[[State, Mapping[str, Array], Array], tuple[State, StepReport]]:
    """`train_step` of (state, batch, seed) jitted for one phase: state and batch sharded in and out, the old state donated. Call it under
    `jax.set_mesh`."""

    def step(state: State, batch: Mapping[str, Array], seed: Array) -> tuple[State, StepReport]:
        return train_step(objective, config, optimizer, phase, layout, state, batch, seed)

    return jax.jit(
        step,
        in_shardings=(layout.shardings, partition.batch_sharding(layout.mesh), partition.replicated(layout.mesh)),
        out_shardings=(layout.shardings, partition.replicated(layout.mesh)),
        donate_argnums=0,
    )
