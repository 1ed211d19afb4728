"""Runs whose steps have rows of several lengths: the loss is that of padded rows, and a run that stops and goes on is the whole run."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxenc
from jaxenc import rng
from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training import attention, evaluate, loop, prepare
from jaxenc.training.phases import Phase, Phases
from jaxenc.training.position import refuse_other_rows
from jaxenc.training.pretrain import pretrain
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from jaxenc.tree import Tree
from tests import tiny
from tests.training.conftest import make_data
from tests.training.stepping import stepping
from tests.training.test_loop import assert_same_run, recipe, rows, run_until
from tests.training.test_position import changed

LENGTHS = (12, 18, 24)


def bucketed(folder: Path, **parts: dict[str, Any]) -> Run:
    """The nano BERT of the other whole runs, on rows of three lengths."""
    run = dataclasses.replace(recipe(folder), data=DataConfig(str(folder), 24, "bucketed", lengths=LENGTHS))
    return changed(run, **{"eval": {"every": 0}, **parts})


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 20 steps on one device that nothing stopped."""
    workdir = tmp_path_factory.mktemp("bucketed") / "run"
    with tiny.on_one_device():
        assert pretrain(bucketed(data), workdir).step == 20
    return workdir


@pytest.mark.parametrize(
    "config, model",
    [pytest.param(MlmConfig(), tiny.MODEL, id="mlm"), pytest.param(RtdConfig(), tiny.PAIR, id="rtd", marks=pytest.mark.full)],
)
def test_the_loss_of_a_bucketed_batch_is_that_of_the_rows_padded_to_the_longest(config: ObjectiveConfig, model: Any) -> None:
    """Loss and gradient <= 1e-5, with the masks of the short rows; without dropout, whose noise depends on the place in the batch."""
    model = dataclasses.replace(model, layers=1, dropout=0.0, attention_dropout=0.0)
    short, long = (tiny.objective(config, model, length) for length in (12, tiny.LENGTH))
    batch = tiny.reads(tiny.batch((12, 3, 7, 10, 12, 5, 9, 11), 12), short)
    keys = rng.training(0, jnp.int32(4), 8)
    example = jax.device_get(jax.vmap(short.corrupt, (0, 0, None))(keys.per_row("corrupt", "mask"), batch, keys.step))
    shapes = jax.eval_shape(lambda key, one: long.corrupt(key, one, 0), keys.base, {name: padded(a[0], 48) for name, a in batch.items()})
    wide = {name: np.stack([padded(one, *shapes[name].shape) for one in array]) for name, array in example.items()}
    assert wide["tokens"].shape == (8, 48) and wide["masked_at"].shape[1] > example["masked_at"].shape[1]
    params = tiny.filled(parameters(short)[0], short, 200)

    def loss_of(objective: Any, example: Any) -> Any:
        def loss(params: Tree) -> Any:
            terms = objective.terms(params, {}, example, keys, train=True)[0]
            weights = jax.tree.map(jnp.sum, jax.vmap(objective.weights)(example))
            return sum(objective.coef[name] * terms[name] / weights[name] for name in terms)

        return jax.device_get(jax.jit(jax.value_and_grad(loss))(params))

    (loss, gradient), (expected, of_padded) = loss_of(short, example), loss_of(long, wide)
    assert abs(loss - expected) <= 1e-5 * expected
    tiny.assert_close(gradient, of_padded, 1e-5)


def padded(row: np.ndarray, *shape: int) -> np.ndarray:
    """One leaf of an example, with zeros up to `shape`."""
    return np.pad(row, [(0, shape[0] - row.shape[0])]) if row.ndim else row


def lengths_of(run: Run, workdir: Path, steps: int) -> list[int]:
    job = prepare.prepare(run, workdir)
    batches = job.batches("train", run.plan[0], run.train.batch)
    return [batches.batch_at(step)["tokens"].shape[1] for step in range(steps)]


