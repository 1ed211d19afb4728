"""`jaxenc inspect` counts what papers count, for every recipe, and plans the memory of a step."""

import math
import re
from collections.abc import Callable

import jax
import numpy as np
import pytest

from jaxenc import tree
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.config import flatten, to_dict
from jaxenc.optim.masks import decay_mask
from jaxenc.tasks import TASKS
from jaxenc.tasks import recipe as task_recipes
from jaxenc.training.state import layout, parameters
from tests import tiny

# Of a pair: what transformers' ElectraForPreTraining has.
KEPT = {"electra/small": 13_549_057, "electra/base": 109_483_009, "electra/large": 335_142_913}


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["inspect", "--no-compile", *argv]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("recipe", "without_heads", "total"),
    [
        ("bert/base", 109_482_240, 110_106_428),
        pytest.param("bert/large", 335_141_888, 336_226_108, marks=pytest.mark.full),
        pytest.param("bert/sizes:2x128", 4_385_920, 4_433_468, marks=pytest.mark.full),
        # Without the pooler that transformers counts.
        pytest.param("roberta/base", 124_645_632 - 590_592, 124_697_433, marks=pytest.mark.full),
        pytest.param("roberta/large", 355_359_744 - 1_049_600, 355_412_057, marks=pytest.mark.full),
        ("electra/small", 14_196_219 - 39_098 - 66_049, 14_196_219),
        pytest.param("electra/base", 119_386_427 - 229_434 - 591_361, 119_386_427, marks=pytest.mark.full),
        pytest.param("electra/large", 354_655_291 - 295_738 - 1_050_625, 354_655_291, marks=pytest.mark.full),
        ("xlnet/base", 116_718_336, 116_750_336),
        pytest.param("xlnet/large", 360_268_800, 360_300_800, marks=pytest.mark.full),
        ("elmo/small", 13_593_296, 13_593_296 + 793_471 * 129),
        pytest.param("elmo/medium", 28_027_728, 28_027_728 + 793_471 * 257, marks=pytest.mark.full),
        pytest.param("elmo/original", 93_600_848, 93_600_848 + 793_471 * 513, marks=pytest.mark.full),
        pytest.param("elmo/original_5_5b", 93_600_848, 93_600_848 + 793_471 * 513, marks=pytest.mark.full),
    ],
)
def test_counts_are_the_published_ones(capsys: pytest.CaptureFixture[str], recipe: str, without_heads: int, total: int) -> None:
    out = printed(capsys, "--config", recipe)
    assert re.search(rf"without heads +{without_heads:,}\n", out)
    assert re.search(rf"\nparameters +{total:,}\n", out)
    assert re.findall(r"\nto keep +([\d,]+)\n", out) == ([f"{KEPT[recipe]:,}"] if recipe in KEPT else [])


@pytest.mark.parametrize("recipe", ["bert/tiny", "electra/tiny", "xlnet/tiny", "elmo/tiny", "roberta/base"])
def test_fields_are_printed_as_overrides_with_their_meanings(capsys: pytest.CaptureFixture[str], recipe: str) -> None:
    """One line a field; given back, they are the run that they were printed of, whatever recipe they override."""
    lines = printed(capsys, "--config", recipe, "--fields").splitlines()
    settings, meanings = zip(*(re.fullmatch(r"(\S+) +(\S.*)", line).groups() for line in lines), strict=True)
    run = cli_config.resolve(recipe, [])
    assert [setting.partition("=")[0] for setting in settings] == [path for path, _ in flatten(to_dict(run))]
    assert dict(zip(settings, meanings, strict=True))["train.seed=0"].startswith("of the initial parameters, the order of rows")
    assert cli_config.resolve("bert/small", [f"--config.{setting}" for setting in settings]) == run


def test_r28_fields_show_phases_that_are_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "--config", "bert/base", "--fields", "--config.train.steps=10")
    assert re.search(r"^phases.steps=9,1 +steps of each phase", out, re.MULTILINE)


@pytest.mark.full
def test_a_split_state_is_smaller_on_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    """fsdp over 8: everything but the vectors that stay whole, so between an eighth and a sixth of the 4,035.6 MB."""
    out = printed(capsys, "--config", "bert/large", "--devices", "8", "--config.mesh.preset=fsdp")
    held = float(re.search(r"on each of 8 devices .*: ([\d,.]+) MB", out)[1].replace(",", ""))
    assert 4035.6 / 8 <= held <= 4035.6 / 6


