"""Runs that are refused before they write anything, and what a run says of itself. A nano BERT."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

import jaxenc
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.restore import SHOWN
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli import recipe as cli_config
from jaxenc.cli.main import main
from jaxenc.data import manifest
from jaxenc.data.build import build
from jaxenc.data.sources import DataConfig
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.families.gpt.model import GptConfig
from jaxenc.files import locked
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import Mlm, MlmConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.processes import barriers
from jaxenc.training import prepare, refusals
from jaxenc.training.pretrain import pretrain
from jaxenc.training.settings import EvalConfig
from tests import older, tiny
from tests.cli.test_two_stage import ROOM, SIZES
from tests.training.test_loop import recipe

TINY = ("--config.model.width=16", "--config.model.feed_forward=32", "--config.model.layers=1", "--config.data.length=24")
NANO = (*TINY, "--config.train.batch=8", "--config.train.steps=1", "--config.optim.warmup=0", "--config.log.tensorboard=false")


def command(data: Path, workdir: Path, *more: str) -> list[str]:
    return ["pretrain", "--config", "bert/tiny", f"--config.data.path={data}", "--workdir", str(workdir), *NANO, *more]


@pytest.mark.parametrize(
    "override, words",
    [
        ("train.microbatches=2", "8 rows in 2 microbatches cannot be split over 8 devices"),
        ("train.batch=12", "12 rows cannot be split over 8 devices"),
        ("objective.kind=mlm_nsp", "the objective reads is_random, which data.rows=text lacks"),
        ("objective.kind=rtd", "objective.kind rtd takes a pair of networks; set model.kind to electra or "),
        ("data.rows=streams --config.data.reuse=8", "data.rows=streams run backward, which objective.kind=mlm does not read; set"),
        ("train.dupe_factor=4294967296", "train.dupe_factor is 4294967296; it is at most 2^31 - 1"),
        (
            "objective.kind=heads --config.objective.heads=tags --config.objective.labels=a,b",
            "learns from tags, and data of `jaxenc data` holds no labels; choose what to train on, such as --config.objective.kind=mlm",
        ),
        ("train.batch=2000000000", "train.batch: 2,000,000,000 rows of 24 tokens are"),
        ("eval.batch=2000000000", "eval.batch: 2,000,000,000 rows of 24 tokens are"),
        ("train.steps=10000000000", "config.train.steps is 10000000000; it is at most 2^31 - 1"),
        ("data.length=2", "rows of 'text' need 3 or more"),
        ("data.length=65", "data.length is 65 and model.positions is 64"),
        ("optim.freeze=encoder/layer_9/.*", "optim.freeze: no parameter's path matches"),
        ("data.path=/nowhere", "/nowhere/manifest.json: No such file or directory"),
    ],
)
def test_a_run_that_does_not_fit_is_one_line_and_leaves_nothing(
    override: str, words: str, data: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    assert words in fails(*command(data, tmp_path / "run", *f"--config.{override}".split()))
    assert not list(tmp_path.iterdir())


def test_data_of_an_older_version_trains_what_needs_no_words(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And an objective that reads word_starts is told to build the data again."""
    job = prepare.prepare(recipe(older.version_1(data, tmp_path / "data")), tmp_path / "run")
    prepare.check(job)
    reads = Mlm.reads.fget
    monkeypatch.setattr(Mlm, "reads", property(lambda self: {**reads(self), "word_starts": 2}))
    prepare.check(prepare.prepare(recipe(data), tmp_path / "run"))
    with pytest.raises(UserError, match="made before word_starts, which the objective reads; build the data again"):
        prepare.check(job)


