"""Run: all settings of a pretraining run, composed of the config dataclasses of its parts."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from jaxenc import config, families, objectives, precision
from jaxenc.checkpoint import migrate, restore
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.data import sources
from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families import Models
from jaxenc.families.contract import ModelConfig
from jaxenc.heads import BUILT_IN, Head
from jaxenc.layers import attend
from jaxenc.objectives.base import Objective, ObjectiveConfig, PhaseSetting
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.training import phases
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.settings import EvalConfig, LogConfig, TrainConfig

# A size up to this needs no array of that size: allenai/bilm-tf has 793,471 words, and its published weights have no softmax.
UNSEEN = 1 << 20
# As many layers may share their arrays; published models have up to 48 (microsoft/deberta-v2-xxlarge).
SHARED = 64


@dataclasses.dataclass(frozen=True)
class Run:
    """A pretraining run. `objective` and `model` take any class of `jaxenc.objectives` and `jaxenc.families`, or a model of your own."""

    objective: ObjectiveConfig = dataclasses.field(default=objectives.DEFAULT, metadata=config.kinds("objective"))
    model: ModelConfig = dataclasses.field(default=families.DEFAULT, metadata=config.kinds("model"))
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    phases: Phases = Phases()
    optim: OptimConfig = OptimConfig()
    mesh: MeshConfig = MeshConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    eval: EvalConfig = EvalConfig()
    log: LogConfig = LogConfig()

    @property
    def uses_steps(self) -> bool:
        """Whether any step depends on `train.steps`: not with a constant rate, and not where `phases.steps` is set."""
        return self.optim.schedule != "constant" and not self.phases.steps

    @property
    def plan(self) -> tuple[Phase, ...]:
        """The phases with all their numbers; one phase where `phases` is empty. Raises UserError for row lengths and batches that are
        impossible."""
        train, optim = self.train, self.optim
        numbers = (train.steps, self.data.length, train.batch, 0, optim.lr, optim.warmup)
        single = Phase(0, *numbers, schedule_start=0, schedule_steps=train.steps)
        plan = phases.resolve(self.phases, single)
        longest = max(phase.length for phase in plan)
        if 0 < self.model.positions < longest:
            values = config.flatten(config.to_dict(self.model), "model.")
            short = " and ".join(path for path, value in values if _limits(path, value, longest))
            what = f"data.length is {longest} and model.positions is {self.model.positions}"
            raise UserError(what, fix=f"shorten the rows, or raise {short}")
        for phase in plan:
            try:
                sources.check(self.data.of_length(phase.length), phase.batch)
            except UserError as error:
                raise error.at("phases") if self.phases.steps else error from error
        if self.data.rows in sources.BUCKETED and self.data.lengths[-1] > longest:
            fix = f"leave out what is beyond {longest}, or lengthen the rows with data.length"
            raise UserError(f"no row has {self.data.lengths[-1]} tokens", "data.lengths", fix)
        uneven = [phase.batch for phase in plan if phase.batch % self.train.microbatches]
        if uneven:
            raise UserError(
                f"the batch is {uneven[0]}, which train.microbatches {self.train.microbatches} does not divide",
                fix="set train.batch or phases.batch to a multiple of it",
            )
        return plan

    @property
    def unused(self) -> dict[str, str]:
        """{dotted path: reason} of the fields that have no effect, given the others. Each part lists its own fields; an objective or a
        model may also list fields of other parts."""
        parts = (self.objective.unused(self.model), *(part.unused for part in (self.model, self.data, self.phases, self.optim)))
        return {path: why for part in parts for path, why in part.items()}

    @property
    def longest_row(self) -> int:
        """Tokens of the longest rows of any phase; later positions are not trained."""
        return max(self.phases.length, default=self.data.length)

    def in_lengths(self, phase: Phase) -> tuple[Phase, ...]:
        """A phase for each length that its rows have, rising; the last is the phase itself."""
        return tuple(map(phase.of_length, self.data.of_length(phase.length).row_lengths))

    def with_vocabulary(self, vocabulary: Vocabulary) -> "Run":
        """The run with the numbers of the data's tokenizer in its model; they override the recipe's."""
        return dataclasses.replace(self, model=self.model.with_vocabulary(vocabulary))

    def execution(self, platform: str, length: int) -> Execution:
        """How the models of this run are computed on `platform` (the answer of `sharding.mesh.platform`) for rows of `length` tokens."""
        policy, model, packed = precision.policy(self.train.precision), self.model, self.data.rows in sources.PACKED
        rows = (model.attention_dropout, length, model.relative, packed)
        backend = attend.resolve(self.train.attention, platform, policy.compute, *rows)
        return Execution(policy, backend, self.train.remat, self.train.scan, packed, platform)

    def build(
        self,
        vocabulary: Vocabulary,
        phase: Phase,
        platform: str,
        heads: Mapping[str, Head] = BUILT_IN,
        teacher: ModelConfig | None = None,
    ) -> Objective:
        """The objective of one phase, for rows of its length; heads: those that its config may name; teacher: as in `PhaseSetting`. Call it
        on the result of `with_vocabulary`."""
        data, execution = self.data.of_length(phase.length), self.execution(platform, phase.length)
        setting = PhaseSetting(vocabulary, execution, data, phase.max_predictions, heads, teacher)
        return self.objective.build(self.model, setting)


def _limits(path: str, value: Any, length: int) -> bool:
    """Whether a field of a model is a number of positions, its own or that of one of its networks, below `length`."""
    return path.rpartition(".")[2] == "positions" and 0 < value < length


def from_dict(data: Mapping[str, Any], where: str = "config", models: Models = families.MODELS) -> Run:
    """The Run of a plain dict, such as the content of a config.json of any format; models: those that it may name. Raises UserError as
    `config.from_dict` and `migrate.fields`."""
    return config.from_dict(Run, migrate.fields(data, where) if isinstance(data, Mapping) else data, where, tables(models))


def of_file(data: Mapping[str, Any], path: pathlib.Path, models: Models = families.MODELS) -> Run:
    """`from_dict` of what the config.json at `path` holds; what it raises begins with the path."""
    try:
        return from_dict(data, models=models)
    except UserError as error:
        raise error.at(path) from error


def check(run: Run, models: Models = families.MODELS) -> None:
    """Raises UserError for a run whose config.json would not be read as the same run: a value of another type, or a model that is not
    among `models`."""
    if not isinstance(run, Run):
        raise UserError(f"the run is a {type(run).__name__}", fix="make it one with jaxenc.override(RECIPE.get_config().to_dict(), {})")
    from_dict(config.to_dict(run), models=models)


def tables(models: Models) -> config.Tables:
    """The kinds of a Run's parts, for `config.from_dict`."""
    return {"objective": objectives.OBJECTIVES, "model": models}


def of_checkpoint(step_dir: pathlib.Path, models: Models = families.MODELS) -> Run:
    """The Run that wrote a checkpoint; models: as in `from_dict`.

    Raises UserError, before any array is allocated, for a model whose sizes cannot be those of the checkpoint: more layers than it has
    arrays and than SHARED, or another size above its total number of elements and above UNSEEN.
    """
    run = of_file(restore.read_json(step_dir, "config.json"), step_dir / "config.json", models)
    arrays, numbers = restore.size(step_dir)
    for name, value in config.flatten(config.to_dict(run.model)):
        most = max(arrays, SHARED) if name.endswith(("layers", "highways")) else max(numbers, UNSEEN)
        if type(value) is int and value > most:
            content = f"{numbers:,} numbers in {arrays:,} arrays"
            raise UserError(f"its config.json has model.{name} {value:,} and it holds {content}", step_dir, "use the one it was saved with")
    return run


def to_json(run: Run) -> bytes:
    """The config.json of a run; `from_dict` reads it."""
    return json.dumps({"format": migrate.FORMAT, **config.to_dict(run)}, indent=1).encode()
