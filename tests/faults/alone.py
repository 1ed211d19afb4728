"""Nano runs of seven objectives, each in one process of eight CPU devices, to be killed and started again, and what one leaves."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from jaxenc.data.sources import DataConfig
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.pair import SentenceOrderConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from tests.faults.gang import ROOT
from tests.group import Process
from tests.training import test_loop, test_states, test_teacher
from tests.training.conftest import make_data

OBJECTIVES = ("mlm", "rtd", "plm", "bilm", "mlm_sop", "causal", "distillation")
STEPS = 60
EVERY = 10
TOKENIZERS = {"plm": "unigram", "bilm": "characters"}


@dataclasses.dataclass(frozen=True)
class Nano:
    """A run and its recipe as a file."""

    run: Run
    config: Path

    def start(self, workdir: Path, accident: str = "nothing", stage: str = "-", count: int = 1, **environment: str) -> Process:
        """One process of the run, as `tests/faults/child.py` says; its notes are beside the work directory."""
        script = (ROOT / "tests" / "faults" / "child.py", notes_of(workdir), accident, stage, count)
        return Process(
            [sys.executable, *map(str, script), "pretrain", "--config", str(self.config), "--workdir", str(workdir)],
            stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip

    def finish(self, workdir: Path, accident: str = "nothing", stage: str = "-", count: int = 1, limit: float = 600) -> tuple[int, str]:
        """(exit code, what it said) of a process that nobody else disturbs."""
        with self.start(workdir, accident, stage, count) as process:
            said = process.communicate(timeout=limit)[1]
        return process.returncode, said


def notes_of(workdir: Path) -> Path:
    """The file in which the processes of a run note each stage of each save."""
    return workdir.with_name(f"{workdir.name}.notes")


def newest(workdir: Path) -> int:
    """The newest step that has its own name, 0 for none."""
    names = (path.name for path in (workdir / "checkpoints").glob("*")) if workdir.exists() else ()
    return max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=0)


def saving(workdir: Path) -> list[int]:
    """The steps that have a temporary name: they are being saved, or were when their process died."""
    return [int(path.name.split(".")[1]) for path in workdir.glob("checkpoints/.*.tmp-save")]


def logged(workdir: Path) -> list[dict]:
    """The rows of metrics.jsonl that are whole, if any."""
    path = workdir / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")] if path.exists() else []


def prepare(kind: str, steps: int, folder: Path) -> None:
    """Puts into `folder` what `nano` needs there."""
    data = make_data(folder / "made", 1, TOKENIZERS.get(kind, "wordpiece"))
    if kind == "distillation":
        test_teacher.make_teacher(folder / "made" / "teacher", data)
    test_loop.write_recipe(nano(kind, steps, folder).run, folder / "recipe.json")


def nano(kind: str, steps: int, folder: Path) -> Nano:
    """A run of `steps` steps with a checkpoint every EVERY and an evaluation every 2 EVERY; three checkpoints stay."""
    run = recipe(kind, folder / "made" / "data")
    run = dataclasses.replace(
        run,
        train=dataclasses.replace(run.train, steps=steps),
        checkpoint=dataclasses.replace(run.checkpoint, every=EVERY, keep=3),
        eval=dataclasses.replace(run.eval, every=2 * EVERY),
    )
    return Nano(run, folder / "recipe.json")


def recipe(kind: str, data: Path) -> Run:
    match kind:
        case "mlm":
            return test_loop.recipe(data)
        case "rtd":
            sizes = {"generator_width": 8, "generator_layers": 1, "generator_heads": 2, "generator_feed_forward": 16, "embedding": 16}
            pair = ElectraConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24, **sizes)
            return test_loop.recipe(data, objective=RtdConfig(), model=pair)
        case "plm":
            model = XlnetConfig(width=16, layers=1, heads=2, feed_forward=32)
            objective = PlmConfig(predictions=6, permutation=8, memory=12)
            streams = DataConfig(path=str(data), rows="streams", length=24, reuse=8)
            return dataclasses.replace(test_loop.recipe(data, objective=objective, model=model), data=streams)
        case "bilm":
            return test_states.recipe(data)
        case "mlm_sop":
            pairs = DataConfig(path=str(data), rows="swapped_pairs", length=24)
            model = AlbertConfig(width=16, layers=2, heads=2, feed_forward=32, embedding=8, positions=24, dropout=0.1)
            return dataclasses.replace(test_loop.recipe(data, objective=SentenceOrderConfig(), model=model), data=pairs)
        case "causal":
            model = GptConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24)
            return dataclasses.replace(test_loop.recipe(data, objective=CausalConfig(), model=model), data=DataConfig(str(data), 24))
        case "distillation":
            return test_teacher.recipe(data, data.parent / "teacher")
    raise ValueError(kind)
