"""The contract between an objective and everything that trains, evaluates, saves or loads it."""

import abc
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from jax import Array

from jaxenc import metrics as metric_sums
from jaxenc.data.batch import FIELDS, Field
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import ModelConfig
from jaxenc.heads import BUILT_IN, Head
from jaxenc.rng import Keys
from jaxenc.tree import Tree

Sums = dict[str, tuple[Array, Array]]
# The top-level key of a teacher's parameters in the tree of an objective that has one.
TEACHER = "teacher"
M = TypeVar("M", bound=ModelConfig)


class Objective(abc.ABC):
    """A frozen dataclass with its modules and hyper-parameters: all that the trainer knows of a model.

    The loss is the sum over terms of coef · (sum / weight), with sum and weight over the global batch: weights are counted before the first
    forward pass, so microbatches and shards add up to exactly the full batch.

    coef: {term: factor}; an objective without terms can be loaded and used (`outputs`) but not trained.
    heads: the heads by their top-level keys in the parameter tree, each a `heads.contract.Fitted` or a module of the objective's own. When
    a run starts from another's parameters (`--init-from`), heads that the other lacks are initialised; everything else must be there.
    scaffold: top-level keys of parameters that are only needed in training.
    frozen: top-level keys of parameters that are never trained: (TEACHER,) for an objective with a teacher, () for any other. They have no
    gradient and no moments, are loaded from the teacher's checkpoint and saved once per run (`training/teacher.py`); of what `init`
    returns for them only the shapes and axis names are used.
    fields: the fields that a batch may have: the standard ones and the labels of the heads.
    """

    coef: Mapping[str, float]
    heads: Mapping[str, Any] = MappingProxyType({})
    scaffold: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    fields: Mapping[str, Field] = MappingProxyType(FIELDS)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Paths of the parameters of its heads that have one row for each token, padded as `data.vocabulary.padded` says."""
        return tuple(f"{name}/{leaf}" for name, fitted in self.heads.items() for leaf in fitted.head.vocabulary)

    @property
    @abc.abstractmethod
    def reads(self) -> Mapping[str, int]:
        """The batch fields that `corrupt` takes, each with the exclusive upper bound of its values (rows of a table), 0 for none."""

    @abc.abstractmethod
    def init(self, key: Array) -> Tree:
        """The initial parameters in float32, boxed with their logical axis names (`training/state.py` unboxes them); may be traced."""

    def init_from_teacher(self, params: Tree, teacher: Tree) -> Tree:
        """The parameters that a fresh run copies from its teacher: a part of the tree `params` with the teacher's values, {} for none.

        params: the initial parameters without `frozen`; teacher: the parameters under TEACHER. Both may be shapes. Raises UserError where
        they do not fit.
        """
        return {}

    def carry(self, batch: int) -> Tree:
        """The initial recurrent state that each row passes to the next step: {} or a tree of zeros with leading axis `batch`.

        Its activations have the compute dtype. In `terms` a row that starts a stream (`fresh`) ignores its carry.
        """
        return {}

    @abc.abstractmethod
    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        """From one row of a batch (no row axis) to one example: leaves of O(length), integers and the unchanged labels. The step maps it
        over the rows with jax.vmap. step: i32 scalar, for schedules."""

    @abc.abstractmethod
    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        """{term: i32 scalar}, the number of predictions in these rows that each term averages over."""

    @abc.abstractmethod
    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        """({term: float32 sum}, {metric: (sum, weight)}, next carry) of these rows.

        keys: for dropout and sampling; `keys.rows` are the numbers of these rows, so a microbatch draws as the full batch does. train:
        False in an evaluation: without dropout, and with the exact form of a loss that training approximates (sampled softmax). Sums and
        weights may have any fixed shape, such as the counts of a histogram; they are added over microbatches, and in an evaluation over
        batches.
        """

    @abc.abstractmethod
    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs of the model for uncorrupted rows, float32; pure, without dropout. Unused outputs cost nothing under jit.

        example: tokens, types, positions, segments, i32 [batch, length]. No query sees a key of segment 0, at any place. Returns `hidden`
        [layers + 1, batch, length, width], the embedding output and then every layer; `pooled` [batch, width], where a head pools; and the
        logits of every other head under its name: [batch, ...] for a head on a text, [batch, length, ...] on tokens, and [batch, length,
        vocab_size], with spare rows (`ModelConfig.spare_rows`) and without padding rows, on the vocabulary. A head that searches has each
        of its predictions under `name_prediction`, and the example may leave out its `inputs`.
        """

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        """float32 [layers, batch, heads, length, length]: the attention weights of the layers whose states are `hidden` in `outputs`, of
        each key (last axis) for each query; pure, without dropout, and 0 for a key that the query does not see.

        example: as for `outputs`. Raises UserError for a model without attention.
        """
        raise UserError("this model has no attention", fix="choose a model whose layers attend")

    def predict(self, params: Tree, example: Mapping[str, Array], keys: Keys) -> dict[str, Array]:
        """{name: [rows, ...]}, one prediction for each of these rows, without dropout; {} for an objective without predictions.

        example: rows as `corrupt` returns them. keys: for sampling. The prediction of a row does not depend on other rows; predictions for
        padding rows and at padding places are arbitrary.
        """
        return {}

    @abc.abstractmethod
    def flops(self, length: int) -> float:
        """Model FLOPs of one row of `length` tokens, forward and backward: matrix products only, a multiply-add counts as two."""

    def summary(self, sums: metric_sums.Sums) -> dict[str, float]:
        """{name: number} from summed metrics, on the host: those of one step in training, of all rows in an evaluation."""
        return metric_sums.means(sums)


@dataclasses.dataclass(frozen=True)
class PhaseSetting:
    """What an objective is built for, besides its model.

    vocabulary: the tokenizer's.
    execution: how modules are computed.
    data: the settings of the rows, with the phase's length.
    max_predictions: the limit of one row, 0 for the config's own.
    heads: those that the config may name, for an objective whose heads are configurable.
    teacher: the model of the teacher, None where nothing is trained or evaluated: an objective whose config has a teacher
        (`ObjectiveConfig.has_teacher`) is then built without it.
    """

    vocabulary: Vocabulary
    execution: Execution
    data: DataConfig
    max_predictions: int = 0
    heads: Mapping[str, Head] = dataclasses.field(default_factory=lambda: BUILT_IN)
    teacher: ModelConfig | None = None


class ObjectiveConfig(abc.ABC, Generic[M]):
    """The settings of an objective for models of type M, a frozen dataclass.

    kind: the name of the objective in a recipe. carried: its fields that set the size of the carry; where there are any and all are 0,
    there is no carry. trains: the heads that it pretrains: a converted model with exactly these heads gets this objective; () for never.
    rows: the data settings of such a converted model's run. has_teacher: whether it has a field `teacher`, which names the
    run or checkpoint of a frozen model.
    """

    kind: ClassVar[str]
    carried: ClassVar[tuple[str, ...]] = ()
    trains: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[DataConfig] = DataConfig()
    has_teacher: ClassVar[bool] = False

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes of its heads, in the order of their logits; () for an objective without classes."""
        return ()

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        return {}

    def predicted(self, length: int, max_predictions: int = 0) -> float:
        """The share of the tokens of full rows of `length` tokens that a held-out loss rests on, 1 where it is a loss of every token.
        max_predictions: of the phase, as in `PhaseSetting`."""
        return 1.0

    @abc.abstractmethod
    def build(self, model: M, setting: PhaseSetting) -> Objective:
        """The objective of one phase."""