@pytest.mark.parametrize("preset", ["dp", "fsdp", "fsdp_tp"])
def test_the_state_on_a_device_is_what_a_run_places_there(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    """XLNet, a third of whose state is memory: the part of every array by its own sharding, <= 0.06 MB, since it prints tenths."""
    out = printed(capsys, "--config", "xlnet/tiny", "--devices", "8", f"--config.mesh.preset={preset}")
    held = float(re.search(r"on each of 8 devices .*: ([\d,.]+) MB", out)[1])
    run = cli_config.resolve("xlnet/tiny", [])
    objective, mesh = run.build(run.model.published_vocabulary, run.plan[0], "cpu"), tiny.mesh(preset, 8)
    placed = layout(objective, run.optim, run.plan[0].batch, mesh, preset).abstract
    sizes = [math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(placed)]
    assert abs(held - sum(sizes) / 1e6) <= 0.06


def test_every_recipe_resolves_and_fits_its_own_model() -> None:
    recipes = [name if name != "bert/sizes" else "bert/sizes:12x256" for name in cli_config.names()]
    assert {"bert/tiny", "bert/small", "bert/base", "bert/large", "bert/large_lamb"} <= set(recipes)
    assert {"roberta/tiny", "roberta/base", "roberta/large"} <= set(recipes)
    assert {"electra/tiny", "electra/small", "electra/small_owt", "electra/base", "electra/large"} <= set(recipes)
    assert {"xlnet/tiny", "xlnet/small", "xlnet/base", "xlnet/large"} <= set(recipes)
    assert {"gpt/tiny", "gpt/small", "gpt/base", "ablations/left_to_right"} <= set(recipes)
    assert {"elmo/tiny", "elmo/small_quick", "elmo/small", "elmo/medium", "elmo/original", "elmo/original_5_5b"} <= set(recipes)
    for name in recipes:
        if name.startswith("tasks/"):
            assert task_recipes.from_dict(cli_config.read(name)).task.kind in TASKS, name
            continue
        run = cli_config.resolve(name, [])
        assert run.plan[-1].end == sum(phase.steps for phase in run.plan), name


@pytest.mark.parametrize(
    ("recipe", "override", "words"),
    [
        ("xlnet/tiny", "train.batch=3", "train.batch is 3: 'streams' come in pairs"),
        ("xlnet/tiny", "data.reuse=0", "data.reuse is 0"),
        ("bert/tiny", "data.length=2", "data.length is 2; rows of 'text' need 3 or more"),
        ("bert/tiny", "data.rows=lines", "data.rows is 'lines'; it takes text, "),
    ],
)
def test_what_pretrain_refuses_without_data_is_refused(recipe: str, override: str, words: str, fails: Callable[..., str]) -> None:
    assert words in fails("inspect", "--config", recipe, f"--config.{override}")


@pytest.mark.parametrize(("recipe", "lr", "warmup"), [("roberta/base", 6e-4, 24_000), ("roberta/large", 4e-4, 30_000)])
def test_roberta_recipes_are_what_the_paper_says(recipe: str, lr: float, warmup: int) -> None:
    """Liu et al. 2019, table 9, and fairseq's examples/roberta/config/pretraining/base.yaml; an empty tuple survives the command line."""
    run = cli_config.resolve(recipe, [])
    phase, optim = run.plan[0], run.optim
    assert (phase.steps, phase.batch, phase.length, phase.lr, phase.warmup) == (500_000, 8192, 512, lr, warmup)
    assert (optim.beta1, optim.beta2, optim.epsilon, optim.weight_decay, optim.clip) == (0.9, 0.98, 1e-6, 0.01, 0.0)
    assert (optim.decay_exclude, optim.schedule, optim.origin) == ((), "linear", "warmup_end")
    assert run.objective.masking(run.model.published_vocabulary, 512, 0).predictions == 77


def test_electra_predicts_as_many_as_published() -> None:
    """min(int((rate + 0.005) · length), max(1, round(rate · n))) in a row of n tokens (google-research/electra:configure_pretraining.py,
    pretrain/pretrain_helpers.py), also where the rows have another length than the recipe's; and the published lengths, batches, rates."""
    runs = [cli_config.resolve(f"electra/{name}", []) for name in ("small", "base", "large")]
    for run, length in [*((run, run.data.length) for run in runs), (runs[0], 512)]:
        rule, rate = run.objective.masking(run.model.published_vocabulary, length, 0), run.objective.rate
        published = [min(int((rate + 0.005) * length), max(1, round(rate * n))) for n in range(1, length + 1)]
        assert np.minimum(rule.budget(length)[0][0, 1:], rule.predictions).tolist() == published
    assert [(run.train.batch, run.data.length, run.optim.lr) for run in runs] == [(128, 128, 5e-4), (256, 512, 2e-4), (2048, 512, 2e-4)]


def test_gpt_is_as_published() -> None:
    """Radford et al. 2018, section 4.1; Adam's numbers and the origin of the cosine are those of openai/finetune-transformer-lm:opt.py."""
    run = cli_config.resolve("gpt/base", [])
    phase, optim, model = run.plan[0], run.optim, run.model
    assert (phase.batch, phase.length, phase.lr, phase.warmup) == (64, 512, 2.5e-4, 2000)
    assert (optim.schedule, optim.origin, optim.bias_correction, optim.weight_decay, optim.clip) == ("cosine", "step_zero", True, 0.01, 1)
    assert (optim.beta1, optim.beta2, optim.epsilon) == (0.9, 0.999, 1e-8)
    assert (model.dropout, model.table_dropout, model.attention_dropout, model.init, model.norm_epsilon) == (0.1, 0.1, 0.1, "normal", 1e-5)
    # 100 times the 984,846,357 words of the corpus, to the nearest hundred thousand steps.
    assert round(100 * 984_846_357 / (64 * 512), -5) == phase.steps


@pytest.mark.parametrize(("recipe", "batch"), [("xlnet/base", 2048), ("xlnet/large", 8192)])
def test_xlnet_recipes_are_as_published(recipe: str, batch: int) -> None:
    """zihangdai/xlnet README.md and the paper's table 8; the choice of predictions as data_utils.py makes it, and which parameters decay
    as model_utils.py says: layer norms and biases do not, the three biases of attention do."""
    run = cli_config.resolve(recipe, [])
    phase, optim, objective = run.plan[0], run.optim, run.objective
    assert (phase.steps, phase.batch, phase.length, run.data.reuse, phase.lr, phase.warmup) == (500_000, batch, 512, 256, 4e-4, 40_000)
    assert (objective.memory, objective.permutation, objective.predictions, objective.alpha, objective.beta) == (384, 256, 85, 6, 1)
    assert (objective.unit, objective.candidates, objective.shuffle) == ("tokens", "all", "shared")
    assert (optim.epsilon, optim.weight_decay, optim.clip, optim.bias_correction, optim.origin) == (1e-6, 0.01, 1.0, False, "warmup_end")
    shapes, _ = parameters(run.build(run.model.published_vocabulary, phase, "cpu"))
    decays = tree.leaves(decay_mask(optim.decay_exclude, shapes))
    kept = {path for path, is_decayed in decays if not is_decayed and ("layer_00" in path or path == "lm/bias")}
    layer = "encoder/layer_00/"
    norms = {f"{layer}{part}/norm/{leaf}" for part in ("attention", "feed_forward") for leaf in ("scale", "bias")}
    assert kept == {*norms, f"{layer}feed_forward/up/bias", f"{layer}feed_forward/down/bias", "lm/bias"}


@pytest.mark.parametrize("size", ["small", "medium", "original"])
def test_elmo_recipes_are_as_published(size: str) -> None:
    """allenai/bilm-tf bin/train_elmo.py and bilm/training.py: 100,084 steps in each of ten epochs; the gradient of 20 times the mean of
    both directions' losses is clipped at 10."""
    run = cli_config.resolve(f"elmo/{size}", [])
    phase, optim, objective = run.plan[0], run.optim, run.objective
    assert (phase.steps, phase.batch, phase.length, run.data.rows) == (1_000_840, 384, 20, "sentences")
    assert (optim.name, phase.lr, phase.warmup, optim.schedule, optim.accumulator) == ("adagrad", 0.2, 0, "constant", 1.0)
    assert (optim.clip, optim.weight_decay, optim.decay_exclude) == (10.0, 0.0, ())
    assert (objective.softmax, objective.negatives, run.model.dropout, run.model.residual) == ("sampled", 8192, 0.1, True)
    assert run.build(run.model.published_vocabulary, phase, "cpu").coef == {"forward": 10.0, "backward": 10.0}
