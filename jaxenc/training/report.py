"""The report of a run: its curves, and its last held-out numbers next to count baselines."""

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
    """held_out: {name: number} of the last evaluation, with its `step`, {} without an evaluation. counts: {count baseline: nats a token}.
    picture: path of the curves. notes: what is missing and why, one line each."""

    held_out: dict[str, float]
    counts: dict[str, float]
    picture: pathlib.Path
    notes: tuple[str, ...]


def report(workdir: str | pathlib.Path, with_baselines: bool = True) -> Report:
    """Writes report.png to a run directory and returns its report. with_baselines: also compute the count baselines (`data.baselines`),
    which reads the full data set. Raises UserError for a run without metrics."""
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
