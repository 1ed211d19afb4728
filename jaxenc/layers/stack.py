"""Transformer layers one after another."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.execution import Execution
from jaxenc.layers.attend import Visible
from jaxenc.layers.block import Block, BlockSpec
from jaxenc.rng import Keys


def layer_name(number: int) -> str:
    """`layer_03`: the parameters of layer `number`, 0-based."""
    return f"layer_{number:02d}"


class Stack(nn.Module):
    """`layers` blocks whose parameters are stored layer by layer.

    They are unrolled, which runs faster, or, with `execution.scan`, stacked inside the step and scanned, which compiles faster. The
    parameter tree and the dropout masks are the same either way.
    """

    spec: BlockSpec
    layers: int
    execution: Execution

    @nn.compact
    def __call__(self, x: Array, visible: Visible, noise: Keys | None, all_layers: bool = False) -> Array:
        """[batch, length, width] to the last layer's output in the compute dtype.

        all_layers: x and every layer's output instead, [layers + 1, batch, length, width].
        """
        if self.execution.scan and not self.is_initializing():
            return self._scan(x, visible, noise, all_layers)
        block = nn.remat(Block) if self.execution.remat == "block" else Block
        states = [x]
        for layer in range(self.layers):
            states.append(block(self.spec, self.execution, name=layer_name(layer))(states[-1], visible, noise, layer))
        return jnp.stack(states) if all_layers else states[-1]

    def _scan(self, x: Array, visible: Visible, noise: Keys | None, all_layers: bool) -> Array:
        block = Block(self.spec, self.execution, parent=None)

        def body(state: Array, one: tuple[dict, Array]) -> tuple[Array, Array | None]:
            params, layer = one
            state = block.apply({"params": params}, state, visible, noise, layer)
            return state, state if all_layers else None

        if self.execution.remat == "block":
            body = jax.checkpoint(body, prevent_cse=False)
        stored = self.variables["params"]
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(stored[layer_name(layer)] for layer in range(self.layers)))
        last, states = jax.lax.scan(body, x, (params, jnp.arange(self.layers, dtype=jnp.uint32)))
        return jnp.concatenate([x[None], states]) if all_layers else last


def stack_flops(spec: BlockSpec, layers: int, length: int) -> float:
    """FLOPs of `layers` blocks' matrix products on one row of `length` tokens, forward; a multiply and an add are two."""
    width = spec.width
    per_token = 2.0 * (4 * width * width + 2 * width * spec.feed_forward) + 4.0 * length * width
    return layers * length * per_token
