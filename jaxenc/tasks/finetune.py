"""Fine-tunes a model on a task with one or several seeds: the implementation of `jaxenc finetune` and `jaxenc.finetune`."""

import contextlib
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax

from jaxenc.checkpoint import restore
from jaxenc.checkpoint.lease import BUSY
from jaxenc.checkpoint.open_workdir import opened
from jaxenc.checkpoint.verify import CHECKPOINTS, steps
from jaxenc.checkpoint.workdir import Workdir
from jaxenc.config import LARGEST, fingerprint
from jaxenc.errors import Diverged, UserError
from jaxenc.families import MODELS, Models
from jaxenc.files import locked, user_errors, write_bytes
from jaxenc.heads import BUILT_IN, Head
from jaxenc.processes import barriers
from jaxenc.progress import Bars
from jaxenc.tasks import results
from jaxenc.tasks.prepare import Split, Tuning, open_task
from jaxenc.tasks.refusals import refuse_other_process, refuse_other_tuning
from jaxenc.tasks.results import RESULT, SEEDS, Outcome, Results
from jaxenc.tasks.tuning import FineTune
from jaxenc.training import record
from jaxenc.training.predict import predictions
from jaxenc.training.pretrain import train_job
from jaxenc.training.profile import Steps

ANSWERED = ("dev", "test")
ADVICE = "free some space or choose another --workdir"


def finetune(
    tune: FineTune,
    init_from: str,
    workdir: str | pathlib.Path,
    seeds: int = 1,
    profiled: Steps = Steps(),
    heads: Mapping[str, Head] = BUILT_IN,
    models: Models = MODELS,
) -> Results:
    """Fine-tunes the model of `init_from` on a task in `workdir`, with the seeds `train.seed`, `train.seed` + 1, ...

    Each seed is a run of its own in WORKDIR/seed_N, which resumes where it stopped; a finished one is not trained again. All seeds share
    their compiled programs. WORKDIR/results.json has the scores of every seed and their summary; in seed_N, result.json has those of one
    seed, dev.jsonl and test.jsonl the answers, and submission/ the files for the benchmark, if it has any. A seed that diverges is
    reported, and the others continue. With several processes each calls it and gets the same results; process 0 locks the directory and
    writes. init_from, workdir: a folder, or its URL (docs/storage.md). profiled: the first and the last step of a trace of the first seed
    (`training.profile`). heads, models: those that the task and the model may name, as in `inference.load.load`. Raises UserError, before
    anything is written, for settings, files or a model that do not fit together, and the errors of `training.pretrain.pretrain`.
    """
    if seeds < 1:
        raise UserError(f"the number of seeds is {seeds}", "--seeds", "it takes 1 or more")
    if (last := tune.train.seed + seeds - 1) > LARGEST:
        raise UserError(f"the last seed is {last}, and the largest is 2^31 - 1", "--seeds", "lower it or train.seed")
    with opened(workdir, tune.checkpoint.verify, results.HOLDS) as (folder, work):
        if barriers.is_primary():
            print(f"finetune: reading the examples, and the model {init_from}", file=sys.stderr, flush=True)
        with Bars(barriers.is_primary()).shown("reading the examples and the model"):
            tuning = open_task(tune, init_from, heads, models)
        return _finetune(tuning, folder, work, seeds, profiled)


def _finetune(tuning: Tuning, workdir: pathlib.Path, work: Workdir, seeds: int, profiled: Steps) -> Results:
    """As `finetune`. workdir: the folder of `work` on this machine."""
    if barriers.is_primary():
        print(*tuning.notes, tuning.numbers, "preparing the model", sep="\n", file=sys.stderr, flush=True)
    first = tuning.tune.train.seed
    directories = {seed: workdir / SEEDS.format(seed) for seed in range(first, first + seeds)}
    kept = _other_seeds(workdir, directories)
    runs = (*directories.values(), *(workdir / SEEDS.format(one.seed) for one in kept))
    barriers.from_primary("seeds before", lambda: refuse_other_tuning(tuning, runs, work))
    refuse_other_process(tuning, seeds)
    done: list[Outcome] = []
    with contextlib.ExitStack() as holding:
        # Each seed's run locks its own directory. This lock also holds between two seeds, and while the answers are written.
        hold = lambda: holding.enter_context(locked(workdir, BUSY))
        barriers.from_primary("work directory", hold)
        for seed, directory in directories.items():
            outcome = _seed(tuning, seed, directory, work, profiled if seed == first else Steps())
            if outcome is None:
                return dataclasses.replace(_merged(tuning, kept, done), preempted=True, stopped=_stopped(tuning, directory, seed, seeds))
            done.append(outcome)
            found = _merged(tuning, kept, done)
            barriers.from_primary("results", lambda found=found: _write(workdir, found, work))
    return found


def _other_seeds(workdir: pathlib.Path, seeds: Collection[int]) -> list[Outcome]:
    """The results of earlier seeds that are not among `seeds`, as process 0 finds them. Prints a line that says that they stay."""
    kept = barriers.from_primary("kept seeds", lambda: [dataclasses.asdict(one) for one in results.of_other_seeds(workdir, seeds)])
    if kept and barriers.is_primary():
        names = ", ".join(str(one["seed"]) for one in kept)
        print(f"finetune: seeds that ran before stay in {results.NAME}: {names}", file=sys.stderr)
    return [Outcome(**one) for one in kept]


def _merged(tuning: Tuning, kept: Sequence[Outcome], done: Sequence[Outcome]) -> Results:
    """The results of the seeds of this run and of those that it keeps, by seed."""
    return Results(tuning.task.metric, tuple(sorted((*kept, *done), key=lambda one: one.seed)), shown=tuning.task.shown)


