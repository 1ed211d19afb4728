"""What a run has reached: its curves, and its last held-out numbers beside what counting gives."""

import dataclasses
import pathlib

from jaxenc.data import baselines
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.training import curves, prepare, record
from jaxenc.training.record import METRICS
from jaxenc.training.run import from_dict


@dataclasses.dataclass(frozen=True)
class Report:
    """held_out: {name: number} of the last evaluation, its `step` included, {} before the first. counts: {count baseline: nats a token}.
    picture: the file of the curves. notes: lines on what is missing and why."""

    held_out: dict[str, float]
    counts: dict[str, float]
    picture: pathlib.Path
    notes: tuple[str, ...]


def report(workdir: str | pathlib.Path, with_baselines: bool = True) -> Report:
    """The report of a run directory, after writing report.png there. with_baselines: also what counting gives (`data.baselines`), which
    reads the whole data set. Raises UserError for a run that wrote no metrics."""
    workdir = pathlib.Path(workdir)
    path = workdir / METRICS
    if not path.is_file():
        raise UserError(f"{path}: no such file: name the directory of a run that has trained")
    rows, notes, counts = record.read(path), [], {}
    config = from_dict(read_json(workdir / prepare.CONFIG, "name a run directory"))
    try:
        counted = baselines.sentence_baselines if config.data.rows == "sentences" else baselines.count_baselines
        counts = counted(config.data.path) if with_baselines else {}
    except UserError as error:
        notes.append(f"no count baselines: {error}")
    held_out = [row for row in rows if row["split"] == "held_out"]
    if not held_out:
        notes.append(f"{path} holds no evaluation yet; eval.every is {config.eval.every}, and the last step has one")
    curves.draw(rows, counts, workdir / "report.png")
    return Report(held_out[-1] if held_out else {}, counts, workdir / "report.png", tuple(notes))
