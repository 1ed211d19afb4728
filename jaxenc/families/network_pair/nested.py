"""One network of a pair as an encoder of its own."""

import dataclasses

import jax
import jax.numpy as jnp
from flax.linen import meta
from jax import Array

from jaxenc import rng, tree
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families import attentive
from jaxenc.families.contract import TOKEN_TABLE, Encoder, EncoderConfig
from jaxenc.families.states import States
from jaxenc.layers.cache import Cache
from jaxenc.layers.visible import Visible
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# {sharing: prefixes of the paths of the discriminator's parameters that the generator uses}.
SHARED = {"none": (), "table": (f"embeddings/{TOKEN_TABLE}",), "embeddings": ("embeddings/",)}


@dataclasses.dataclass(frozen=True)
class Nested:
    """A `contract.Encoder`: `inner` with its parameters under `name`, except those whose paths begin with one of `shared`, which are read
    from `discriminator`."""

    inner: Encoder
    name: str
    shared: tuple[str, ...]

    @property
    def config(self) -> EncoderConfig:
        """Of this network."""
        return self.inner.config

    @property
    def execution(self) -> Execution:
        """Of this network."""
        return self.inner.execution

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return self.inner.width

    @property
    def table_width(self) -> int:
        """Of the token table."""
        return self.inner.table_width

    def apply(
        self,
        variables: Tree,
        tokens: Array,
        types: Array,
        positions: Array,
        visible: Visible,
        noise: Keys | None,
        all_layers: bool = False,
        cache: tuple[Cache, ...] | None = None,
    ) -> States:
        """As `contract.Encoder`; the two networks of a pair draw independently from the same `noise`."""
        noise = noise and noise.apart(self.name)
        given = () if cache is None else (cache,)  # only an `Incremental` model takes one
        own = {"params": self._own(variables["params"])}
        return self.inner.apply(own, tokens, types, positions, visible, noise, all_layers, *given)

    def attention_maps(self, params: Tree, tokens: Array, types: Array, positions: Array, visible: Visible) -> Array:
        """As `attentive.Attentive`. Raises UserError where `inner` is not."""
        return attentive.required(self.inner).attention_maps(self._own(params), tokens, types, positions, visible)

    def _own(self, params: Tree) -> Tree:
        """The parameters of `inner`."""
        taken = [(path, leaf) for path, leaf in tree.leaves(params["discriminator"]) if path.startswith(self.shared)]
        return tree.from_leaves([*tree.leaves(params[self.name]), *taken])

    def lazy_init(self, key: Array, tokens: Array, types: Array, positions: Array, visible: Visible, noise: Keys | None) -> Tree:
        """As `contract.Encoder`, without the shared parameters."""
        params = self.inner.lazy_init(key, tokens, types, positions, visible, noise)["params"]
        return {"params": {self.name: tree.split(params, lambda path: path.startswith(self.shared))[1]}}

    def forward_flops(self, length: int) -> float:
        """As `contract.Encoder`."""
        return self.inner.forward_flops(length)


def check_shared(generator: Nested, discriminator: Nested) -> None:
    """Raises UserError for a shared parameter that one of the networks does not have or has in another shape."""
    if not generator.shared:
        return
    row, lengths = jax.ShapeDtypeStruct((1, 2), jnp.int32), Visible.by_lengths(jax.ShapeDtypeStruct((1,), jnp.int32))

    def shapes(network: Nested) -> dict[str, tuple[int, ...]]:
        params = jax.eval_shape(lambda: network.inner.lazy_init(rng.init_key(0), row, row, row, lengths, None))["params"]
        return {path: leaf.shape for path, leaf in tree.leaves(meta.unbox(params)) if path.startswith(generator.shared)}

    theirs, ours = shapes(generator), shapes(discriminator)
    for path in dict.fromkeys([*ours, *theirs]):
        if theirs.get(path) != ours.get(path):
            shapes_of = f"{theirs.get(path, 'none')} in the generator and {ours.get(path, 'none')} in the discriminator"
            raise UserError(f"{path} has the shape {shapes_of}", "model.sharing", "make the embeddings equal, or set model.sharing to none")
