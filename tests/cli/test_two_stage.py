"""ELECTRA in two stages (Clark et al. 2020, section 3.2): a generator alone, then a discriminator that starts from it and trains on its
samples while it stays as it is. One device, a nano pair."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jaxenc
from jaxenc import tree
from jaxenc.cli.main import main
from jaxenc.data.build import build
from tests import tiny

pytestmark = pytest.mark.usefixtures("one_device")

SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "embedding": 8, "positions": 24}
ROOM = {f"generator_{name}": SIZES[name] for name in ("width", "layers", "heads", "feed_forward")}
FROZEN = ["generator/.*", "mlm/.*"]
MAP = ("--init-map", "discriminator=generator", "--init-map", "generator/embeddings=embeddings")


def recipe(text: Path, file: Path, objective: dict, optim: dict, **model: object) -> Path:
    """A config.json of two steps of eight rows; the first has the rate 0, so step 1 holds what the run began with."""
    parts = {
        "objective": objective,
        "model": {"kind": "electra", **SIZES, **ROOM, **model},
        "data": {"path": str(text), "length": 24},
        "train": {"steps": 2, "batch": 8, "precision": "float32"},
        "optim": {"lr": 0.01, "warmup": 1, **optim},
        "checkpoint": {"every": 1, "keep": 9},
        "log": {"every": 1, "tensorboard": False},
    }
    file.write_text(json.dumps(parts))
    return file


@pytest.fixture(scope="module")
def text(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same text with nothing held out, so that no evaluation is compiled."""
    out, source = tmp_path_factory.mktemp("text") / "data", data.parent
    build([str(source / "text.txt")], source / "tokenizer", out, held_out=0.0)
    return out


@pytest.fixture(scope="module")
def first(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the generator alone."""
    folder = tmp_path_factory.mktemp("first")
    file = recipe(text, folder / "recipe.json", {"kind": "mlm"}, {})
    assert main(["pretrain", "--config", str(file), "--workdir", str(folder / "run")]) == 0
    return folder / "run"


def second(text: Path, folder: Path, **model: object) -> list[str]:
    """The command of the second stage without where it starts from."""
    file = recipe(text, folder / "recipe.json", {"kind": "rtd", "mlm_coef": 0.0}, {"freeze": FROZEN}, sharing="none", **model)
    return ["pretrain", "--config", str(file), "--workdir", str(folder / "run")]


def test_the_discriminator_starts_from_the_generator_which_stays(
    text: Path, first: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Bitwise, both. The discriminator and its tables move then. The run goes on without the map."""
    command, start = second(text, tmp_path), first / "checkpoints" / "2"
    assert main([*command, "--init-from", str(first), *MAP]) == 0
    said = capsys.readouterr().err
    assert f"discriminator starts as generator of {start}\n" in said and "rtd starts fresh" in said and "mlm starts fresh" not in said
    given, after = jaxenc.load(first).params, jaxenc.load(tmp_path / "run").params
    assert set(given) == {"embeddings", "generator", "mlm"} and set(after) == {*given, "discriminator", "rtd"}
    tables = {**after["generator"]}
    tiny.assert_bitwise(tables.pop("embeddings"), given["embeddings"])
    tiny.assert_bitwise([tables, after["mlm"]], [given["generator"], given["mlm"]])
    began = jaxenc.load(tmp_path / "run", step=1).params
    tiny.assert_bitwise([began["discriminator"], began["embeddings"]], [given["generator"], given["embeddings"]])
    for path, leaf in tree.leaves({name: after[name] for name in ("discriminator", "embeddings", "rtd")}):
        assert np.any(leaf != dict(tree.leaves(began))[path]), path
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(abs(row["loss"] - 50 * row["rtd_loss"]) <= 1e-4 and row["mlm_loss"] > 0 for row in rows)
    assert main(command) == 0 and "finished at step 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, model, words",
    [
        (MAP, {}, "--init-map: it needs a run whose parameters it names; name that run with --init-from"),
        (("--init-map", "generator"), {}, "--init-map generator: not NEW=OLD; write both"),
        (("--init-map", "a=b", "--init-map", "a=c"), {}, "--init-map: a is given twice"),
        (("FROM", "--init-map", "discriminatr=generator"), {}, "this run has no parameter under discriminatr; name one of discriminator, "),
        (("FROM", "--init-map", "rtd=copy"), {}, "has no parameter under copy; name one of embeddings, generator, mlm"),
        (
            ("FROM", *MAP),
            {"feed_forward": 40},
            "discriminator/encoder/layer_00/feed_forward/up/kernel (there generator/encoder/layer_00/feed_forward/up/kernel) is "
            "float32[16, 32] in the checkpoint, float32[16, 40] in this run",
        ),
        (("FROM", *MAP[:2]), {}, "generator/embeddings/token/table is not in the checkpoint"),
    ],
)
def test_a_map_that_does_not_fit_is_one_line_and_leaves_nothing(
    flags: tuple[str, ...], model: dict, words: str, text: Path, first: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    flags = ("--init-from", str(first), *flags[1:]) if flags[0] == "FROM" else flags
    assert words in fails(*second(text, tmp_path, **model), *flags)
    assert not (tmp_path / "run").exists()
