"""Fine-tuning with parameters and heads split over eight devices is the run with copies of them, in sizes that divide nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.sharding.mesh import MeshConfig
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.finetune import finetune
from jaxenc.tasks.multilabel import Multilabel
from jaxenc.tasks.regress import Regress
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.task import Task
from jaxenc.tasks.tuning import FineTune, TuneConfig
from jaxenc.training import pretrain
from jaxenc.training.run import of_checkpoint
from jaxenc.training.settings import EvalConfig, LogConfig
from tests.faults.same import rows
from tests.tasks import test_span_qa_learned as questions

COUNT, BATCH, STEPS = 103, 32, 3
# Relative, of every loss, rate and gradient norm.
CLOSE = 1e-5
WORDS = ("b", "c", "d", "x", "y", "z", "it", "is")
# Writes a file of so many examples, whose words are drawn by the generator.
Write = Callable[[Path, np.random.Generator, int], None]


def texts(label: Callable[[list[str]], object]) -> Write:
    """A .tsv of texts with the label of their words."""

    def write(path: Path, random: np.random.Generator, count: int) -> None:
        rows = [list(random.choice(WORDS, random.integers(1, 9))) for _ in range(count)]
        path.write_text("text\tlabel\n" + "".join(f"{' '.join(words)}\t{label(words)}\n" for words in rows))

    return write


def tagged(path: Path, random: np.random.Generator, count: int) -> None:
    """CoNLL, where a word is its own type of entity, or none."""
    rows = [random.choice(WORDS, random.integers(1, 9)) for _ in range(count)]
    path.write_text("\n".join("".join(f"{word}\t{f'B-{word}' if word in 'bcx' else 'O'}\n" for word in words) for words in rows))


def choices(path: Path, random: np.random.Generator, count: int) -> None:
    """Of three texts, of which the right one begins as the prompt."""
    with path.open("w") as file:
        for _ in range(count):
            three, right = random.choice(WORDS, 3, replace=False).tolist(), int(random.integers(3))
            file.write(json.dumps({"prompt": f"{three[right]} is", "choices": three, "label": right}) + "\n")


def asked(path: Path, random: np.random.Generator, count: int) -> None:
    questions.write(path, count, int(random.integers(100)))


# {kind of task: (the task, the suffix of its files, what writes them)}
KINDS: dict[str, tuple[Task, str, Write]] = {
    "classify": (Classify(), "tsv", texts(lambda words: "bcd".find(words[0]))),
    "regress": (Regress(), "tsv", texts(lambda words: len(words) / 8)),
    "multilabel": (Multilabel(), "tsv", texts(lambda words: ",".join(sorted({*words} & {"b", "c", "x"})))),
    "tag": (Tag(), "conll", tagged),
    "choice": (Choice(), "jsonl", choices),
    "span_qa": (SpanQa(impossible=True, max_query=8, stride=8), "json", asked),
}


def tuned(kind: str, folder: Path, model: Path, preset: str) -> Path:
    """The run directory of one seed."""
    task, suffix, write = KINDS[kind]
    random = np.random.default_rng(0)
    for split in ("train", "dev"):
        write(folder / f"{split}.{suffix}", random, COUNT)
    train = TuneConfig(steps=STEPS, batch=BATCH, length=32, lengths=(32,))
    tune = FineTune(
        task,
        data=FilesConfig(str(folder), f"train.{suffix}", f"dev.{suffix}"),
        train=train,
        optim=OptimConfig(lr=1e-3, warmup=0),
        mesh=MeshConfig(preset),
        eval=EvalConfig(batch=BATCH),
        log=LogConfig(every=1, examples=True, tensorboard=False),
    )
    (outcome,) = finetune(tune, str(model), folder / preset).seeds
    return Path(outcome.directory)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_split_heads_are_whole_heads(kind: str, model: Path, tmp_path: Path) -> None:
    """Every number of every step and of the evaluation and every answer that is a number (<= 1e-5), all other answers exactly. A rank
    correlation is not compared: two predictions that are as close as that change places."""
    copied, split = (tuned(kind, tmp_path, model, preset) for preset in ("dp", "fsdp"))
    assert of_checkpoint(split / "checkpoints" / str(STEPS)).mesh.preset == "fsdp"
    assert (split / "examples.log").read_text() == (copied / "examples.log").read_text()
    wanted, found = rows(copied), rows(split)
    assert found.keys() == wanted.keys() == {*((step, "train") for step in range(1, STEPS + 1)), (STEPS, "held_out")}
    for key, numbers in wanted.items():
        assert found[key].keys() == numbers.keys()
        for name in numbers.keys() - {"spearman"}:
            assert found[key][name] == pytest.approx(numbers[name], rel=CLOSE), (key, name)
    answers, its = ([json.loads(line)["answer"] for line in (run / "dev.jsonl").read_text().splitlines()] for run in (copied, split))
    assert len(its) == COUNT and its == (pytest.approx(answers, rel=CLOSE) if kind == "regress" else answers)


@pytest.mark.parametrize("batch, words", [(30, "30 rows cannot be split over 8 devices"), (COUNT, "103 rows cannot be split over 8")])
def test_a_batch_that_devices_cannot_share_is_refused(batch: int, words: str, labelled: Callable[..., FineTune], model: Path) -> None:
    """Before anything is compiled or written."""
    tune = labelled(train=COUNT, batch=batch)
    workdir = Path(tune.data.path) / "runs"
    with mock.patch.object(pretrain, "begin", side_effect=AssertionError), pytest.raises(UserError, match=f"train.batch: {words}"):
        finetune(tune, str(model), workdir)
    assert not workdir.exists()
