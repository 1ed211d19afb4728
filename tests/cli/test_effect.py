"""R39: a setting of the command line that is overruled is refused, and one without effect is warned of."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli import effect
from jaxenc.cli import recipe as cli_config
from jaxenc.config import flatten, to_dict
from jaxenc.data import manifest
from jaxenc.families import MODELS
from jaxenc.objectives import OBJECTIVES
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from tests.cli.test_pretrain import command
from tests.training.conftest import make_data


@pytest.mark.parametrize(
    "recipe, overrides, why",
    [
        ("bert/tiny", "data.reuse=8", "data.rows=text does not read it"),
        ("bert/base", "data.reuse=8", "data.rows=pairs does not read it"),
        ("bert/tiny", "data.short_probability=0.3", "data.rows=text does not read it"),
        ("bert/tiny", "optim.accumulator=2", "optim.name=adamw does not read it"),
        ("elmo/original", "optim.beta2=0.9", "optim.name=adagrad does not read it"),
        ("elmo/original", "optim.origin=step_zero", "optim.schedule=constant has no decay"),
        ("bert/tiny", "optim.origin=step_zero optim.schedule=slanted", "optim.schedule=slanted decays from the end of the warm-up"),
        ("bert/tiny", "optim.slanted_ratio=8", "optim.schedule=linear does not read it"),
        ("bert/tiny", "optim.layer_decay_of=gradient", "optim.layer_decay is 1"),
        ("bert/base", "optim.decay_corrected=true", "optim.bias_correction is false"),
        ("elmo/original", "optim.decay_corrected=true", "optim.name=adagrad does not read it"),
        ("bert/base", "optim.epsilon_added=before_correction", "optim.bias_correction=false makes both choices the same"),
        ("bert/tiny", "optim.decay_exclude=x optim.weight_decay=0", "optim.weight_decay is 0"),
        ("bert/tiny", "phases.one_schedule=true", "phases.steps is (), and one phase has one schedule"),
        ("bert/tiny", "objective.geometric=0.3", "objective.unit=tokens has no spans"),
        ("bert/tiny", "objective.action=span", "objective.unit=tokens chooses single tokens"),
        ("elmo/original", "train.attention=xla", "model.kind=elmo has no layers of attention"),
        ("electra/tiny", "objective.replacements=all", "objective.random_share is 0"),
        ("electra/tiny", "objective.mask_share=0.5 objective.generator=uniform", "objective.generator=uniform has no network"),
        ("electra/tiny", "model.generator_layers=1 objective.generator=uniform", "objective.generator=uniform has no network"),
        ("elmo/original", "objective.negatives=3 objective.softmax=full", "objective.softmax=full takes every word"),
        ("elmo/original", "train.dupe_factor=3", "objective.kind=bilm masks nothing"),
        ("elmo/original", "train.remat=block", "model.kind=elmo has no layers of attention"),
        ("elmo/original", "model.highways=1 model.input=tokens", "model.input=tokens reads no characters"),
    ],
)
def test_r39_a_setting_without_effect_is_one_line(recipe: str, overrides: str, why: str, capsys: pytest.CaptureFixture) -> None:
    given = [f"--config.{item}" for item in overrides.split()]
    cli_config.resolve(recipe, given)
    assert capsys.readouterr().err == f"warning: {given[0].partition('=')[0]} has no effect: {why}\n"


def test_r39_a_setting_with_an_effect_is_none(capsys: pytest.CaptureFixture) -> None:
    for recipe, overrides in {
        "bert/tiny": ("objective.geometric=0.3", "objective.unit=spans", "objective.action=span", "train.remat=block"),
        "bert/base": ("data.short_probability=0.3", "phases.one_schedule=false", "objective.replacements=text"),
        "xlnet/tiny": ("data.reuse=16", "train.dupe_factor=2", "optim.epsilon=1e-5", "train.remat=block"),
        "elmo/original": ("optim.accumulator=2", "objective.negatives=3", "model.highways=1"),
    }.items():
        cli_config.resolve(recipe, [f"--config.{item}" for item in overrides])
    assert not capsys.readouterr().err


def test_r39_whatever_is_said_to_have_no_effect_is_a_field() -> None:
    """Of some model, for every objective, model, optimizer and kind of row."""
    known = {path for model in MODELS.values() for path, _ in flatten(to_dict(Run(model=model())))}
    known |= {path for objective in OBJECTIVES.values() for path, _ in flatten(to_dict(Run(objective=objective())))}
    runs = [Run(objective=objective(), model=model()) for objective in OBJECTIVES.values() for model in MODELS.values()]
    runs += [Run(objective=RtdConfig(generator="uniform")), Run(optim=OptimConfig("adagrad", schedule="constant", weight_decay=0.0))]
    said = {path for run in runs for path in run.unused}
    assert said <= known and len(said) > 20


@pytest.mark.parametrize("name", ["pretrain", "inspect"])
def test_r39_a_size_that_the_tokenizer_overrules_is_refused(name: str, data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """The named case: nothing is trained; the same number, and none, are taken."""
    given = command(data, tmp_path / "run", "--config.model.vocab_size=500")
    given = given if name == "pretrain" else [name, *(item for item in given[1:] if item not in ("--workdir", str(tmp_path / "run")))]
    size = manifest.read(data).tokenizer.size
    said = fails(*given)
    assert f"--config.model.vocab_size is 500 and the tokenizer of the data makes it {size}; leave it out" in said
    assert not (tmp_path / "run").exists()
    run = cli_config.resolve("bert/tiny", [f"--config.data.path={data}", f"--config.model.vocab_size={size}"])
    effect.check_data(run, [f"--config.model.vocab_size={size}"])
    effect.check_data(dataclasses.replace(run, model=dataclasses.replace(run.model, vocab_size=7)), [])


def test_r39_a_first_position_that_the_tokenizer_overrules_is_refused(data: Path, fails: Callable[..., str]) -> None:
    said = fails("inspect", "--config", "roberta/tiny", f"--config.data.path={data}", "--config.model.first_position=7")
    assert "--config.model.first_position is 7 and the tokenizer of the data makes it 1" in said


def test_r39_a_number_of_words_that_the_tokenizer_overrules_is_refused(tmp_path: Path, fails: Callable[..., str]) -> None:
    data = make_data(tmp_path / "made", 1, "characters")
    given = (f"--config.data.path={data}", "--config.model.input=tokens", "--config.model.words=5000", "--config.model.vocab_size=4000")
    said = fails("inspect", "--config", "elmo/tiny", *given)
    tokenizer = manifest.read(data).tokenizer
    assert f"--config.model.words is 5000 and the tokenizer of the data makes it {tokenizer.words}" in said
    assert f"--config.model.vocab_size is 4000 and the tokenizer of the data makes it {tokenizer.size}" in said


def test_r39_evaluations_of_data_without_held_out_documents_are_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = make_data(tmp_path / "made", 1, held_out=0.0)
    run = cli_config.resolve("bert/tiny", [f"--config.data.path={data}"])
    effect.check_data(run, ["--config.eval.every=7", "--config.train.steps=3"])
    assert capsys.readouterr().err.endswith("warning: --config.eval.every has no effect: the data holds no held-out documents\n")


def test_r39_tensorboard_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(effect.importlib.util, "find_spec", lambda name: None)
    effect.check(Run(), Run(), ["--config.log.tensorboard=true"])
    assert "--config.log.tensorboard has no effect: tensorboardX is not installed" in capsys.readouterr().err
