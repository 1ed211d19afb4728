"""Recipes, a file of the user's own, a config.json, and overrides."""

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.families import MODELS, with_built_in
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives import OBJECTIVES
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.tasks import TASKS
from jaxenc.tasks.tuning import FineTune
from jaxenc.training.override import override

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
        ("def get_config():\n    return {}\n", "get_config returns dict; return jaxenc.configs.recipe(Run(...))"),
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


def test_r28_aliases_of_the_command_line_set_every_phase() -> None:
    """The named case, `bert/base --config.train.steps=10`, and every alias with another number."""
    recipe = cli_config.resolve("bert/base", [])
    values = {"train.steps": 10, "train.batch": 8, "data.length": 64, "optim.lr": 1e-3, "optim.warmup": 2}
    run = cli_config.resolve("bert/base", [f"--config.{path}={value}" for path, value in values.items()])
    assert run == override(recipe, values)
    assert [(phase.steps, phase.batch, phase.length, phase.lr, phase.warmup) for phase in run.plan] == [(n, 8, 64, 1e-3, 2) for n in (9, 1)]


def test_r28_another_kind_starts_from_its_own_defaults(capsys: pytest.CaptureFixture) -> None:
    """The named case: BERT's 80 % of masks, 10 % of random ids and tanh GELU do not become ELECTRA's; all else of the recipe stays."""
    kinds = ["--config.objective.kind=rtd", "--config.model.kind=electra"]
    recipe, run = cli_config.resolve("bert/tiny", []), cli_config.resolve("bert/tiny", kinds)
    assert (run.objective, run.model) == (RtdConfig(), ElectraConfig())
    assert (run.objective.mask_share, run.objective.random_share, run.model.activation) == (1.0, 0.0, "gelu_erf")
    assert dataclasses.replace(run, objective=recipe.objective, model=recipe.model) == recipe
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("warning: --config.objective.kind=rtd starts from its own defaults: rate 0.15 (not 0.3)")
    assert said[1].startswith("warning: --config.model.kind=electra starts from its own defaults: width 768 (not 128), layers 12 (not 2)")
    assert len(said) == 2 and "vocab_size" not in said[1]


@pytest.mark.parametrize("kind", [*OBJECTIVES])
def test_r28_every_kind_from_every_other(kind: str) -> None:
    for name in ("bert/tiny", "electra/tiny", "xlnet/tiny", "elmo/tiny"):
        before = cli_config.resolve(name, []).objective
        after = cli_config.resolve(name, [f"--config.objective.kind={kind}"]).objective
        assert after == (before if before.kind == kind else OBJECTIVES[kind]())


@pytest.mark.parametrize("kind", [*MODELS])
def test_r28_every_model_from_every_other(kind: str) -> None:
    for name in ("bert/tiny", "electra/tiny", "xlnet/tiny", "elmo/tiny"):
        before, after = (cli_config.resolve(name, given).model for given in ([], [f"--config.model.kind={kind}"]))
        assert after == (before if before.kind == kind else MODELS[kind]())


def test_r28_fields_of_the_new_kind_are_set_in_the_same_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """In any order, also those of a kind that shares no field with the old one; a field that is set is not warned of."""
    run = cli_config.resolve("bert/tiny", ["--config.objective.rtd_coef=10", "--config.objective.rate=0.2", "--config.objective.kind=rtd"])
    assert run.objective == RtdConfig(rtd_coef=10.0, rate=0.2) and "rate" not in capsys.readouterr().err
    given = ["--config.objective.kind=heads", "--config.objective.heads=tags", "--config.objective.labels=x,y"]
    assert cli_config.resolve("bert/tiny", given).objective == HeadsConfig(("tags",), ("x", "y"))
    heads = {"kind": "heads", "heads": ["pooler", "classifier"], "labels": ["a", "b"]}
    (tmp_path / "config.json").write_text(json.dumps({"objective": heads, "train": {"steps": 7}}))
    run = cli_config.resolve(str(tmp_path / "config.json"), ["--config.objective.rate=0.3", "--config.objective.kind=mlm"])
    assert run.objective == MlmConfig(rate=0.3) and run.train.steps == 7


@pytest.mark.parametrize(
    "name, given",
    [
        ("bert/base", ("train.steps=10", "train.batch=8", "data.length=64", "optim.warmup=2")),
        ("bert/tiny", ("objective.kind=rtd", "model.kind=electra", "objective.rate=0.2", "model.layers=2")),
        ("bert/large_lamb", ("phases.steps=8,4", "phases.length=16,32", "train.batch=8", "optim.lr=1e-3")),
        ("xlnet/tiny", ("objective.kind=mlm", "model.kind=bert", "data.rows=text", "objective.rate=0.3")),
    ],
)
def test_r28_the_order_of_overrides_changes_nothing(name: str, given: tuple[str, ...], capsys: pytest.CaptureFixture) -> None:
    """All 24 orders, warnings included. Of a field that is set twice the last value counts."""
    orders = [[f"--config.{item}" for item in order] for order in itertools.permutations(given)]
    runs, warnings = zip(
        *((cli_config.resolve(name, order), sorted(capsys.readouterr().err.splitlines())) for order in orders), strict=True
    )
    assert all(run == runs[0] for run in runs) and all(lines == warnings[0] for lines in warnings)
    assert cli_config.resolve(name, [f"--config.{given[0].partition('=')[0]}={OTHER[given[0]]}", *orders[0]]) == runs[0]


OTHER = {"train.steps=10": "70", "objective.kind=rtd": "heads", "phases.steps=8,4": "9", "objective.kind=mlm": "rtd"}