@pytest.mark.usefixtures("one_device")
def test_a_resume_within_an_epoch_is_the_whole_run(
    data: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit; every length is trained on before and after the stop. Each compiles its step when it first comes, with as many
    predictions as the objective chooses for it, and so does an evaluation."""
    run, compiled = bucketed(data), {}
    for module, name in ((loop, "compile_step"), (evaluate, "compile_evaluation")):
        make, seen = getattr(module, name), compiled.setdefault(name, [])
        record = lambda objective, *rest, make=make, seen=seen: seen.append(objective.masking.predictions) or make(objective, *rest)
        monkeypatch.setattr(module, name, record)
    lengths = lengths_of(run, whole, 20)
    assert set(lengths[:7]) == set(lengths[7:]) == set(LENGTHS)
    assert run_until(7, run, tmp_path / "run") == 7
    said = [line for line in capsys.readouterr().err.splitlines() if "compiling" in line]
    rows = lambda length: "rows of 24 tokens" if length == 24 else f"rows of up to 24 tokens, here {length}"
    assert said == [f"compiling the step: 8 {rows(length)}" for length in dict.fromkeys(lengths[:7])]
    assert compiled == {"compile_step": [4, 3, 2], "compile_evaluation": []}
    assert pretrain(run, tmp_path / "run").step == 20
    assert sorted(compiled["compile_step"][3:]) == compiled["compile_evaluation"] == [2, 3, 4]
    assert_same_run(run, tmp_path / "run", whole, 20)
    assert json.loads((whole / attention.RECORD).read_text())["rows"] == dict.fromkeys(("12", "18", "24"), "xla")


@pytest.mark.full
def test_eight_devices_go_on_where_one_stopped(data: Path, whole: Path, tmp_path: Path) -> None:
    """In two microbatches and with split parameters, for three steps of two lengths: losses <= 1e-5, and the same rows."""
    with tiny.on_one_device():
        assert run_until(7, bucketed(data), tmp_path / "run") == 7
    run = bucketed(data, train={"microbatches": 2}, mesh={"preset": "fsdp_tp"})
    assert len(set(lengths_of(run, whole, 10)[7:])) == 2
    assert run_until(10, run, tmp_path / "run") == 10
    losses = [[row["loss"] for row in rows(workdir)[:10]] for workdir in (tmp_path / "run", whole)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert (whole / "examples.log").read_text().startswith((tmp_path / "run" / "examples.log").read_text())


@pytest.mark.usefixtures("one_device")
def test_an_evaluation_counts_each_held_out_row_once(data: Path, whole: Path) -> None:
    """Its predictions by hand: 15 % of each text with its specials, at least one, of which its words alone are candidates. Batches of
    another size change no number by more than 1e-6."""
    run = bucketed(data)
    batches = prepare.prepare(run, whole).batches("held_out", run.plan[0], 16)
    sizes = np.concatenate([batches.batch_at(step)["segments"].sum(1) for step in range(len(batches))])
    sizes = sizes[sizes > 0]
    one, other = (jaxenc.evaluate(whole, batch=size).numbers for size in (16, 5))
    assert one["mlm_predictions"] == sum(min(int(n) - 2, max(1, round(int(n) * 0.15))) for n in sizes)
    assert one == {name: value for name, value in rows(whole)[-1].items() if name in one}
    assert all(abs(other[name] - one[name]) <= 1e-6 * abs(one[name]) for name in one)


def test_a_phase_of_shorter_rows_leaves_out_the_longer_lengths(data: Path) -> None:
    """Rows of at most 18, then of all lengths; the limit of predictions falls with the length, rounded up."""
    phases = {"steps": (4, 4), "length": (18, 24), "max_predictions": (5, 0)}
    run = bucketed(data, phases=phases)
    found = [[(one.length, one.max_predictions, one.batch) for one in run.in_lengths(phase)] for phase in run.plan]
    assert found == [[(12, 4, 8), (18, 5, 8)], [(12, 0, 8), (18, 0, 8), (24, 0, 8)]]
    job = prepare.prepare(run, Path("nowhere"))
    predictions = [[job.objective(one).masking.predictions for one in run.in_lengths(phase)] for phase in run.plan]
    assert predictions == [[4, 5], [2, 3, 4]] and sorted(job.attention.backends) == [12, 18, 24]
    assert [one.length for one in Run().in_lengths(Run().plan[0])] == [128]


@pytest.mark.parametrize(
    "parts, said",
    [
        ({"train": {"steps": 40}}, ""),
        ({"phases": {"steps": (7, 13), "length": (24, 18)}}, ""),  # a phase that begins there
        ({"data": {"lengths": (18, 24)}}, "checkpoint data.lengths [12, 18, 24], this run's [18, 24]"),
        ({"data": {"rows": "text"}}, "checkpoint data.rows bucketed, this run's text"),
        ({"train": {"steps": 40, "batch": 16}}, "checkpoint train.batch 8, this run's 16"),
    ],
)
def test_a_run_continues_with_the_same_lengths(parts: dict[str, Any], said: str, data: Path) -> None:
    saved, run = bucketed(data), bucketed(data, **parts)
    if said:
        with pytest.raises(UserError) as error:
            refuse_other_rows(saved, "a", run, "a", 7)
        assert said in str(error.value)
    else:
        refuse_other_rows(saved, "a", run, "a", 7)


def test_lengths_that_another_run_never_had_do_not_matter_in_its_first_phase(data: Path) -> None:
    """A run of short rows goes on as the first phase of one with long rows: its rows are the same."""
    saved = changed(bucketed(data), data={"length": 18, "lengths": (12, 18)})
    refuse_other_rows(saved, "a", bucketed(data, phases={"steps": (20, 5), "length": (18, 24)}), "a", 7)


@pytest.mark.slow
def test_a_run_that_continues_reads_on(data: Path, tmp_path: Path) -> None:
    """Its rows are those that one run would have read."""
    with stepping():
        assert pretrain(bucketed(data, train={"steps": 30}), tmp_path / "whole").step == 30
        assert pretrain(bucketed(data), tmp_path / "first").step == 20
        longer = bucketed(data, train={"steps": 30})
        assert pretrain(longer, tmp_path / "second", continue_from=str(tmp_path / "first")).step == 30
    read = lambda name: (tmp_path / name / "examples.log").read_text()
    assert read("first") + read("second") == read("whole")


@pytest.mark.parametrize(
    "config, given, said",
    [
        ("bert/tiny", ["--config.objective.kind=mlm_nsp"], "is_random, which data.rows=bucketed lacks; set data.rows to pairs"),
        ("albert/tiny", ["--config.objective.kind=mlm_sop"], "which data.rows=bucketed lacks; set data.rows to swapped_pairs"),
        ("xlnet/tiny", [], "direction, fresh, which data.rows=bucketed lacks; set data.rows to streams"),
        ("elmo/tiny", [], "data.rows=bucketed lacks; set data.rows to sentences"),
        ("bert/tiny", ["--config.data.length=48"], "data.lengths: lacks 48, the length of the longest rows"),
    ],
)
def test_what_does_not_fit_is_one_line(config: str, given: list[str], said: str, data: Path, tmp_path: Path, capsys: Any) -> None:
    """Objectives of pairs, of streams and with a memory, and lengths that are not those of the recipe."""
    data = make_data(tmp_path / "unigram", 1, "unigram") if config == "xlnet/tiny" else data
    rows_of = ["--config.data.rows=bucketed", "--config.data.length=32", "--config.data.lengths=16,32", "--config.train.steps=1"]
    assert main(["pretrain", "--config", config, *rows_of, f"--config.data.path={data}", *given, "--workdir", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert said in err.splitlines()[-1] and "Traceback" not in err and not (tmp_path / "run").exists()


def test_lengths_that_no_phase_has_are_refused(data: Path) -> None:
    """So that no text is cut shorter than the lengths say."""
    with pytest.raises(UserError, match="data.lengths: no row has 24 tokens; leave out what is beyond 18, or lengthen the rows"):
        _ = bucketed(data, data={"length": 18}).plan
    phases = {"steps": (1, 1), "length": (20, 24)}
    with pytest.raises(UserError, match="data.lengths: lacks 20, the length of the longest rows; set it to the lengths .* phases.length"):
        _ = bucketed(data, phases=phases).plan
    # The advice works: with the lengths of both phases the run has them.
    lengths = (*(one for one in bucketed(data).data.lengths if one < 20), 20, 24)
    assert [one.length for one in bucketed(data, data={"lengths": lengths, "length": 24}, phases=phases).plan] == [20, 24]


def test_lengths_of_other_rows_have_no_effect_and_say_so() -> None:
    assert Run(data=DataConfig(lengths=(8, 128))).unused["data.lengths"] == "data.rows=text does not read it"
    assert "data.lengths" not in Run(data=DataConfig(rows="bucketed", lengths=(8, 128))).unused


def test_a_phase_of_another_length_is_the_phase_otherwise() -> None:
    phase = Phase(3, 4, 512, 8, 77, 1e-3, 1, 3, 4)
    assert phase.of_length(64) == dataclasses.replace(phase, length=64, max_predictions=10) and phase.of_length(512) == phase
    assert Phases().unused
