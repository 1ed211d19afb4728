"""The vector of a word from its characters (Kim et al. 2016, as bilm/training.py of allenai/bilm-tf builds it)."""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from jaxenc.data import characters
from jaxenc.execution import Execution
from jaxenc.layers import initializers
from jaxenc.layers.activation import activate
from jaxenc.layers.dense import Dense
from jaxenc.layers.initializers import Constant, Initializer, Normal, Uniform

# Before training a highway passes most of a word through unchanged.
CARRY_BIAS = -2.0


@dataclasses.dataclass(frozen=True)
class CharCnnSpec:
    """The numbers of the network. character_width: of a character's vector. filter_widths, filters: how many characters each convolution
    reads at once, and how many filters it has. highways: layers. width: of the word's vector. activation: `relu` or `tanh`."""

    character_width: int
    filter_widths: tuple[int, ...]
    filters: tuple[int, ...]
    activation: str
    highways: int
    width: int

    @property
    def initializers(self) -> list[Initializer]:
        """What each convolution's kernel starts from: it goes by the activation, as published."""
        if self.activation == "relu":
            return [Uniform(0.05) for _ in self.filter_widths]
        return [Normal((width * self.character_width) ** -0.5) for width in self.filter_widths]

    def forward_flops(self) -> float:
        """FLOPs of the matrix products of one word, forward."""
        places = [characters.WIDTH - width + 1 for width in self.filter_widths]
        kernels = [width * self.character_width * count for width, count in zip(self.filter_widths, self.filters, strict=True)]
        filters = sum(self.filters)
        return 2.0 * (sum(map(int.__mul__, places, kernels)) + self.highways * 2 * filters**2 + filters * self.width)


class CharCnn(nn.Module):
    """Convolutions over the characters, the largest value of each filter over all places where it fits whole, highways, a projection.

    A convolution's kernel is [width · features, filters], the characters in order.
    """

    spec: CharCnnSpec
    execution: Execution

    @nn.compact
    def __call__(self, ids: Array) -> Array:
        """Character ids uint16 [..., characters.WIDTH] of `data/characters.py` to [..., width] in the compute dtype."""
        spec = self.spec
        x = CharacterTable(spec.character_width, self.execution, name="characters")(ids)
        found = []
        for number, (width, filters, init) in enumerate(zip(spec.filter_widths, spec.filters, spec.initializers, strict=True)):
            convolution = Dense(filters, (None, None), init, self.execution, name=f"convolution_{number:02d}")
            found.append(jnp.max(convolution(windows(x, width)), axis=-2))
        x = activate(spec.activation, jnp.concatenate(found, axis=-1))
        for number in range(spec.highways):
            x = Highway(self.execution, name=f"highway_{number:02d}")(x)
        init = Normal(sum(spec.filters) ** -0.5)
        return Dense(spec.width, (None, "embed"), init, self.execution, name="projection")(x)


class CharacterTable(nn.Module):
    """A vector for each of the characters.SIZE ids.

    A product with one-hot ids and not a look-up: most of a word is padding, and the backward pass of a look-up would add nearly all
    gradients to one row, one after another.
    """

    features: int
    execution: Execution

    @nn.compact
    def __call__(self, ids: Array) -> Array:
        """[...] to [..., features] in the compute dtype."""
        policy = self.execution.policy
        init = nn.with_logical_partitioning(Uniform(1.0), (None, "table_embed"))
        table = self.param("table", init, (characters.SIZE, self.features), policy.params)
        return jax.nn.one_hot(ids, characters.SIZE, dtype=policy.compute) @ table.astype(policy.compute)


def windows(x: Array, width: int) -> Array:
    """Every `width` neighbours of [..., places, features], side by side: [..., places - width + 1, width · features]."""
    places = x.shape[-2] - width + 1
    return jnp.concatenate([x[..., at : at + places, :] for at in range(width)], axis=-1)


class Highway(nn.Module):
    """carry · relu(transform) + (1 - carry) · x, where carry = sigmoid(x · kernel + bias) (Srivastava et al. 2015)."""

    execution: Execution

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """[..., filters] to the same; the gate is float32."""
        width, init = x.shape[-1], Normal(x.shape[-1] ** -0.5)
        dense = lambda name, start: Dense(width, (None, None), init, self.execution, start, name=name)(x).astype(jnp.float32)
        carry = jax.nn.sigmoid(dense("carry", Constant(CARRY_BIAS)))
        return (carry * jax.nn.relu(dense("transform", initializers.zeros)) + (1 - carry) * x).astype(x.dtype)