def test_rows_that_lack_what_an_objective_reads_are_refused(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another kind, and data whose tokenizer has no characters."""
    run = dataclasses.replace(recipe(data), data=DataConfig(str(data), 16, "sentences"))
    job = prepare.prepare(run, tmp_path / "run")
    with pytest.raises(UserError, match="the objective reads positions, types, which data.rows=sentences lacks; set data.rows"):
        prepare.check(job)
    monkeypatch.setattr(Mlm, "reads", property(lambda self: {"tokens": 0, "segments": 0, "reverse_characters": 261}))
    with pytest.raises(UserError, match="its tokenizer has no characters of words, which the model reads; make one with") as raised:
        prepare.check(job)
    assert "\n" not in str(raised.value)


@tiny.on_one_device()
def test_an_evaluation_on_data_of_an_older_version_is_one_line(
    lonely: tuple[Path, Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    """Where the run reads word_starts, which that data lacks."""
    older.version_1(data, tmp_path / "data")
    reads = Mlm.reads.fget
    monkeypatch.setattr(Mlm, "reads", property(lambda self: {**reads(self), "word_starts": 2}))
    monkeypatch.setattr(refusals, "refuse_other_tokenizer", lambda job, step_dir: None)
    said = fails("evaluate", "--workdir", lonely[1], "--data", tmp_path / "data")
    assert "made before word_starts, which the objective reads; build the data again" in said


def test_r27_heads_without_a_loss_are_not_trained(data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """One line before anything is written: a pooler has nothing to learn from. The kind that it names is one that trains."""
    small = {"kind": "bert", "vocab_size": 150, "width": 16, "layers": 1, "heads": 2, "feed_forward": 32}
    recipe = {"objective": {"kind": "heads", "heads": ["pooler"]}, "model": small, "data": {"path": str(data), "length": 24}}
    (tmp_path / "config.json").write_text(json.dumps(recipe))
    said = fails("pretrain", "--config", tmp_path / "config.json", "--workdir", tmp_path / "run")
    assert said.endswith(
        "objective.kind=heads has no loss as it is configured; choose what to train on, such as --config.objective.kind=mlm\n"
    )
    assert not (tmp_path / "run").exists()
    run = cli_config.resolve(str(tmp_path / "config.json"), [*said.split()[-1:], "--config.model.positions=24"])
    prepare.check(prepare.prepare(run, tmp_path / "run"))


def test_losses_that_all_weigh_nothing_are_not_trained(data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    """Only decay would move such a run."""
    objective = {"kind": "rtd", "mlm_coef": 0.0, "rtd_coef": 0.0}
    recipe = {"objective": objective, "model": {"kind": "electra", **SIZES, **ROOM}, "data": {"path": str(data), "length": 24}}
    (tmp_path / "config.json").write_text(json.dumps(recipe))
    said = fails("pretrain", "--config", tmp_path / "config.json", "--workdir", tmp_path / "run")
    assert "objective.kind=rtd has no loss" in said and not (tmp_path / "run").exists()


def test_a_shard_of_the_same_size_with_other_bytes_is_refused(data: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    shutil.copytree(data, tmp_path / "data")
    content = bytearray((tmp_path / "data" / "train-00000.tokens").read_bytes())
    content[100] ^= 1
    (tmp_path / "data" / "train-00000.tokens").write_bytes(content)
    said = fails(*command(tmp_path / "data", tmp_path / "run"))
    assert "train-00000.tokens: its content changed" in said and not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Data of one short document, nothing held out, and a run of one step on it, on one device."""
    folder = tmp_path_factory.mktemp("lonely")
    (folder / "text.txt").write_text("ba de ki\n")
    wordpiece.train(["ba de ki lo mu"] * 3, 40).save(folder / "tokenizer")
    build([str(folder / "text.txt")], folder / "tokenizer", folder / "data", held_out=0.0)
    with tiny.on_one_device():
        assert main(command(folder / "data", folder / "run", "--config.optim.warmup=1")) == 0
    return folder / "data", folder / "run"


@tiny.on_one_device()
def test_a_field_younger_than_the_run_has_its_default_there(lonely: tuple[Path, Path], tmp_path: Path) -> None:
    """A run that an earlier version began, whose config.json lacks a field, is gone on with."""
    shutil.copytree(lonely[1], tmp_path / "run")
    saved = json.loads((tmp_path / "run" / "config.json").read_text())
    del saved["optim"]["epsilon_added"], saved["model"]["init"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(saved))
    assert main(command(lonely[0], tmp_path / "run", "--config.optim.warmup=1")) == 0


@pytest.mark.full
@tiny.on_one_device()
def test_a_run_with_static_masks_is_not_gone_on_with_others(lonely: tuple[Path, Path], tmp_path: Path, fails: Callable[..., str]) -> None:
    run = command(lonely[0], tmp_path / "run", "--config.optim.warmup=1")
    assert main([*run, "--config.train.dupe_factor=2"]) == 0
    assert "train.dupe_factor 2, this run's 0" in fails(*run)


def test_one_short_document_trains_and_is_reported(lonely: tuple[Path, Path], capsys: pytest.CaptureFixture) -> None:
    """One padded row: CLS, the three tokens, SEP of 24 places; no held-out row, no count baselines."""
    rows = [json.loads(line) for line in (lonely[1] / "metrics.jsonl").read_text().splitlines()]
    assert [row["split"] for row in rows] == ["train"] and rows[0]["padding"] == pytest.approx(19 / 24)
    assert main(["report", "--workdir", str(lonely[1])]) == 0
    assert "report: no count baselines" in capsys.readouterr().err and (lonely[1] / "report.png").exists()


def test_what_is_rarely_meant_is_a_warning(lonely: tuple[Path, Path], tmp_path: Path) -> None:
    said = prepare.warnings(prepare.prepare(recipe(lonely[0], optim=OptimConfig(warmup=20)), tmp_path))
    assert len(said) == 2 and "optim.warmup is 20 and the schedule has 20 steps" in said[0] and "not evaluated" in said[1]


def test_a_small_held_out_split_is_named_at_the_start(data: Path, tmp_path: Path) -> None:
    """Its tokens, or those that eval.rows lets a run read; an objective that predicts every token is content with fewer."""
    tokens = manifest.read(data).splits["held_out"].tokens
    said = lambda **parts: prepare.warnings(prepare.prepare(recipe(data, **parts), tmp_path))
    (line,) = said()
    assert line.startswith(
        f"warning: few tokens are held out: a loss on {tokens:,}, 15% of them predicted, has a standard error of at least"
    )
    assert line.endswith("; build the data with a larger --held-out or more text")
    (line,) = said(eval=EvalConfig(rows=2))
    assert f"a loss on {2 * 24}, " in line and line.endswith("; raise eval.rows, or set it to 0 for all of them")
    (line,) = said(objective=MlmConfig(rate=0.3))
    assert f"a loss on {tokens:,}, 30% of them predicted, has" in line and "; 0.05 needs 9,000 tokens;" in line
    (line,) = said(objective=CausalConfig(), model=GptConfig(width=16, layers=1, heads=2, feed_forward=32, positions=24))
    assert f"a loss on {tokens:,} has a standard error" in line and "; 0.05 needs 3,000 tokens;" in line


@pytest.mark.parametrize("flag", ["--init-from", "--continue-from"])
def test_parameters_of_another_vocabulary_are_refused(
    flag: str, data: Path, lonely: tuple[Path, Path], tmp_path: Path, fails: Callable[..., str]
) -> None:
    """Both tables are padded to one size, so the shapes would fit."""
    said = fails(*command(data, tmp_path / "run", flag, str(lonely[1])))
    assert "another tokenizer" in said and not (tmp_path / "run").exists()


@tiny.on_one_device()
def test_a_start_that_fails_leaves_the_directory_free(lonely: tuple[Path, Path], tmp_path: Path, fails: Callable[..., str]) -> None:
    fails(*command(lonely[0], tmp_path / "run", "--init-from", str(lonely[1]), "--config.model.width=32"))
    assert not (tmp_path / "run").exists()


@tiny.on_one_device()
def test_only_a_head_that_is_wholly_missing_starts_fresh(
    lonely: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture, fails: Callable[..., str]
) -> None:
    """It is drawn as a fresh run draws it; a part of a head or of the encoder is missed in one line."""
    trained = jax.tree.map(lambda leaf: leaf * 1.5, jaxenc.load(lonely[1]).params)
    start, folder = ["--init-from", str(tmp_path / "part"), "--config.optim.lr=1e-9"], tmp_path / "part" / "checkpoints" / "0"
    given = lonely[1] / "checkpoints" / "1"
    files = {name: (given / name).read_bytes() for name in ("config.json", "manifest.json")} | {"tokenizer": given / "tokenizer"}

    def save(params: dict) -> None:
        shutil.rmtree(tmp_path / "part", ignore_errors=True)
        with Manager(folder.parent, CheckpointConfig()) as checkpoints:
            checkpoints.save(0, {"params": params}, files)

    save({name: branch for name, branch in trained.items() if name != "mlm"})
    assert main(command(lonely[0], tmp_path / "run", *start)) == 0
    assert f"mlm starts fresh: {folder} has none\n" in capsys.readouterr().err
    assert main(command(lonely[0], tmp_path / "fresh", "--config.optim.lr=1e-9")) == 0
    assert "starts fresh" not in capsys.readouterr().err
    run, fresh = (jaxenc.load(tmp_path / name).params for name in ("run", "fresh"))
    largest = lambda a, b: jax.tree.reduce(max, jax.tree.map(lambda x, y: np.abs(x - y).max(), a, b))
    near = lambda a, b, name: largest(a[name], b[name]) <= 1e-6
    assert near(run, fresh, "mlm") and near(run, trained, "encoder") and not near(run, fresh, "encoder")
    save({**trained, "mlm": {"bias": trained["mlm"]["bias"]}})
    assert "mlm/dense/kernel is not in the checkpoint" in fails(*command(lonely[0], tmp_path / "other", *start))
    save({name: branch for name, branch in trained.items() if name != "encoder"})
    said = fails(*command(lonely[0], tmp_path / "other", *start))
    assert "output/kernel is not in the checkpoint" in said and said.count(" is not in ") == SHOWN and "; and 10 more; " in said
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name, text", [("config.json", "{"), ("config.json", "[]"), ("manifest.json", "")])
def test_a_damaged_work_directory_is_one_line(
    name: str, text: str, lonely: tuple[Path, Path], tmp_path: Path, fails: Callable[..., str]
) -> None:
    shutil.copytree(lonely[1], tmp_path / "run")
    (tmp_path / "run" / name).write_text(text)
    assert f"{tmp_path / 'run' / name}: " in fails(*command(lonely[0], tmp_path / "run", "--config.optim.warmup=1"))


def test_r30_the_number_of_candidates_is_k_as_in_python(
    lonely: tuple[Path, Path], capsys: pytest.CaptureFixture, fails: Callable[..., str]
) -> None:
    """`--top`, the older name, means the same; a number that there is not is one line."""
    given = ("fill-mask", "--model", str(lonely[1]), "--text", "ba [MASK]")
    for k in ("--k", "--top"):
        assert main([*given, k, "3"]) == 0
        assert capsys.readouterr().out.splitlines()[1].count("·") == 2
        for wrong in (0, 41):
            assert f"k is {wrong}; it takes 1 to " in fails(*given, k, wrong)


def test_two_processes_do_not_write_one_directory(data: Path, tmp_path: Path) -> None:
    with locked(tmp_path / "run", ""), pytest.raises(UserError, match="another process is writing here"):
        pretrain(recipe(data), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_line_of_the_metrics_is_named(lonely: tuple[Path, Path], tmp_path: Path, fails: Callable[..., str]) -> None:
    """A power cut can leave zeros; an unfinished last line is no damage."""
    shutil.copytree(lonely[1], tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write("\0\0\0\n")
    assert "metrics.jsonl:2: is not a row of numbers" in fails("report", "--workdir", tmp_path / "run")


def test_a_process_that_sees_another_folder_is_told_so(tmp_path: Path) -> None:
    """A mark of an earlier start, which was killed, is none of this one's."""
    (tmp_path / ".processes").write_text("another word")
    second = (mock.patch.object(jax, "process_count", lambda: 2), mock.patch.object(jax, "process_index", lambda: 1))
    word = mock.patch.object(barriers, "from_primary", lambda name, make: "the word")
    with (
        second[0],
        second[1],
        word,
        mock.patch.object(refusals, "VISIBLE_WITHIN", 0),
        pytest.raises(UserError, match="process 1 does not see"),
    ):
        refusals.refuse_other_folder(tmp_path)
