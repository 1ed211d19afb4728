"""What is not opened: a checkpoint of which any byte is another, and whatever a config.json names."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc import rng
from jaxenc.checkpoint import arrays, restore, verify
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli import recipe as cli
from jaxenc.config import flatten, to_dict
from jaxenc.convert import hf
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.inference import load
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run, from_dict
from jaxenc.training.state import layout
from tests import tiny
from tests.convert import folders
from tests.safety.damage import Edits, bounded, byte_edits, damaged, dumped, fuzzed


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only step of a run, which everything in STARTS takes as it is."""
    root = tmp_path_factory.mktemp("closed")
    tokenizer = wordpiece.train(["the quick brown fox jumps over the lazy dog"] * 3, 60)
    tokenizer.save(root / "tokenizer")
    run = Run(model=BertConfig(width=8, layers=1, heads=1, feed_forward=8, positions=12)).with_vocabulary(tokenizer.vocabulary)
    files = {"config.json": dumped(to_dict(run)), "tokenizer": root / "tokenizer"}
    where = tiny.mesh("dp", 1)
    with jax.set_mesh(where), Manager(root / "checkpoints", CheckpointConfig()) as manager:
        place = layout(objective_of(run, tokenizer), run.optim, 8, where, "dp")
        manager.save(7, place.create(rng.init_key(0)), files)
    for start in STARTS:
        start(root / "none", str(root / "checkpoints" / "7"))
    return root / "checkpoints" / "7"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that Orbax was asked to open."""
    found: list[Path] = []
    for name in ("stored", "read"):
        monkeypatch.setattr(arrays, name, lambda directory, *rest: found.append(directory) or {"params/x": ((), "")})
    return found


# `jaxenc.load` and the commands with --model, --continue-from and --init-from: (an empty run directory, the step) -> what they take.
STARTS: tuple[Callable[[Path, str], object], ...] = (
    lambda empty, step: load.load(step),
    lambda empty, step: load.load(Path(step).parent.parent),
    lambda empty, step: load.load(Path(step).parent.parent, step=int(Path(step).name)),
    lambda empty, step: restore.choose(empty, step, "", True),
    lambda empty, step: restore.choose(empty, "", step, True),
)


def assert_refused(step: Path, opened: list[Path]) -> None:
    for start in STARTS:
        with bounded(), pytest.raises(UserError, match="name another step|holds no valid checkpoint"):
            start(step.parent / "none", str(step))
    with bounded(), pytest.raises(UserError, match=f"no checkpoint of this run is whole .set aside: {step.name}.bad-1."):
        restore.choose(step.parent, "", "", True)
    (step.parent / f"{step.name}.bad-1").rename(step)
    assert not opened


def files(step: Path) -> list[Path]:
    return sorted(path for path in step.rglob("*") if path.is_file())


def test_one_bit_of_any_file_of_a_checkpoint(step: Path, opened: list[Path]) -> None:
    names = {path.relative_to(step).as_posix() for path in files(step)}
    assert {"config.json", verify.CHECKSUMS, "state/_METADATA", "state/manifest.ocdbt"} < names and any("/d/" in name for name in names)
    for path in files(step):
        whole = path.read_bytes()
        for at in {0, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert_refused(step, opened)
        path.write_bytes(whole)
        path.rename(step.parent / "away")
        assert_refused(step, opened)
        (step.parent / "away").rename(path)
    added = step / "state" / "added"
    added.write_bytes(b"")
    assert_refused(step, opened)
    added.unlink()
    assert verify.verify(step) == []


@fuzzed(250)
@given(number=st.integers(0, 1 << 10), edits=byte_edits())
def test_any_change_of_any_file_of_a_checkpoint(step: Path, opened: list[Path], number: int, edits: Edits) -> None:
    path = files(step)[number % len(files(step))]
    whole = path.read_bytes()
    changed = damaged(whole, edits)
    path.write_bytes(changed)
    try:
        if changed != whole and not (path.name == verify.CHECKSUMS and _equal(whole, changed)):
            assert_refused(step, opened)
    finally:
        path.write_bytes(whole)


def _equal(one: bytes, other: bytes) -> bool:
    """Whether two texts are one JSON value, written differently."""
    try:
        return json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        return False


NAMED = ("poisoned", "poisoned.py", "poisoned:get_config", "../poisoned", "/poisoned", "jaxenc.poisoned", "poisoned/config.json")
TEXTS = [path for path, value in flatten(to_dict(Run())) if isinstance(value, str)]
touched: list[str] = []
watching: list[bool] = []


def _touch(event: str, arguments: tuple) -> None:
    """What the interpreter tells of files that are opened and listed, modules that are imported, code that is run."""
    if watching and any("poisoned" in os.fsdecode(item) for item in arguments if isinstance(item, str | bytes | os.PathLike)):
        touched.append(f"{event}: {arguments}")


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    """There is no taking it away again."""
    sys.addaudithook(_touch)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What of the names is touched; each of them is there to be found: `poisoned` is a module, beside it a file."""
    (tmp_path / "poisoned.py").write_text("def get_config(): raise AssertionError('run')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    touched.clear()
    watching.append(True)
    yield touched
    watching.clear()


def with_text(data: dict[str, Any], path: str, text: str) -> dict[str, Any]:
    """A copy of a config with another text in one of its fields."""
    data = json.loads(json.dumps(data))
    *above, last = path.split(".")
    holder = data
    for name in above:
        holder = holder[name]
    holder[last] = text
    return data


@pytest.mark.parametrize("field", TEXTS)
def test_what_a_config_names_is_not_touched(tmp_path: Path, watched: list[str], field: str) -> None:
    for text in NAMED:
        changed = with_text(to_dict(Run()), field, text)
        (tmp_path / "config.json").write_bytes(dumped(changed))
        with contextlib.suppress(UserError):
            from_dict(changed)
        with contextlib.suppress(UserError):
            cli.resolve(str(tmp_path / "config.json"), [])
    assert not watched


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with a small model."""
    root = tmp_path_factory.mktemp("converted")
    theirs = folders.write(root / "theirs", folders.tensors("BertForMaskedLM"), folders.config("BertForMaskedLM"))
    hf.load(theirs).save(root / "ours")
    return root / "ours" / "checkpoints" / "0"


@pytest.mark.parametrize("field", ["vocab_size", "layers", "width", "feed_forward", "positions"])
@pytest.mark.parametrize("number, told", [(2**30, "1,073,741,824 and it holds"), (10**18, f"is {10**18}; it is at most")])
def test_a_model_larger_than_its_checkpoint(converted: Path, field: str, number: int, told: str) -> None:
    """It is told before there is a list of as many layers, or a table of as many words."""
    before = (converted / "config.json").read_bytes()
    data = json.loads(before)
    (converted / "config.json").write_bytes(dumped({**data, "model": {**data["model"], field: number}}))
    verify.write_checksums(converted, 0)
    try:
        with bounded(), pytest.raises(UserError, match=rf"model\.{field} {told}"):
            load.load(converted)
    finally:
        (converted / "config.json").write_bytes(before)
        verify.write_checksums(converted, 0)


@pytest.mark.parametrize("field", TEXTS)
def test_what_a_checkpoint_names_is_not_touched(converted: Path, watched: list[str], field: str) -> None:
    """With checksums that fit, as a forger would write them."""
    before = (converted / "config.json").read_bytes()
    try:
        for text in NAMED[:: 1 if field == "data.path" else 3]:
            (converted / "config.json").write_bytes(dumped(with_text(json.loads(before), field, text)))
            verify.write_checksums(converted, 0)
            with contextlib.suppress(UserError):
                load.load(converted)
    finally:
        (converted / "config.json").write_bytes(before)
    assert not watched
