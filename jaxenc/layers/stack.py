"""Transformer layers one after another."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxenc.execution import Execution
from jaxenc.layers.block import Block, BlockSpec
from jaxenc.rng import Keys
from jaxenc.tree import Tree


def layer_name(number: int) -> str:
    """`layer_03`: the parameters of layer `number`, 0-based."""
    return f"layer_{number:02d}"


class Stack(nn.Module):
    """`layers` blocks whose parameters are stored layer by layer.

    They are unrolled, which runs faster, or, with `execution.scan`, stacked inside the step and scanned, which compiles faster. The
    parameter tree and the dropout masks are the same either way. block: the kind of layer, a module of (spec, execution).
    """

    spec: BlockSpec
    layers: int
    execution: Execution
    block: type[nn.Module] = Block

    @nn.compact
    def __call__(self, state: Tree, context: Tree, noise: Keys | None, all_layers: bool = False, own: Tree | None = None) -> Tree:
        """The last layer's output for what enters the first, [batch, length, width] or what else the blocks pass on.

        context: what every layer reads beside it (`Visible` for `Block`); own: what each reads of its own, stacked on a first axis.
        all_layers: what enters and every layer's output instead, [layers + 1, batch, length, width].
        """
        if self.execution.scan and not self.is_initializing():
            return self._scan(state, context, noise, all_layers, own)
        block = nn.remat(self.block) if self.execution.remat == "block" else self.block
        states = [state]
        for layer in range(self.layers):
            given = () if own is None else (jax.tree.map(lambda leaf, layer=layer: leaf[layer], own),)
            states.append(block(self.spec, self.execution, name=layer_name(layer))(states[-1], context, noise, layer, *given))
        return _stacked(states) if all_layers else states[-1]

    def _scan(self, state: Tree, context: Tree, noise: Keys | None, all_layers: bool, own: Tree | None) -> Tree:
        block = self.block(self.spec, self.execution, parent=None)

        def body(state: Tree, one: tuple) -> tuple[Tree, Tree]:
            params, layer, *given = one
            state = block.apply({"params": params}, state, context, noise, layer, *given)
            return state, state if all_layers else None

        if self.execution.remat == "block":
            body = jax.checkpoint(body, prevent_cse=False)
        stored = self.variables["params"]
        params = _stacked([stored[layer_name(layer)] for layer in range(self.layers)])
        each = (params, jnp.arange(self.layers, dtype=jnp.uint32), *(() if own is None else (own,)))
        last, states = jax.lax.scan(body, state, each)
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, states) if all_layers else last


def _stacked(trees: list[Tree]) -> Tree:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def stack_flops(spec: BlockSpec, layers: int, length: int) -> float:
    """FLOPs of `layers` blocks' matrix products on one row of `length` tokens, forward; a multiply and an add are two."""
    width = spec.width
    per_token = 2.0 * (4 * width * width + 2 * width * spec.feed_forward) + 4.0 * length * width
    return layers * length * per_token
