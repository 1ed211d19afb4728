"""R33: what a folder is, and which folders a run may write to."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import jaxenc
from jaxenc.config import to_dict
from jaxenc.data.build import build
from jaxenc.data.folders import described, must_be_new, must_be_new_file, must_hold_a_run, must_hold_only
from jaxenc.errors import UserError
from jaxenc.training.run import Run

CONFIG = json.dumps(to_dict(Run()))


def fill(folder: Path, files: dict[str, str]) -> Path:
    """`folder` with these files; a name that ends in / is an empty folder."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        if name.endswith("/"):
            (folder / name).mkdir(parents=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {},
        {".DS_Store": "", "._x": "", ".nfs0001": "", "lost+found/": "", "slurm-7.out": "", "train.log": ""},
        {".processes": "word"},
        {".config.json.77": "half"},
        {"config.json": CONFIG},
        {"config.json": CONFIG, "manifest.json": "{}"},
        {"config.json": CONFIG, "manifest.json": "{}", "notes.txt": "mine", "tokenizer/vocab.txt": ""},
        {"config.json": "{", "manifest.json": "{}", "checkpoints/5/CHECKSUMS.json": "{}"},
        {"checkpoints/.5.tmp-save/": "", "metrics.jsonl": ""},
        {"checkpoints/5.bad-1/": ""},
        {"checkpoints/": ""},
        {"tensorboard/events": ""},
    ],
    ids=lambda files: " ".join(files) or "empty",
)
def test_r33_a_run_is_one_however_early_it_was_killed(tmp_path: Path, files: dict[str, str]) -> None:
    must_hold_a_run(fill(tmp_path / "run", files), "--workdir")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    must_hold_a_run(tmp_path / "link", "--workdir")
    must_hold_a_run(tmp_path / "run" / "new" / "newer", "--workdir")


@pytest.mark.parametrize(
    "files, what",
    [
        ({"manifest.json": "{}", "train-00000.tokens": "", "tokenizer/vocab.txt": ""}, "a data folder"),
        ({"tokenizer.json": "{}"}, "a tokenizer folder"),
        ({"config.json": '{"model_type": "bert"}', "model.safetensors": ""}, "a model of transformers"),
        ({"config.json": '{"model_type": "bert"}', "vocab.txt": ""}, "a tokenizer folder"),
        ({"elmo_options.json": "{}", "elmo_weights.hdf5": ""}, "a model of AllenNLP"),
        ({"config.json": CONFIG, "CHECKSUMS.json": "{}", "state/x": ""}, "one checkpoint of a run"),
        ({"5/CHECKSUMS.json": "{}", "7/CHECKSUMS.json": "{}"}, "the checkpoints of a run"),
        ({"thesis.tex": "mine"}, "a folder with thesis.tex"),
        ({"config.json": '{"port": 80}'}, "a folder with config.json"),
        ({"manifest.json": "{}"}, "a folder with manifest.json"),
        ({"metrics.jsonl": "{}"}, "a folder with metrics.jsonl"),
        ({"1/config.json": CONFIG, "2/config.json": CONFIG}, "a folder with 1, 2"),
        ({".git/HEAD": "ref: refs/heads/main"}, "a folder with .git"),
        ({"checkpoints/5/CHECKSUMS.json": "{}", "checkpoints/best.pt": ""}, "a folder with checkpoints"),
        ({"checkpoints/epoch=1.ckpt": ""}, "a folder with checkpoints"),
        ({name: "" for name in "abcde"}, "a folder with a, b, c and 2 more"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_r33_what_is_no_run_is_named_and_refused(tmp_path: Path, files: dict[str, str], what: str) -> None:
    folder = fill(tmp_path / "there", files)
    assert described(folder) == what
    checks: tuple[Callable[[], None], ...] = (
        lambda: must_hold_a_run(folder, "--workdir"),
        lambda: must_be_new(folder, "--workdir"),
        lambda: must_hold_only(folder, ("tokenizer", "data", "run"), "--workdir"),
    )
    for check in checks:
        with pytest.raises(UserError, match=f"{folder}: exists already, {what}(, and is not a run directory)?; choose another --workdir$"):
            check()


def test_r33_an_empty_folder_is_named_where_a_file_is_to_be(tmp_path: Path) -> None:
    (tmp_path / "p.npz").mkdir()
    with pytest.raises(UserError, match="p.npz: exists already, an empty folder; choose another --predictions$"):
        must_be_new_file(tmp_path / "p.npz", "--predictions")


def test_a_file_for_what_is_not_printed_is_not_called_as_standard_output_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="^--predictions -: standard output is not what it writes to; name a file$"):
        must_be_new_file(Path("-"), "--predictions")


def test_r33_a_file_and_a_link_to_nothing_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, what in (("file", "a file"), ("link", "a link to nothing")):
        with pytest.raises(UserError, match=f"{tmp_path / name}: exists already, {what}, and is not a run directory; "):
            must_hold_a_run(tmp_path / name, "--workdir")
    with pytest.raises(UserError, match=f"{tmp_path / 'file'}: a file and not a folder"):
        must_hold_a_run(tmp_path / "file" / "run", "--workdir")


def test_r33_a_link_to_itself_and_a_run_below_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for check in (must_hold_a_run, must_be_new):
        with pytest.raises(UserError, match=f"^{tmp_path / 'loop'}: .*; choose another --out$"):
            check(tmp_path / "loop", "--out")


def test_r33_an_empty_name_is_refused_in_python_too(tmp_path: Path) -> None:
    """It would be the current folder."""
    (tmp_path / "a.txt").write_text("a text")
    for call, what in (
        (lambda: jaxenc.load(""), "the model"),
        (lambda: build([str(tmp_path / "a.txt")], "", tmp_path / "data"), "--tokenizer"),
        (lambda: build([str(tmp_path / "a.txt")], tmp_path, ""), "--out"),
    ):
        with pytest.raises(UserError, match=f"^{what}: empty; name a folder$"):
            call()


def test_r33_nothing_is_written_among_the_checkpoints_of_a_run(tmp_path: Path) -> None:
    """Through a link too; folders that are numbered, such as runs, are no checkpoints."""
    steps = fill(tmp_path / "run", {"config.json": CONFIG, "checkpoints/5/CHECKSUMS.json": "{}"}) / "checkpoints"
    (tmp_path / "link").symlink_to(steps)
    for place in (steps / "new", steps / "5" / "new", tmp_path / "link" / "6"):
        for check in (must_hold_a_run, must_be_new):
            with pytest.raises(UserError, match="inside .*/run/checkpoints.*, the checkpoints of a run; choose another --out"):
                check(place, "--out")
    fill(tmp_path / "sweep" / "1", {"config.json": CONFIG})
    must_hold_a_run(tmp_path / "sweep" / "2", "--workdir")
