"""What a run directory says of its run: its settings, metrics and events."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc import cache, config, storage
from jaxenc.checkpoint import migrate
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.results import seeds_in
from jaxenc.training import events, phases, prepare, record
from jaxenc.training.events import EVENTS, FINISHED, PREEMPTED
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.record import METRICS
from jaxenc.training.settings import EvalConfig, TrainConfig

STOPPED, GOING = "stopped", "running or killed"
FILES = (METRICS, prepare.CONFIG, EVENTS)
# The names in every row of metrics.jsonl that say where it belongs. The others are numbers of the model.
ADDRESS = ("step", "split", "seconds")


@dataclasses.dataclass(frozen=True)
class Settings:
    """fields: the content of config.json, in today's format; its model may be of a kind that only the user's own code knows. data, optim,
    eval, plan: the parts that are the same for every model; plan: the phases."""

    fields: Mapping[str, Any]
    data: DataConfig
    optim: OptimConfig
    eval: EvalConfig
    plan: tuple[Phase, ...]

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.plan[-1].end

    def tokens(self, step: int) -> int:
        """Σ batch · length of the first `step` steps, padding counted; of bucketed rows the length is that of the longest."""
        return sum(max(0, min(step, phase.end) - phase.start) * phase.batch * phase.length for phase in self.plan)


@dataclasses.dataclass(frozen=True)
class History:
    """name: of the run on a page. workdir: its directory on this machine, or the folder of its copies. rows: of metrics.jsonl. events: of
    events.jsonl."""

    name: str
    workdir: pathlib.Path
    rows: list[dict[str, Any]]
    events: list[dict[str, Any]]
    settings: Settings

    @property
    def held_out(self) -> dict[str, Any]:
        """The last held-out row, {} without one."""
        return next((row for row in reversed(self.rows) if row["split"] == "held_out"), {})

    @property
    def step(self) -> int:
        """The last step with a row, 0 without one."""
        return max((row["step"] for row in self.rows), default=0)

    @property
    def start(self) -> Mapping[str, Any]:
        """The last row `start`, {} in a run without events.jsonl."""
        return next((row for row in reversed(self.events) if row["event"] == "start"), {})

    @property
    def state(self) -> str:
        """What became of the run: `finished`, STOPPED (preempted), `ended with` and the name of an exception, or GOING, where it
        runs or was killed, which its files do not tell apart."""
        last = next((row for row in reversed(self.events) if row["event"] in ("start", "stop")), {})
        reason = str(last.get("reason", ""))
        if reason == FINISHED or (not self.events and self.step >= self.steps):
            return "finished"
        return STOPPED if reason == PREEMPTED else f"ended with {reason}" if reason else GOING

    @property
    def steps(self) -> int:
        """Of the whole run, as the last start had them."""
        return int(self.start.get("steps", self.settings.steps))


def expanded(workdirs: Sequence[str | pathlib.Path]) -> list[str]:
    """`workdirs`, paths and URLs; a work directory of `finetune` is replaced by the run directories of its seeds, in order."""
    return [run for workdir in map(str, workdirs) for run in _seeds(workdir) or [workdir]]


def _seeds(workdir: str) -> list[str]:
    """The run directories of the seeds in a work directory of `finetune`; [] for any other folder, such as the run directory of a seed."""
    return [storage.below(workdir, name) for name in seeds_in(storage.names(workdir))]


def has_numbers(workdir: str | pathlib.Path) -> bool:
    """Whether a run directory, or the one at a URL, has a metrics.jsonl."""
    return METRICS in storage.names(workdir)


def read(workdir: str | pathlib.Path, name: str = "") -> History:
    """The history of the run in `workdir`, a path or a URL. name: of the run on a page, '' for `workdir` as it was given. Raises UserError
    for a directory without metrics and for files that are damaged."""
    with cache.at_hand(workdir, FILES) as folder:
        rows = record.rows(folder)
        return History(name or str(workdir), folder, rows, events.read(folder / EVENTS), settings(folder / prepare.CONFIG))


def settings(path: pathlib.Path) -> Settings:
    """The settings in a config.json. Raises UserError for any other file."""
    fields = migrate.fields(read_json(path, "name a run directory"), f"{path}")
    part = lambda cls, key: config.from_dict(cls, fields.get(key, {}), f"{path}: config.{key}")
    for key in ("objective", "model"):
        if not isinstance(fields.get(key, {}), Mapping):
            raise UserError(f"config.{key} is {fields[key]!r}, which is not a mapping of fields", path, "restore the file")
    data, train, optim = part(DataConfig, "data"), part(TrainConfig, "train"), part(OptimConfig, "optim")
    single = Phase(0, train.steps, data.length, train.batch, 0, optim.lr, optim.warmup, 0, train.steps)
    plan = phases.resolve(part(Phases, "phases"), single)
    return Settings(fields, data, optim, part(EvalConfig, "eval"), plan)
