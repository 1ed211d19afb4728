"""What `jaxenc demo` says when it is asked to stop, and its classifier beside baselines."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from jaxenc.cli import demo
from jaxenc.cli.main import main
from jaxenc.data import docstrings
from jaxenc.data.tokenizers import wordpiece
from jaxenc.inference import load
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.tasks import packages
from jaxenc.training.loop import Outcome
from jaxenc.training.run import Run
from tests import tiny, tuned

# The word that gives the package of a paragraph away; one paragraph in ten has none.
WORDS = dict(zip(packages.PACKAGES, ("red", "one", "cat", "sings"), strict=True))


def test_a_demo_that_is_stopped_says_how_it_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Exit code 75 and the line of `pretrain`, where the run lies; nothing is reported of half a run."""
    (tmp_path / "run" / "checkpoints" / "3").mkdir(parents=True)
    with mock.patch.object(demo, "main", return_value=0), mock.patch.object(demo, "pretrain", return_value=Outcome(3, True, {})):
        assert main(["demo", "--finetune", "--workdir", str(tmp_path)]) == 75
    said = capsys.readouterr().err
    assert said.endswith(f"\n{tmp_path / 'run'}: stopped at step 3, checkpoint written: run the same command to continue\n")


def made_up(names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Modules of ten paragraphs, as `docstrings.modules` gives them."""
    for package in names:
        for module in range(30):
            texts = (f"The {WORDS[package] if number else 'old'} walks {number} {module}." for number in range(10))
            yield f"{docstrings.NAME}:{package}/m{module}.py", tuple(texts)


def test_the_demo_ends_with_a_classifier_beside_baselines(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The last three lines: the score that results.json has, well above the majority class of four equal ones, and the bag of words. The
    same command again gives the same lines."""
    tool = wordpiece.train([text for _, texts in made_up(packages.PACKAGES) for text in texts], 120)
    run = Run(objective=MlmConfig(), model=dataclasses.replace(tuned.MODEL, width=128, positions=64)).with_vocabulary(tool.vocabulary)
    load.Model(run, tiny.drawn(run), tool).save(tmp_path / "run")
    for _ in range(2):
        with (
            mock.patch.object(docstrings, "modules", made_up),
            mock.patch.multiple(packages, TRAIN=180, DEV=30),
            tiny.on_one_device(),
        ):
            assert demo.finetune(tmp_path) == 0
        lines = dict(line.rsplit(maxsplit=2)[::2] for line in capsys.readouterr().out.splitlines()[-3:])
        score = json.loads((tmp_path / "tuned" / "results.json").read_text())["seeds"][0]["scores"]["accuracy"]
        assert list(lines) == ["fine-tuned", "majority class", "bag of words"]
        assert lines["fine-tuned"] == f"{score:.4f}" and score >= 0.6
        assert float(lines["majority class"]) == 0.25 and float(lines["bag of words"]) >= 0.85
