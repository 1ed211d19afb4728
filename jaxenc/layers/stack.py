"""A stack of transformer layers."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxenc.execution import Execution
from jaxenc.layers.block import Block
from jaxenc.layers.cache import Cache
from jaxenc.layers.frame import BlockSpec
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys
from jaxenc.tree import Tree


def layer_name(number: int) -> str:
    """`layer_03`: the key of the parameters of layer `number`, 0-based."""
    return f"layer_{number:02d}"


class Stack(nn.Module):
    """`layers` blocks, whose parameters are stored layer by layer.

    The layers are unrolled, which runs faster, or, with `execution.scan`, stacked inside the step and scanned, which compiles faster. The
    parameter tree and the dropout masks are the same in both. block: the class of a layer, a module with the fields (spec, execution).
    stored: the number of layers with parameters, 0 for all of them. Layer i uses the parameters of stored layer i · stored // layers, as
    the groups of ALBERT (Lan et al. 2019; num_hidden_groups), with its own dropout mask. With pre-LN blocks `final_norm` normalises the
    last output. Raises ValueError for more stored layers than layers.
    """

    spec: BlockSpec
    layers: int
    execution: Execution
    block: type[nn.Module] = Block
    stored: int = 0

    @nn.compact
    def __call__(
        self,
        state: Tree,
        context: Tree,
        noise: Keys | None,
        all_layers: bool = False,
        own: Tree | None = None,
        cache: tuple[Cache, ...] | None = None,
    ) -> Tree:
        """The output of the last layer for the input `state`, [batch, length, width] or another tree that the blocks take and return.

        context: a second input, the same for every layer (`Visible` for `Block`); own: a third input, different for each layer, stacked on
        a first axis; noise: the keys of dropout, None for evaluation. all_layers: return the input and the output of every layer instead,
        [layers + 1, batch, length, width], the last one after `final_norm`. cache: one for each layer, of the tokens before `state`; each
        block takes its cache instead of `own` and returns (output, cache), and so does the stack, whose layers are then always unrolled.
        """
        if not 0 <= self.stored <= self.layers:
            raise ValueError(f"{self.stored} stored layers for {self.layers} layers: store at most as many, or 0 for all")
        if cache is not None:
            out, cache = self._unrolled_with_cache(state, context, noise, all_layers, cache)
        else:
            run = self._scanned if self.execution.scan and not self.is_initializing() else self._unrolled
            out = run(state, context, noise, all_layers, own)
        if self.spec.norm == "pre":
            norm = LayerNorm(self.spec.norm_epsilon, self.execution, self.spec.biases, name="final_norm")
            out = out.at[-1].set(norm(out[-1])) if all_layers else norm(out)
        return out if cache is None else (out, cache)

    @property
    def _names(self) -> list[str]:
        """The keys of the stored layers in the parameter tree."""
        return [layer_name(number) for number in range(self.stored or self.layers)]

    def _unrolled(self, state: Tree, context: Tree, noise: Keys | None, all_layers: bool, own: Tree | None) -> Tree:
        block = nn.remat(self.block) if self.execution.remat == "block" else self.block
        blocks = [block(self.spec, self.execution, name=name) for name in self._names]
        states = [state]
        for layer in range(self.layers):
            given = () if own is None else (jax.tree.map(lambda leaf, layer=layer: leaf[layer], own),)
            states.append(blocks[layer * len(blocks) // self.layers](states[-1], context, noise, layer, *given))
        return _stacked(states) if all_layers else states[-1]

    def _unrolled_with_cache(
        self, state: Tree, context: Tree, noise: Keys | None, all_layers: bool, cache: tuple[Cache, ...]
    ) -> tuple[Tree, tuple[Cache, ...]]:
        blocks = [self.block(self.spec, self.execution, name=name) for name in self._names]
        states, kept = [state], []
        for layer, one in enumerate(cache):
            state, one = blocks[layer * len(blocks) // self.layers](states[-1], context, noise, layer, one)
            states.append(state)
            kept.append(one)
        return _stacked(states) if all_layers else states[-1], tuple(kept)

    def _scanned(self, state: Tree, context: Tree, noise: Keys | None, all_layers: bool, own: Tree | None) -> Tree:
        block, names = self.block(self.spec, self.execution, parent=None), self._names
        stored = _stacked([self.variables["params"][name] for name in names])
        each_own = len(names) == self.layers

        def body(state: Tree, one: tuple) -> tuple[Tree, Tree]:
            params, layer, *given = one
            if not each_own:
                # Indexed inside the scan: stacked before it, a shared layer would be in memory once for each layer that uses it.
                params = jax.tree.map(lambda leaf: leaf[layer * len(names) // self.layers], stored)
            state = block.apply({"params": params}, state, context, noise, layer, *given)
            return state, state if all_layers else None

        if self.execution.remat == "block":
            body = jax.checkpoint(body, prevent_cse=False)
        layers = jnp.arange(self.layers, dtype=jnp.uint32)
        last, states = jax.lax.scan(body, state, (stored if each_own else None, layers, *(() if own is None else (own,))))
        return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, states) if all_layers else last


def _stacked(trees: list[Tree]) -> Tree:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def stack_flops(spec: BlockSpec, layers: int, length: int) -> float:
    """FLOPs of the matrix products of `layers` blocks, forward, on one row of `length` tokens; a multiply-add counts as two."""
    width = spec.width
    products = 3 if spec.gated else 2
    per_token = 2.0 * (4 * width * width + products * width * spec.feed_forward) + 4.0 * length * width
    return layers * length * per_token