def _stopped(tuning: Tuning, directory: pathlib.Path, seed: int, seeds: int) -> str:
    """Which seed was stopped and where, as in `Results.stopped`."""
    step = max(steps(directory / CHECKPOINTS), default=0)
    return f"seed {seed}, {seed - tuning.tune.train.seed + 1} of {seeds}, at step {step:,}/{tuning.run.train.steps:,}"


def _write(workdir: pathlib.Path, found: Results, work: Workdir) -> None:
    # The seed's result.json is uploaded first: readers of results.json look in it for the kept step.
    work.publish()
    with user_errors(workdir / results.NAME, ADVICE):
        write_bytes(workdir / results.NAME, (json.dumps(found.to_json(), indent=1) + "\n").encode())
    work.publish()


def _seed(tuning: Tuning, seed: int, directory: pathlib.Path, work: Workdir, profiled: Steps) -> Outcome | None:
    """The result of one seed, the same in every process; None if it was stopped."""
    started, shown = time.monotonic(), work.named(str(directory))
    splits = {name: tuning.splits[name] for name in ANSWERED if name in tuning.splits}
    rows = {name: fingerprint([one.fingerprint, *[example.name for example in one.examples]]) for name, one in splits.items()}
    saved = _saved_result(directory, work)
    # Test examples may be new after the run has finished.
    unanswered = [name for name in splits if saved is None or saved.answered.get(name) != rows[name]]
    if saved and not unanswered:
        if barriers.is_primary():
            print(f"{shown}: finished; nothing to do", file=sys.stderr, flush=True)
        return saved
    work.fetch(directory)
    try:
        ended = train_job(dataclasses.replace(tuning.job(seed, directory), profiled=profiled), init_from=str(tuning.start), work=work)
    except Diverged as error:
        return Outcome(seed, shown, 0, {}, f"{error.what}: lower optim.lr, and choose another --workdir")
    if ended.preempted:
        return None
    step, scores = (saved.step, saved.scores) if saved else _selected_step(tuning, directory, ended.step)
    seconds = saved.seconds if saved else round(time.monotonic() - started, 3)
    step_dir = work.verified(directory, step)
    for name in unanswered:
        _answer(tuning, seed, directory, step_dir, name)
    outcome = Outcome(seed, shown, step, scores, seconds=seconds, answered=rows)

    def finish() -> dict[str, Any]:
        # The answers and metrics.jsonl are uploaded first, so that they exist wherever the result does.
        work.publish()
        work.keep(directory, {step, ended.step})
        with user_errors(directory / RESULT, ADVICE):
            outcome.write(directory / RESULT)
        return dataclasses.asdict(outcome)

    return Outcome(**barriers.from_primary("result", finish))


def _saved_result(directory: pathlib.Path, work: Workdir) -> Outcome | None:
    """The result of a seed, as process 0 finds it; None if the seed has not finished, or if its kept checkpoint does not verify."""

    def read() -> dict[str, Any]:
        found = Outcome.read(directory / RESULT) if (directory / RESULT).exists() else None
        return dataclasses.asdict(found) if found and work.holds(directory, found.step) else {}

    saved = barriers.from_primary("saved result", read)
    return Outcome(**saved) if saved else None


def _selected_step(tuning: Tuning, directory: pathlib.Path, last: int) -> tuple[int, dict[str, float]]:
    """(the step that `train.select` keeps, its scores on the dev set, {} without a dev set)."""

    def read() -> list[Any]:
        path = directory / record.METRICS
        rows = [row for row in record.read(path) if row["split"] == "held_out"] if path.exists() else []
        numbers = {row["step"]: {k: v for k, v in row.items() if k not in ("step", "split", "seconds")} for row in rows}
        if not numbers:
            return [last, {}]
        metric = tuning.task.metric
        # The first of equal scores.
        chosen = max(numbers, key=lambda step: numbers[step][metric]) if tuning.tune.train.select == "best" else last
        return [chosen, numbers[chosen]]

    step, scores = barriers.from_primary("kept step", read)
    return step, {name: value for name, value in scores.items() if not name.endswith("_predictions")}


def _answer(tuning: Tuning, seed: int, directory: pathlib.Path, step_dir: pathlib.Path, split: str) -> None:
    """Writes the answers that a checkpoint gives to the examples of a split."""
    job, one = tuning.job(seed, directory, split), tuning.splits[split]
    phase = job.run.plan[0]
    with jax.set_mesh(job.mesh):
        layout = job.layout(phase)
        params = restore.restore_params(step_dir, layout.abstract.all_params)
        found = predictions(job, phase, job.objective(phase), layout, params, with_sums=split == "dev")

    # A lone surrogate, which JSON allows in a name, is escaped the way JSON escapes it.
    encoded = lambda text: text.encode("utf-8", "backslashreplace")

    def write() -> None:
        answers = tuning.task.answers(one.examples, one.features, found.predictions)
        details = tuning.task.details(one.examples, one.features, found.predictions)
        with user_errors(directory, ADVICE):
            write_bytes(directory / f"{split}.jsonl", encoded(_lines(one, answers, details)))
            for name, content in tuning.task.submission(answers, one.examples, details).items() if split == "test" else ():
                (directory / "submission").mkdir(exist_ok=True)
                write_bytes(directory / "submission" / name, encoded(content))

    barriers.from_primary(f"answers to {split}", write)


def _lines(split: Split, answers: Sequence[Any], details: Sequence[Mapping[str, Any]]) -> str:
    """A line of JSON per example: id, answer, the right answer as `label` where it is known, details."""
    known = [{} if example.right is None else {"label": example.right} for example in split.examples]
    rows = zip(split.examples, answers, known, details, strict=True)
    written = ({"id": example.name, "answer": answer, **label, **more} for example, answer, label, more in rows)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in written)
