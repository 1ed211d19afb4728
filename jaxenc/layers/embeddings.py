"""The input of a stack of transformer layers: token, position and type vectors, summed."""

import dataclasses

from flax import linen as nn
from jax import Array

from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.layers.dropout import dropout
from jaxenc.layers.embed import Embed, look_up
from jaxenc.layers.initializers import Initializer, leading_rows
from jaxenc.layers.norm import LayerNorm
from jaxenc.rng import Keys


@dataclasses.dataclass(frozen=True)
class EmbeddingsSpec:
    """The hyper-parameters of the tables; a model's config fills them in (`families/bert/model.py` documents the fields). width: of every
    table. norm: whether the sum of the vectors is normalised; that of Radford et al. 2018 is not.

    table_dropout: rate of a dropout on the tables themselves, drawn once a step for all rows of the batch and for every other reader of the
    table, such as a tied softmax (openai/finetune-transformer-lm train.py, model, which has one table for tokens and positions).
    """

    vocab_size: int
    width: int
    positions: int
    first_position: int
    types: int
    norm_epsilon: float
    dropout: float
    initializer: Initializer
    table_dropout: float = 0.0
    norm: bool = True


class Embeddings(nn.Module):
    """dropout(norm(token + position + type vectors)) (google-research/bert modeling.py), or without the norm."""

    spec: EmbeddingsSpec
    execution: Execution

    @nn.compact
    def __call__(self, tokens: Array, types: Array, positions: Array, noise: Keys | None) -> tuple[Array, Array]:
        """(hidden [batch, length, width] in the compute dtype, the token table float32 [padded rows, width] after `table_dropout`).

        tokens, types, positions: i32 [batch, length]. The sum of the three vectors is float32.
        """
        spec, init = self.spec, self.spec.initializer

        def table(number: int, name: str, axis: str | None, rows: int, init_rows: Initializer = init) -> Array:
            whole = Embed(rows, spec.width, (axis, "table_embed"), init_rows, self.execution, name=name).table()
            return dropout(whole, spec.table_dropout, noise and noise.over(rows), "tables", number)

        token = table(0, "token", "vocab", padded(spec.vocab_size), leading_rows(init, spec.vocab_size))
        position = table(1, "position", "length", spec.positions + spec.first_position)
        total = look_up(token, tokens) + look_up(position, positions + spec.first_position)
        if spec.types:
            total = total + look_up(table(2, "type", None, spec.types), types)
        normalised = LayerNorm(spec.norm_epsilon, self.execution, name="norm")(total) if spec.norm else total
        return dropout(normalised.astype(self.execution.policy.compute), spec.dropout, noise, "embeddings"), token
