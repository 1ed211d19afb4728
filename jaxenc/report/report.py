"""The report of a run: its curves, and its last held-out numbers next to count baselines."""

import dataclasses
import pathlib

from jaxenc import config, storage
from jaxenc.checkpoint import migrate
from jaxenc.data import baselines
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.files import one_at_a_time, read_json
from jaxenc.report import curves
from jaxenc.training import prepare, record
from jaxenc.training.record import METRICS
from jaxenc.training.settings import EvalConfig


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
    if storage.is_url(workdir):
        return _of_url(str(workdir), with_baselines)
    storage.must_be_local(workdir, "--workdir")
    workdir = pathlib.Path(workdir)
    path = workdir / METRICS
    if not path.is_file():
        raise UserError("no such file", path, "name the directory of a run that has trained")
    rows, notes, counts = record.read(path), [], {}
    data, evaluates = _settings(workdir / prepare.CONFIG)
    if with_baselines and data.mixture:
        notes.append(f"no count baselines: they are of one data folder, and data.mixture names {len(data.mixture)}")
    elif with_baselines and data.path:  # a fine-tuned run has examples, and no data folder
        counted = baselines.sentence_baselines if data.rows == "sentences" else baselines.count_baselines
        try:
            counts = counted(data.path)
        except UserError as error:
            notes.append(f"no count baselines: {error}")
    held_out = [row for row in rows if row["split"] == "held_out"]
    if not held_out:
        notes.append(f"{path} holds no evaluation yet; eval.every is {evaluates.every}, and the last step has one")
    curves.draw(rows, counts, workdir / "report.png")
    return Report(held_out[-1] if held_out else {}, counts, workdir / "report.png", tuple(notes))


def _of_url(url: str, with_baselines: bool) -> Report:
    """The report of a run at a URL, made from copies of the files it reads; the picture is uploaded too."""
    folder, place = storage.folder(url), storage.cache() / "reports" / storage.key(url)
    with one_at_a_time(place, storage.HERE):
        for name in (METRICS, prepare.CONFIG):
            (place / name).unlink(missing_ok=True)
            try:
                folder.download(name, place / name)
            except FileNotFoundError as error:
                raise UserError("no such file", f"{url}/{name}", "name the directory of a run that has trained") from error
        found = report(place, with_baselines)
        folder.upload(found.picture, found.picture.name)
        return found


def _settings(path: pathlib.Path) -> tuple[DataConfig, EvalConfig]:
    """The parts of a run's config.json that a report reads: its model may be of a kind that only the user's own code knows."""
    fields = migrate.fields(read_json(path, "name a run directory"), f"{path}")
    part = lambda cls, name: config.from_dict(cls, fields.get(name, {}), f"{path}: config.{name}")
    return part(DataConfig, "data"), part(EvalConfig, "eval")
