"""Which model a folder of a fine-tuning stands for."""

import pathlib
from collections.abc import Collection

from jaxenc import cache, storage
from jaxenc.checkpoint.verify import CHECKPOINTS
from jaxenc.errors import UserError
from jaxenc.tasks.results import NAME, RESULT, SEEDS, Outcome, Results, is_work_directory, seeds_in


def kept(folder: str | pathlib.Path, seed: int | None = None) -> tuple[str | pathlib.Path, str]:
    """(the checkpoint or run that `folder`, a path or a URL, stands for; a few words on why it was chosen, '' where there was no choice).

    For a work directory of `finetune` it is the checkpoint that `train.select` kept of one seed: of `seed` or, if that is None, of the best
    one on the dev set; without a dev set, of the first that finished. For the run directory of a finished seed it is the kept checkpoint.
    Any other folder stands for itself. Raises UserError if there is no such seed and if all seeds failed.
    """
    names = storage.names(folder)
    seeds = seeds_in(names)
    with cache.at_hand(folder, (NAME, RESULT, *(f"{name}/{RESULT}" for name in seeds))) as here:
        found, why = _kept(here, seeds, seed) if is_work_directory(names) else _alone(here, seed)
        if not storage.is_url(folder):
            return found, why
        return "/".join((str(folder).rstrip("/"), *found.relative_to(here).parts)), why


def run_of(folder: str | pathlib.Path) -> str | pathlib.Path:
    """The run directory of `folder`, a path or a URL: `folder` itself, or the run that it is a checkpoint of."""
    if isinstance(folder, str):
        folder = folder.rstrip("/").removesuffix(f"/{CHECKPOINTS}")
        above, _, last = folder.rpartition(f"/{CHECKPOINTS}/")
        return above if last.isdigit() else folder
    return folder.parent.parent if folder.parent.name == CHECKPOINTS else folder


def step_of(folder: str | pathlib.Path, step: int) -> str | pathlib.Path:
    """The checkpoint of `step` in the run of `folder`, which is as in `run_of`."""
    run = run_of(folder)
    return f"{run}/{CHECKPOINTS}/{step}" if isinstance(run, str) else run / CHECKPOINTS / str(step)


def _alone(folder: pathlib.Path, seed: int | None) -> tuple[pathlib.Path, str]:
    """As `kept`, for a folder that is no work directory."""
    if seed is not None:
        raise UserError(f"{folder} is not a folder of several seeds", f"--seed {seed}", "leave it out")
    return _step(folder), ""


def _kept(folder: pathlib.Path, seeds: Collection[str], seed: int | None) -> tuple[pathlib.Path, str]:
    """As `kept`, for a work directory. seeds: names of the run directories of seeds in it."""
    if seed is None:
        found, why = _best(folder)
        return _step(found), why
    if SEEDS.format(seed) not in seeds:
        there = ", ".join(name.removeprefix(SEEDS.format("")) for name in seeds)
        raise UserError(f"{folder} has no such seed", f"--seed {seed}", f"use one of {there}" if there else "leave it out")
    return _step(folder / SEEDS.format(seed)), ""


def _step(folder: pathlib.Path) -> pathlib.Path:
    """The checkpoint that was kept of a finished seed, in its run directory; any other folder itself."""
    return folder / CHECKPOINTS / str(Outcome.read(folder / RESULT).step) if (folder / RESULT).is_file() else folder


def _best(folder: pathlib.Path) -> tuple[pathlib.Path, str]:
    if not (folder / NAME).is_file():
        raise UserError("no seed has finished", folder, "run the same `jaxenc finetune` again, or name a seed with --seed")
    found = Results.read(folder / NAME)
    done = [one for one in found.seeds if not one.failed]
    if not done:
        raise UserError("all of its seeds diverged", folder, "lower optim.lr and fine-tune into another folder")
    if (best := found.best) is None:
        return folder / SEEDS.format(done[0].seed), "the first seed; there was no dev set to choose by"
    score = f"{found.shown.get(found.metric, found.metric)} {best.scores[found.metric]:.4f}"
    return folder / SEEDS.format(best.seed), f"the best of {len(done)} on the dev set, {score}" if len(done) > 1 else ""
