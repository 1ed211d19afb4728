"""What enters a stack of transformer layers: the sum of a token's three vectors."""

import dataclasses

from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import Embed
from jaxenc.layers.initializers import Initializer, leading_rows
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class EmbeddingsSpec:
    """The numbers of the tables; a model's config fills them in (`models/bert.py` documents each). width: of every table."""

    vocab_size: int
    width: int
    positions: int
    first_position: int
    types: int
    norm_epsilon: float
    dropout: float
    initializer: Initializer


class Embeddings(nn.Module):
    """Token, position and type vectors, summed, normalised, then dropped out, in this order (google-research/bert modeling.py)."""

    spec: EmbeddingsSpec
    execution: Execution

    @nn.compact
    def __call__(self, tokens: Array, types: Array, positions: Array, noise: Keys | None) -> tuple[Array, Array]:
        """i32 [batch, length] each to [batch, length, width] in the compute dtype, the sum being float32, and the token table."""
        spec, init = self.spec, self.spec.initializer

        def table(name: str, rows: int, axis: str | None, init_rows: Initializer = init) -> Embed:
            return Embed(rows, spec.width, (axis, "table_embed"), init_rows, self.execution, name=name)

        token = table("token", padded(spec.vocab_size), "vocab", leading_rows(init, spec.vocab_size))
        position = table("position", spec.positions + spec.first_position, "length")
        total = token(tokens) + position(positions + spec.first_position)
        if spec.types:
            total = total + table("type", spec.types, None)(types)
        hidden = LayerNorm(spec.norm_epsilon, self.execution, name="norm")(total)
        return dropout(hidden, spec.dropout, noise, "embeddings"), token.table
