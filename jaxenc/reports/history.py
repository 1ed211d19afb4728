"""What a run directory says of its run: settings, metrics and events."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from jaxenc import config
from jaxenc.checkpoint import migrate
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.training import events, phases, prepare, record
from jaxenc.training.events import EVENTS
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.record import METRICS
from jaxenc.training.settings import EvalConfig, TrainConfig


@dataclasses.dataclass(frozen=True)
class History:
    """name: of the run on a page. rows: of metrics.jsonl. events: of events.jsonl. fields: the content of config.json, in today's format.
    data, evaluates, plan: the parts of it that a report reads; a plan's phases know no learning rate."""

    name: str
    workdir: pathlib.Path
    rows: list[dict[str, Any]]
    events: list[dict[str, Any]]
    fields: Mapping[str, Any]
    data: DataConfig
    evaluates: EvalConfig
    plan: tuple[Phase, ...]

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


def read(workdir: pathlib.Path, name: str = "") -> History:
    """The history of the run in `workdir`; name: '' for the path as it was given. Raises UserError for a directory without metrics and for
    files that are damaged.

    Of config.json only the parts `data`, `eval`, `train` and `phases` are read as settings: its model may be of a kind that only the user's
    own code knows.
    """
    path = workdir / METRICS
    if not path.is_file():
        raise UserError("no such file", path, "name the directory of a run that has trained")
    place = workdir / prepare.CONFIG
    fields = migrate.fields(read_json(place, "name a run directory"), f"{place}")
    part = lambda cls, key: config.from_dict(cls, fields.get(key, {}), f"{place}: config.{key}")
    data, train = part(DataConfig, "data"), part(TrainConfig, "train")
    single = Phase(0, train.steps, data.length, train.batch, 0, 0.0, 0, 0, train.steps)
    plan = phases.resolve(part(Phases, "phases"), single)
    rows, happened = record.read(path), events.read(workdir / EVENTS)
    return History(name or str(workdir), workdir, rows, happened, fields, data, part(EvalConfig, "eval"), plan)
