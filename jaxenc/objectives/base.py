"""The contract between an objective and everything that trains, evaluates, saves or loads it."""

import abc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from jax import Array

from jaxenc import metrics as metric_sums
from jaxenc.data.batch import FIELDS, Field
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.execution import Execution
from jaxenc.families.contract import ModelConfig
from jaxenc.heads import BUILT_IN, Head
from jaxenc.rng import Keys
from jaxenc.tree import Tree

Sums = dict[str, tuple[Array, Array]]
M = TypeVar("M", bound=ModelConfig)


class Objective(abc.ABC):
    """A frozen dataclass that holds its modules and its numbers; the only thing that the trainer knows of a model.

    The loss is the sum over terms of coef · (sum / weight), with sum and weight over the whole global batch: weights are counted
    before the first forward pass, so microbatches and shards add up to exactly the full batch.

    coef: {term: factor}; an objective without a term is opened and asked (`outputs`) but not trained.
    heads: what sits on the encoder, by its top-level name in the parameter tree: a `heads.contract.Fitted`, or what an objective has in
    its place. A run that takes another's parameters draws a head anew where that one has nothing of it; the rest must be there.
    scaffold: top-level names of parameters that only help to train the others; a model in use does without them.
    fields: the fields that a batch of its rows may hold: those of any batch and the labels of its heads.
    """

    coef: Mapping[str, float]
    heads: Mapping[str, Any] = MappingProxyType({})
    scaffold: tuple[str, ...] = ()
    fields: Mapping[str, Field] = MappingProxyType(FIELDS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Paths of the parameters of its heads that have a row a token, padded as `data.vocabulary.padded` says."""
        return tuple(f"{name}/{leaf}" for name, fitted in self.heads.items() for leaf in fitted.head.vocabulary)

    @property
    @abc.abstractmethod
    def reads(self) -> Mapping[str, int]:
        """The batch fields that `corrupt` takes, each with the bound that its values stay below (rows of a table), 0 for none."""

    @abc.abstractmethod
    def init(self, key: Array) -> Tree:
        """Parameters in float32, boxed with their logical axis names (`training/state.py` unboxes them).

        Traceable; it draws and computes nothing else.
        """

    def carry(self, batch: int) -> Tree:
        """What flows from one step to the next beside parameters, at the start: {} or a tree of zeros with leading axis `batch`.

        Activations in it have the compute dtype. A row that starts a stream (`fresh`) ignores its carry in `terms`.
        """
        return {}

    @abc.abstractmethod
    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        """One row of a batch (no row axis) to one example: integers, and labels as they are, leaves of O(length). The step maps it over
        rows."""

    @abc.abstractmethod
    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        """{term: i32 scalar}, how many predictions each term averages over in these rows."""

    @abc.abstractmethod
    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        """({term: float32 sum}, {metric: (sum, weight)}, next carry) of these rows.

        keys: for all that is drawn here, dropout and samples; `keys.rows` are these rows' own, so a part of a batch draws as the whole.
        train: False in an evaluation, without dropout; a loss that training approximates (sampled softmax) is then exact. Sums and
        weights may have any fixed shape, such as the counts of a histogram; they are added over parts of a batch, and in an evaluation
        over batches.
        """

    @abc.abstractmethod
    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """All that the model says of rows that nothing corrupts, float32; pure, without dropout, and what is not used costs nothing in jit.

        example: tokens, types, positions, segments, i32 [batch, length]. No query sees a key whose segment is 0, wherever it stands.
        `hidden` [layers + 1, batch, length, width]: the embedding output, then every layer; `pooled` [batch, width], where a head pools;
        and the logits of every other head under its name, as its module says: [batch, ...] of a head on a text, [batch, length, ...] on
        tokens, and [batch, length, vocab_size], without padding rows, on the vocabulary.
        """

    def predict(self, params: Tree, example: Mapping[str, Array], keys: Keys) -> dict[str, Array]:
        """{name: [rows, ...]}, one prediction for each of these rows, without dropout; {} for an objective with nothing to predict.

        example: rows as `corrupt` returns them. keys: for what is sampled. No row's prediction depends on another row; that of a padding
        row means nothing, nor does what a prediction for every token holds at places of padding.
        """
        return {}

    @abc.abstractmethod
    def flops(self, length: int) -> float:
        """Model FLOPs of one row of `length` tokens, forward and backward: matrix products only, a multiply and an add each counted."""

    def summary(self, sums: metric_sums.Sums) -> dict[str, float]:
        """{name: number} from summed metrics, on the host: of one step in training, of all rows in an evaluation."""
        return metric_sums.means(sums)


class ObjectiveConfig(abc.ABC, Generic[M]):
    """A frozen dataclass: what a recipe chooses of an objective for models of M. kind: its name in a recipe; carried: those of its fields
    that decide how large the objective's carry is, which has none where there are such and all of them are 0. trains: the heads of the
    models that it pretrains, by which a converted model finds it, () for an objective that no converted model finds; rows: those of a
    converted model's run."""

    kind: ClassVar[str]
    carried: ClassVar[tuple[str, ...]] = ()
    trains: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[DataConfig] = DataConfig()

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        return {}

    @abc.abstractmethod
    def build(
        self,
        model: M,
        vocabulary: Vocabulary,
        execution: Execution,
        data: DataConfig,
        max_predictions: int,
        heads: Mapping[str, Head] = BUILT_IN,
    ) -> Objective:
        """The objective of one phase. data: its rows; max_predictions: the most of one row, 0 for the config's own choice; heads: those
        that the config may name, where its heads are a choice."""
