"""Recipes, a file of the user's own, a config.json, and overrides."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.families import MODELS
from jaxenc.families.bert.model import BertConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig

OWN = """from jaxenc.configs import recipe
from jaxenc.training.run import Run


"""


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n", "it has no function get_config()"),
        ("x = 1\n1 / 0\n", "own.py:2: ZeroDivisionError: division by zero"),
        ("def get_config():\n    raise KeyError('a\\nb')\n", "own.py:2: KeyError: 'a\\nb'"),
        ("def get_config(\n", "own.py:1: SyntaxError: '(' was never closed"),
        ("import no_such_module\n", "own.py:1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def get_config():\n    return {}\n", "get_config returns dict: return jaxenc.configs.recipe(Run(...))"),
        (OWN + "def get_config():\n    run = recipe(Run())\n    run.train.stepz = 3\n    return run\n", "stepz"),
    ],
)
def test_what_a_users_file_gets_wrong_is_one_line_that_names_the_place(
    text: str, words: str, tmp_path: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "own.py").write_text(text)
    said = fails("inspect", "--config", tmp_path / "own.py")
    assert words in said and str(tmp_path / "own.py") in said


def test_a_users_file_may_leave_fields_and_the_argument_out(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from ml_collections import ConfigDict\n\n\ndef get_config():\n    return ConfigDict()\n")
    run = cli_config.resolve(str(tmp_path / "own.py"), ["--config.train.steps=7"])
    assert (run.train.steps, run.train.batch) == (7, 256)


def test_a_kind_that_is_overridden_starts_from_its_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that both kinds have keep their values, those of the other kind alone go, and further overrides are the new kind's."""
    heads = {"kind": "heads", "heads": ["pooler", "classifier"], "labels": ["a", "b"]}
    (tmp_path / "config.json").write_text(json.dumps({"objective": heads, "train": {"steps": 7}}))
    run = cli_config.resolve(str(tmp_path / "config.json"), ["--config.objective.rate=0.3", "--config.objective.kind=mlm"])
    assert run.objective == MlmConfig(rate=0.3) and run.train.steps == 7
    back = ["--config.objective.kind=heads", "--config.objective.heads=tags", "--config.objective.labels=x,y"]
    assert cli_config.resolve("bert/tiny", back).objective == HeadsConfig(("tags",), ("x", "y"))
    given = cli_config.resolve("roberta/base", [])
    paired = cli_config.resolve("roberta/base", ["--config.objective.kind=mlm_nsp"]).objective
    assert paired == PairConfig(**vars(given.objective)) != PairConfig()
    monkeypatch.setitem(MODELS, "other", Other)
    assert cli_config.resolve("bert/tiny", ["--config.model.kind=other"]).model == Other(**vars(cli_config.resolve("bert/tiny", []).model))


@dataclasses.dataclass(frozen=True)
class Other(BertConfig):
    kind: ClassVar[str] = "other"
    windows: int = 3


def test_a_folder_in_the_place_of_its_config(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert f"did you mean {tmp_path / 'config.json'}?" in fails("inspect", "--config", tmp_path)
    (tmp_path / "model.safetensors").touch()
    for place in (tmp_path, tmp_path / "config.json"):
        assert f"`jaxenc convert --from hf:{tmp_path} --to DIR`" in fails("inspect", "--config", place)


@pytest.mark.parametrize(
    "text, words", [("[1]", "holds no JSON object"), ('{"a":', "Expecting value"), ('{"trian": {}}', "did you mean train")]
)
def test_a_damaged_config_json_is_one_line(text: str, words: str, tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "config.json").write_text(text)
    assert words in fails("inspect", "--config", tmp_path / "config.json")


@pytest.mark.parametrize(
    "argv, words",
    [
        (["bert/tiny:5"], "this recipe takes nothing after a colon: name bert/tiny"),
        (["bert/sizes"], "takes a size after the colon"),
        (["bert/tyni"], "did you mean bert/tiny"),
        (["bert/tiny", "--config.train.stepz=3"], "--config.train.stepz is not a field: did you mean train.steps"),
        (["bert/tiny", "--config.objective.kind=mlmm"], "config.objective.kind is 'mlmm': did you mean mlm"),
        (["bert/tiny", "--config.objective.kind=heads", "--config.objective.rate=0.2"], "objective.rate is not a field"),
        (["bert/tiny", "--config.optim.lr=nan"], "config.optim.lr is nan"),
        (["bert/tiny", "--config.log.every=0"], "log.every is 0: it is at least 1"),
        (["bert/tiny", "--config.eval.batch=-3"], "eval.batch is -3: it is at least 1"),
        (["bert/tiny", "--config.eval.rows=-1"], "eval.rows is -1: it is at least 0"),
        (["bert/tiny", "--config.checkpoint.every=-1"], "checkpoint.every is -1: it is at least 0"),
        (["bert/tiny", "--config.checkpoint.keep=0"], "checkpoint.keep is 0: it is at least 1"),
        (["bert/tiny", "--config.objective.max_predictions=-1"], "objective.max_predictions is -1"),
        (["bert/tiny", "--config.data.short_probability=2"], "data.short_probability is 2.0"),
        (["bert/tiny", "--config.phases.steps=3,-1"], "phases.steps is (3, -1): it is at least 1"),
        (["bert/tiny", "--config.phases.length=16"], "phases.length has 1 values and phases.steps has 0"),
        (["bert/base", "--config.train.steps=10"], "phases.steps is (900000, 100000) and decides: set --config.phases.steps"),
        (["bert/base", "--config.data.length=128"], "phases.length is (128, 512) and decides"),
        (["electra/base", "--config.model.generator_width=250"], "model.generator_width 250 does not divide into model.generator_heads 4"),
        (["electra/base", "--config.model.generator_heads=0"], "model.generator_heads is 0: it is at least 1"),
        (["electra/small", "--config.objective.temperature=0"], "objective.temperature is 0.0: it takes a number above 0"),
        (["electra/small", "--config.objective.temperature=-1"], "objective.temperature is -1.0: it takes a number above 0"),
        (["electra/small", "--config.objective.temperature=nan"], "objective.temperature is nan"),
        (["electra/small", "--config.objective.temperature=inf"], "objective.temperature is inf"),
        (["electra/small", "--config.objective.rate=nan"], "objective.rate is nan"),
        (["electra/small", "--config.objective.mlm_coef=nan"], "objective.mlm_coef is nan"),
    ],
)
def test_a_recipe_or_an_override_that_does_not_fit_is_one_line(argv: list[str], words: str, fails: Callable[..., str]) -> None:
    """An override without effect is refused too: phases have their own steps."""
    assert words in fails("inspect", "--config", *argv)
