"""`jaxenc compile`: cards for which CPU devices stand in, and with libtpu a slice of TPUs."""

import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from jaxenc.processes import deviceless
from jaxenc.sharding import chips, topology
from tests.cli.test_inspect_memory import given

TPU = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason='libtpu is not installed: pip install "jax[tpu]"')


@pytest.fixture(autouse=True)
def no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU devices in the place of GPUs, also where jax's CUDA plugin is installed."""
    plain = importlib.util.find_spec
    monkeypatch.setattr(topology, "find_spec", lambda name: None if name.startswith("jax_plugins") else plain(name))


def test_the_forecast_is_printed_and_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of a nano BERT on eight cards: parts of the memory that add up, the card's room, as many FLOPs as the model has (<= 0.1 %: nothing is
    computed twice), one sum of the gradients, and the same in the file."""
    out = tmp_path / "out.json"
    command = ["compile", "--config", "bert/tiny", "--topology", "h100:8", *given("train.batch=64"), "--out", str(out)]
    assert main(command) == 0
    said, err = capsys.readouterr()
    assert err.startswith("compiling the step of phase 1: 64 rows of 24 tokens for 8 x NVIDIA H100 80GB HBM3 (half a minute")
    assert "compiled for CPU devices in place of GPUs" in said and "What does not: activations" in said
    *parts, total, room = (float(one.replace(",", "")) for one in re.findall(r"[a-z] ([\d,]+\.\d)", said.split("MB: ")[1].split("\n")[0]))
    assert room == 80_000 and abs(sum(parts) - total) <= 0.05 * (len(parts) + 1)
    assert "fits in 80,000.0 MB" in said and "attention: xla" in said and "not a measurement" in said
    held = json.loads(out.read_text())
    [phase] = held["phases"]
    assert (held["kind"], held["devices"], held["simulated"], phase["batch"]) == ("NVIDIA H100 80GB HBM3", 8, True, 64)
    assert phase["flops"] == pytest.approx(phase["model_flops"], rel=1e-3)
    assert {one["kind"] for one in phase["collectives"]} == {"all-reduce"}
    assert sum(one["bytes"] for one in phase["collectives"]) >= phase["memory"]["gradients"]
    assert phase["bound_s"]["step"] == max(value for name, value in phase["bound_s"].items() if name != "step")


def test_the_environment_is_set_before_jax_starts(fails: Callable[..., str]) -> None:
    fails("compile", "--config", "bert/tiny", "--topology", "v9:2x2")
    assert deviceless.SETTINGS.items() <= os.environ.items() and os.environ["JAX_PLATFORMS"] == "cpu"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--topology v9:2x2", "no such accelerator; known are v4, v5e"),
        ("--topology v5e:16x16 --config.train.batch=100", "100 rows cannot be split over 256 devices"),
        ("--topology v5e:2x2 --config.mesh.preset=fsdp --config.mesh.fsdp=3", "mesh.fsdp is 3, which does not divide the 4 devices"),
        ("--topology h100:8 --slices 2", "GPUs have no slices"),
        ("--topology h100:8 --phase 2", "--phase 2: the run has 1 phases; name one of them"),
        ("--topology h100:8 --out nowhere/x.json", "nowhere: no such folder"),
        ("--topology h100:8 --config.train.attention=nope", "train.attention is 'nope'"),
    ],
)
def test_what_is_refused_before_anything_compiles(arguments: str, words: str, fails: Callable[..., str]) -> None:
    assert words in fails("compile", "--config", "bert/tiny", *arguments.split())


def test_a_step_that_does_not_fit_comes_with_advice(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a card of 1 MB: said, with what to change; and no batch is the largest."""
    monkeypatch.setitem(chips.CHIPS, "NVIDIA H100 80GB HBM3", chips.Chip(1e12, 1e6, 1e12, 1e12, 1e12))
    command = ["compile", "--config", "bert/tiny", "--topology", "h100:2", "--largest-batch", *given("train.batch=4")]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "does not fit in 1.0 MB: the state and the gradients alone do not: set mesh.preset=fsdp" in said
    assert "no batch fits: with 2 rows a step takes" in said


@pytest.mark.full
@TPU
@pytest.mark.parametrize("preset, kinds", [("dp", {"all-reduce"}), ("fsdp", {"all-reduce", "all-gather", "reduce-scatter"})])
def test_each_preset_has_its_collectives_on_a_slice_of_tpus(preset: str, kinds: set[str], tmp_path: Path) -> None:
    """bert/tiny: data parallel, nothing but all-reduces; the FLOPs of the model; 15.75 GiB of room."""
    out = tmp_path / "out.json"
    asked = ["--config.train.batch=64", f"--config.mesh.preset={preset}"]
    assert main(["compile", "--config", "bert/tiny", "--topology", "v5e:2x2", *asked, "--out", str(out)]) == 0
    held = json.loads(out.read_text())
    [phase] = held["phases"]
    assert {one["kind"] for one in phase["collectives"]} <= kinds and phase["fits"] and phase["attention"] == "xla"
    assert phase["flops"] == pytest.approx(phase["model_flops"], rel=1e-3) and phase["memory"]["room"] == 15.75 * 2**30


@pytest.mark.full
@TPU
def test_a_step_that_libtpu_finds_too_large(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--config.train.batch=400000", "--config.train.scan=true"]
    assert main(["compile", "--config", "bert/tiny", "--topology", "v5e:2x2", *asked]) == 0
    said = capsys.readouterr().out
    assert "does not fit in 16,911.4 MB: set train.microbatches=2 or more" in said and "the compiler: " in said
