"""Published hyper-parameters: numbers of the sources, and settings that every family has."""

import dataclasses

import pytest

from jaxenc.cli import recipe as cli_recipe
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.tasks import glue, published
from jaxenc.tasks import recipe as recipes
from jaxenc.tasks.choice_sets import SETS
from jaxenc.tasks.span_qa import SpanQa
from tests.selection import thinned

BERT, ELECTRA, XLNET = MODELS["bert"](), MODELS["electra"](), MODELS["xlnet"]()
ROBERTA = dataclasses.replace(BERT, first_position=2)
MODELS_OF = [*(model for cls in MODELS.values() if (model := cls()).fine_tuning), ROBERTA, dataclasses.replace(BERT, width=512, heads=8)]


@pytest.mark.parametrize(
    "model, task, wanted",
    [
        (BERT, "mrpc", {"optim.lr": 2e-5, "train.batch": 32, "train.epochs": 3.0, "train.length": 128}),
        (BERT, "squad", {"optim.lr": 3e-5, "train.batch": 12, "train.epochs": 2.0, "train.length": 384}),
        (ROBERTA, "mnli", {"optim.lr": 1e-5, "train.steps": 123_873, "optim.warmup": 7_432, "optim.decay_exclude": ()}),
        (ROBERTA, "wnli", {"train.steps": 0, "train.epochs": 10.0, "train.warmup": 0.06, "optim.beta2": 0.98, "optim.clip": 0.0}),
        (ELECTRA, "stsb", {"train.epochs": 10.0, "task.scaled": True, "task.double_unordered": True, "optim.layer_decay": 0.8}),
        (dataclasses.replace(ELECTRA, layers=24), "mrpc", {"optim.lr": 5e-5, "task.double_unordered": True, "optim.layer_decay": 0.9}),
        (XLNET, "mnli", {"optim.lr": 2e-5, "train.batch": 128, "train.steps": 10_000, "optim.weight_decay": 0.0}),
        (MODELS["albert"](), "qqp", {"optim.lr": 5e-5, "train.batch": 128, "train.steps": 14_000, "train.length": 512}),
        (XLNET, "squad", {"task.max_answer": 64, "task.n_best": 5, "train.length": 512, "optim.layer_decay": 0.75}),
        (ELECTRA, "squad2", {"task.null_threshold": -2.75, "train.length": 512, "train.epochs": 2.0}),
        (MODELS["gpt"](), "text", {"optim.lr": 6.25e-5, "train.batch": 32, "train.warmup": 0.002, "optim.epsilon": 1e-8}),
    ],
)  # fmt: skip
def test_numbers_of_the_sources(model, task, wanted):
    found = published.numbers(model, task)
    assert {path: found[path] for path in wanted} == wanted


@pytest.mark.parametrize("model", MODELS_OF, ids=lambda model: f"{model.kind}-{model.width}-{getattr(model, 'first_position', 0)}")
def test_every_family_has_every_setting_for_every_task(model):
    """B97: with a warm-up, too. A number of steps has a warm-up in steps, and one of another task is never left."""
    same = set(published.numbers(model, "text"))
    for task in published.KNOWN:
        found = published.numbers(model, task)
        assert same <= set(found) and found["optim.lr"] > 0 and found["train.batch"] > 0
        assert found["train.warmup"] > 0 and bool(found["train.steps"]) == bool(found["optim.warmup"])
        assert found["optim.warmup"] <= found["train.steps"] and published.of(model).source
        kinds = {**{name: type(one) for name, (one, *_) in glue.GLUE.items()}, "squad": SpanQa, "squad2": SpanQa}
        fields = {field.name for field in dataclasses.fields(kinds[task])} if task in kinds else set()
        assert {path.removeprefix("task.") for path in found if path.startswith("task.")} <= fields


@pytest.mark.parametrize(
    "name, kind",
    thinned(
        [("squad", "span_qa"), ("squad:1.1", "span_qa"), ("squad:2", "span_qa"), *((f"choice:{name}", "choice") for name in SETS)],
        "squad:2",
        "choice:swag",
    ),
)
def test_recipes_fit_every_family(name, kind):
    """Files, task and numbers of recipes that have no test of their own."""
    read = recipes.from_dict(cli_recipe.read(f"tasks/{name}"))
    for model in MODELS_OF:
        tune = recipes.resolve(read, model, {"data.path": "folder"})
        assert tune.task.kind == kind and tune.published == "" and tune.train.length >= 128
        assert all(name.startswith("folder/") for split in ("train", "dev") for name in tune.data.names(split))
        if kind == "span_qa":
            assert tune.task.impossible == name.endswith("2") == tune.data.train.endswith("v2.0.json")


@pytest.mark.parametrize(
    "name, what", [("squad:3", "3 is not a version of SQuAD"), ("choice:copa", "copa is not a known multiple-choice dataset")]
)
def test_arguments_that_recipes_do_not_know(name, what):
    with pytest.raises(UserError, match=what):
        cli_recipe.read(f"tasks/{name}")


def test_candidates_hold_the_number_that_is_taken():
    for known in (model.fine_tuning for model in MODELS_OF):
        assert all(known.every[path] in candidates for path, candidates in known.grid.items())


def test_which_families_have_numbers():
    """A BERT has those of its size, and a pair of networks those of the one that is fine-tuned."""
    assert {model.kind for model in MODELS_OF} >= {"bert", "electra", "xlnet", "albert", "gpt", "distilbert", "pair"}
    assert len({model.fine_tuning.source for model in (BERT, ROBERTA, dataclasses.replace(BERT, width=512, heads=8))}) == 3
    assert NetworkPairConfig(XLNET, ELECTRA).fine_tuning is ELECTRA.fine_tuning


def test_what_has_no_numbers():
    with pytest.raises(UserError, match="no fine-tuning of elmo is published whose numbers are known here; set published=''"):
        published.numbers(MODELS["elmo"](), "sst2")
    with pytest.raises(UserError, match="published is 'sst'; use cola, sst2"):
        published.numbers(BERT, "sst")