def test_r28_a_kind_of_ones_own() -> None:
    run = override(cli_config.resolve("bert/tiny", []), {"model.kind": "other", "model.windows": 5}, with_built_in(Other))
    assert run.model == Other(windows=5)
    assert override(run, {"model.kind": "bert", "model.layers": 2}).model == BertConfig(layers=2)


def test_r28_the_kind_of_a_part_of_a_part() -> None:
    changed = ["--config.model.kind=pair", "--config.model.generator.kind=xlnet", "--config.model.generator.clamp=7"]
    model = cli_config.resolve("bert/tiny", changed).model
    assert model == NetworkPairConfig(generator=XlnetConfig(clamp=7))


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
        (["zzz"], "zzz: no such recipe; a recipe is FAMILY/SIZE, such as bert/base, of ablations, "),
        (["bert/tiny:5"], "this recipe takes nothing after a colon; name bert/tiny"),
        (["bert/sizes"], "takes a size after the colon"),
        (["bert/tyni"], "did you mean bert/tiny"),
        (["bert/tiny", "--config.train.stepz=3"], "config.train.stepz is not a field; did you mean train.steps"),
        (["bert/tiny", "--config.objective.kind=mlmm"], "config.objective.kind is 'mlmm'; did you mean mlm"),
        (["bert/tiny", "--config.objective.kind=heads", "--config.objective.rate=0.2"], "objective.rate is not a field"),
        (["bert/tiny", "--config.optim.lr=nan"], "config.optim.lr is nan"),
        (["bert/tiny", "--config.log.every=0"], "log.every is 0; it is at least 1"),
        (["bert/tiny", "--config.eval.batch=-3"], "eval.batch is -3; it is at least 1"),
        (["bert/tiny", "--config.eval.rows=-1"], "eval.rows is -1; it is at least 0"),
        (["bert/tiny", "--config.checkpoint.every=-1"], "checkpoint.every is -1; it is at least 0"),
        (["bert/tiny", "--config.checkpoint.keep=0"], "checkpoint.keep is 0; it is at least 1"),
        (["bert/tiny", "--config.objective.max_predictions=-1"], "objective.max_predictions is -1"),
        (["bert/tiny", "--config.data.short_probability=2"], "data.short_probability is 2.0"),
        (["bert/tiny", "--config.phases.steps=3,-1"], "phases.steps is (3, -1); it is at least 1"),
        (["bert/tiny", "--config.phases.length=16"], "phases.length has 1 values and phases.steps has 0"),
        (["bert/base", "--config.train.steps=1"], "config.train.steps is 1 and phases.steps has 2 phases; use 2 or more"),
        (["bert/base", "--config.train.steps=9", "--config.phases.steps=6,3"], "config.phases.steps is set too; leave one of the two out"),
        (["electra/base", "--config.model.generator_width=250"], "model.generator_width 250 does not divide into model.generator_heads 4"),
        (["electra/base", "--config.model.generator_heads=0"], "model.generator_heads is 0; it is at least 1"),
        (["electra/small", "--config.objective.temperature=0"], "objective.temperature is 0.0; it takes a number above 0"),
        (["electra/small", "--config.objective.temperature=-1"], "objective.temperature is -1.0; it takes a number above 0"),
        (["electra/small", "--config.objective.temperature=nan"], "objective.temperature is nan"),
        (["electra/small", "--config.objective.temperature=inf"], "objective.temperature is inf"),
        (["electra/small", "--config.objective.rate=nan"], "objective.rate is nan"),
        (["electra/small", "--config.objective.mlm_coef=nan"], "objective.mlm_coef is nan"),
    ],
)
def test_a_recipe_or_an_override_that_does_not_fit_is_one_line(argv: list[str], words: str, fails: Callable[..., str]) -> None:
    assert words in fails("inspect", "--config", *argv)


@pytest.mark.parametrize(
    "override, words",
    [
        ("train.steps=1e3", "is not a whole number"),
        ("train.steps=", "is not a whole number"),
        ("train.steps=1.5", "is not a whole number"),
        ("train.steps=true", "is not a whole number"),
        ("train.seed=ten", "is not a whole number"),
        ("optim.lr=1,5", "is not a number"),
        ("optim.lr=", "is not a number"),
        ("log.examples=maybe", "is not true or false"),
        ("log.examples=", "is not true or false"),
    ],
)
def test_r40_a_value_of_another_type_is_one_line_in_our_words(override: str, words: str, fails: Callable[..., str]) -> None:
    said = fails("inspect", "--config", "bert/tiny", f"--config.{override}")
    assert said == f"jaxenc: --config.{override} {words}; give a value of the field's type\n"


@pytest.mark.parametrize(
    "text, value",
    [("0,1", ("0", "1")), ("-1,0, 1", ("-1", "0", "1")), ("(0, 1)", ("0", "1")), ("('a', 'b')", ("a", "b")), ("[0,1.0]", ("0", "1.0")),
     ("01,1e3", ("01", "1e3")), ("a,b", ("a", "b")), ("7", ("7",)), ("", ()), ("no|0,yes|1", ("no|0", "yes|1")),
     ("0,1,", ("0", "1")), ("('a', 1)", ("a", "1")), ("True,False", ("True", "False"))],
)  # fmt: skip
def test_numbers_in_a_field_of_names_are_names(text: str, value: tuple[str, ...]) -> None:
    """Such as the classes 0 and 1, as they are written. Elsewhere they stay numbers."""
    found = cli_config.parsed(FineTune(), (f"--config.task.labels={text}", "--config.train.lengths=64,128"), {"task": TASKS})
    assert found == {"task.labels": value, "train.lengths": (64, 128)}
