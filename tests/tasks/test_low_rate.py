"""A published rate on a model that is smaller than those it is published for: one line says so and names one to try."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.families import MODELS
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.tasks import low_rate, recipe
from jaxenc.tasks.tuning import FineTune

TEXT = FineTune(published="text")
SMALL = AlbertConfig(vocab_size=200, embedding=16, width=32, layers=2, heads=2, feed_forward=64, positions=32, types=2)
# By hand: tables of positions and types 34 · 16 and their norm 32, 16 · 32 + 32 to the width, and one layer, which both share: four
# projections of 32 · 32 + 32, 32 · 64 + 64 and 64 · 32 + 32 of the feed-forward part, two norms of 64.
COUNT = 34 * 16 + 32 + 16 * 32 + 32 + 4 * (32 * 32 + 32) + 32 * 64 + 64 + 64 * 32 + 32 + 2 * 64


def said(capsys: pytest.CaptureFixture, model: ModelConfig, values: dict[str, object], tune: FineTune = TEXT) -> list[str]:
    """What `recipe.resolve` says."""
    capsys.readouterr()
    recipe.resolve(tune, model, values)
    return capsys.readouterr().err.splitlines()


def test_a_small_model_is_named_with_a_rate_to_try(capsys: pytest.CaptureFixture) -> None:
    larger = f"the rate 1e-05 is published for larger models, and this one has {COUNT:,} parameters besides its token table"
    assert said(capsys, SMALL, {}) == [f"warning: {larger}: try --config.optim.lr=0.001"]
    assert said(capsys, SMALL, {"train.epochs": 3.0, "train.batch": 8})  # other numbers do not make the rate the user's
    (line,) = said(capsys, dataclasses.replace(SMALL, width=256, heads=4), {})
    assert line.endswith("try --config.optim.lr=0.0003")


@pytest.mark.parametrize("rate", [1e-3, 1e-5])
def test_a_rate_of_the_user_is_not_judged(rate: float, capsys: pytest.CaptureFixture) -> None:
    """Also one that is the published one."""
    assert said(capsys, SMALL, {"optim.lr": rate}) == []
    assert said(capsys, SMALL, {"published": ""}) == []
    assert said(capsys, SMALL, {}, FineTune()) == []


@pytest.mark.parametrize("kind", [kind for kind, cls in MODELS.items() if cls().fine_tuning])
def test_models_of_the_published_sizes_are_silent(kind: str, capsys: pytest.CaptureFixture) -> None:
    """At the defaults of each kind, the base size; a small BERT and a small ELECTRA have rates of their own."""
    assert said(capsys, MODELS[kind](), {}) == []


def test_rates_that_are_published_for_small_models_are_silent(capsys: pytest.CaptureFixture) -> None:
    assert said(capsys, BertConfig(width=128, heads=2, layers=2, feed_forward=512), {}) == []
    assert said(capsys, ElectraConfig(width=128, heads=2, layers=2, feed_forward=512, embedding=128), {}) == []


def test_of_a_pair_the_network_that_is_fine_tuned_counts() -> None:
    tiny = BertConfig(width=32, heads=2, layers=1, feed_forward=64)
    assert low_rate.warning(NetworkPairConfig(generator=tiny, discriminator=BertConfig()), 2e-5) == ""
    assert "larger models" in low_rate.warning(NetworkPairConfig(generator=BertConfig(), discriminator=tiny), 2e-5)


def test_the_command_says_it_before_it_reads_examples(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """SQuAD's rate on a tiny BERT; not with a rate of one's own."""
    assert cli_config.read("tasks/squad")["published"]
    command = ["finetune", "--config", "tasks/squad", "--init-from", str(tuned / "pretrained"), "--workdir", str(tmp_path / "run")]
    for more, expected in (([], 1), (["--config.optim.lr=3e-5"], 0)):
        assert main([*command, *more]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert ["the rate 3e-05 is published for larger models" in line for line in lines] == [True] * expected + [False] * (
            len(lines) - expected
        )
