"""The report of a run, of several runs, and of a fine-tuning: the implementation of `jaxenc report`."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxenc import cache, storage
from jaxenc.errors import UserError
from jaxenc.files import user_errors, write_bytes
from jaxenc.reports import differences, history, panels, picture, several, single, tuned
from jaxenc.reports.history import History
from jaxenc.reports.normal import comments, text
from jaxenc.reports.normal.text import Text
from jaxenc.tasks import results
from jaxenc.tasks.results import Results
from jaxenc.training.record import METRICS

PAGE, PICTURE, COMPARISON = "report.html", "report.png", "comparison.html"
ADVICE = "free some space, or name another file with --out"
NO_RECIPE: Callable[[str], Mapping[str, Any]] = lambda name: {}


@dataclasses.dataclass(frozen=True)
class Report:
    """held_out: {name: number} of the last evaluation, with its `step`, {} without an evaluation; of several runs, of the first. counts:
    {count baseline: nats a token}. page, picture: paths of the HTML page and of the PNG. notes: what is missing and why, one line each."""

    held_out: dict[str, Any]
    counts: dict[str, float]
    page: pathlib.Path
    picture: pathlib.Path
    notes: tuple[str, ...]


def report(
    workdir: str | pathlib.Path,
    with_baselines: bool = True,
    out: str | pathlib.Path = "",
    recipe: Callable[[str], Mapping[str, Any]] = NO_RECIPE,
) -> Report:
    """Writes report.html and report.png to a run directory and returns its report.

    with_baselines: also compute the count baselines (`data.baselines`), which reads the full data set, and say what looks wrong
    (`reports.normal`). out: another file for the page; the picture is beside it. recipe: from the name of a recipe to its fields, {} where
    it is not known. Raises UserError for a run without metrics.
    """
    _check(out)
    run = _read(workdir, str(workdir))
    found = _of_run(run, with_baselines, pathlib.Path(out or run.workdir / PAGE), recipe)
    if not out:
        _upload(found, workdir)
    return found


def compare(workdirs: Sequence[str | pathlib.Path], by: str = "step", with_baselines: bool = True, out: str | pathlib.Path = "") -> Report:
    """Writes a page and a picture of several runs, as comparison.html and .png to the directory of the first or as `out`; the seeds of a
    work directory of `finetune` are runs of their own. by: a name of `align.AXES`. Raises UserError as `report` and `align.positions`."""
    _check(out)
    notes: list[str] = []
    each = _begun(workdirs, notes)
    runs = [_read(workdir, name) for workdir, name in zip(each, _names(each), strict=True)]
    counts: dict[str, float] = {}
    if with_baselines and len({run.settings.data for run in runs}) > 1:
        notes.append("no count baselines: the runs do not have the same data settings")
    elif with_baselines:
        counts = dict(_text(runs[0], notes).counts)
    page = pathlib.Path(out or (runs[0].workdir if storage.is_url(workdirs[0]) else pathlib.Path(workdirs[0])) / COMPARISON)
    drawn = panels.of_runs(runs, by, counts)
    found = Report(runs[0].held_out, counts, page, page.with_suffix(".png"), tuple(notes))
    _write(found, several.page(runs, by, counts, notes), picture.picture(drawn))
    if not out:
        _upload(found, workdirs[0])
    return found


def of_tuning(workdir: str | pathlib.Path, out: str | pathlib.Path = "") -> tuple[Results, Report]:
    """(the results of a fine-tuning; its report): writes a page and a picture of all seeds, and those of each seed to its own directory.
    workdir: a path or a URL. Raises UserError for a folder that is not one of `finetune`."""
    _check(out)
    with cache.at_hand(workdir, (results.NAME,)) as home:
        found = Results.read(home / results.NAME)
        seeds = {results.SEEDS.format(one.seed): storage.below(workdir, results.SEEDS.format(one.seed)) for one in found.seeds}
        runs = [history.read(folder, name) for name, folder in seeds.items() if history.has_numbers(folder)]
        page = pathlib.Path(out or home / PAGE)
        for run in runs:
            (home / run.name).mkdir(exist_ok=True)
            _upload(_of_run(dataclasses.replace(run, name=seeds[run.name]), False, home / run.name / PAGE, NO_RECIPE), seeds[run.name])
        links = {run.name: os.path.relpath(home / run.name / PAGE, page.parent) for run in runs}
        wrote = Report(runs[0].held_out if runs else {}, {}, page, page.with_suffix(".png"), ())
        drawn = [tuned.scores(found), *panels.of_runs(runs, "step", {})]
        _write(wrote, tuned.page(str(workdir), found, runs, links), picture.picture(drawn))
        if not out:
            _upload(wrote, workdir)
    return found, wrote


def _begun(workdirs: Sequence[str | pathlib.Path], notes: list[str]) -> list[str]:
    """The run directories of `workdirs`; a seed of a fine-tuning that has no numbers yet is left out, with a line in `notes`."""
    each = history.expanded(workdirs)
    waiting = [run for run in each if run not in map(str, workdirs) and not history.has_numbers(run)]
    notes += [f"{seed} has no numbers yet, and is left out" for seed in waiting]
    return [run for run in each if run not in waiting] or each


def is_tuning(workdir: str | pathlib.Path) -> bool:
    """Whether a folder, a path or a URL, is the work directory of `finetune`, and not the run directory of a seed."""
    names = storage.names(workdir)
    return results.NAME in names and results.is_work_directory(names)


def _of_run(run: History, with_baselines: bool, page: pathlib.Path, recipe: Callable[[str], Mapping[str, Any]]) -> Report:
    notes: list[str] = []
    facts = _text(run, notes) if with_baselines else Text()
    counts = dict(facts.counts)
    if not run.held_out:
        notes.append(f"{run.workdir / METRICS} holds no evaluation yet; eval.every is {run.settings.eval.every}, and the last step has one")
    found = Report(run.held_out, counts, page, page.with_suffix(".png"), tuple(notes))
    said = [one.line for one in comments.of_run(run.rows, run.settings, lambda data: facts)] if with_baselines else []
    html = single.page(run, counts, notes, recipe(differences.recipe_name(run)), said)
    drawn = [*panels.of_run(run, counts), *([panels.of_time(run)] if run.start else [])]
    _write(found, html, picture.picture(drawn))
    return found


def _check(out: str | pathlib.Path) -> None:
    """Raises UserError if `out` cannot be the file of a page; '' is the default."""
    if out:
        storage.must_be_local(out, "--out", storage.WRITE_HERE)
        if pathlib.Path(out).suffix != ".html":
            raise UserError("the page is HTML", f"--out {out}", "name a file that ends in .html")


def _write(found: Report, html: str, png: bytes) -> None:
    with user_errors(found.page, ADVICE):
        # A lone surrogate, of a name that is not UTF-8, has no encoding.
        write_bytes(found.page, html.encode("utf-8", "backslashreplace"))
        write_bytes(found.picture, png)


def _text(run: History, notes: list[str]) -> Text:
    """The facts of a run's text, with the reason in `notes` where there are no count baselines."""
    data = run.settings.data
    facts = text.read(data)
    if facts.missing and (data.path or data.mixture):  # a fine-tuned run has examples, and no data folder
        notes.append(f"no count baselines: {facts.missing}")
    return facts


def _read(workdir: str | pathlib.Path, name: str) -> History:
    """`history.read` of a path or a URL, and of no path that was meant as a URL."""
    if not storage.is_url(workdir):
        storage.must_be_local(workdir, "--workdir", storage.AS_TEXT)
    return history.read(workdir, name)


def _upload(found: Report, workdir: str | pathlib.Path) -> None:
    """Copies the page and the picture to a work directory at a URL."""
    if storage.is_url(workdir):
        for path in (found.page, found.picture):
            storage.folder(str(workdir)).upload(path, path.name)


def _names(workdirs: Sequence[str | pathlib.Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart; a path that came twice has its number."""
    paths = [str(workdir).rstrip("/") if storage.is_url(workdir) else str(pathlib.Path(workdir).absolute()) for workdir in workdirs]
    parts = [path.split("/") for path in paths]
    names = paths
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(set(paths)):
            break
    return [name if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names, 1)]
