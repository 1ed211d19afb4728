"""`jaxenc convert` and `jaxenc export`, and what people get wrong with them."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jaxenc
from jaxenc.checkpoint import restore
from jaxenc.cli.main import main
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from tests.convert import folders

pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of transformers without tokenizer files; a space in its name."""
    architecture = "BertForMaskedLM"
    folder = tmp_path_factory.mktemp("a folder") / "their model"
    return folders.write(folder, folders.tensors(architecture), folders.config(architecture))


@pytest.fixture(scope="module")
def ours(theirs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ours") / "run"
    assert main(["convert", "--from", f"hf:{theirs}/", "--to", f"{out}/"]) == 0
    return out


def test_in_and_out_again(theirs: Path, ours: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["export", "--model", str(ours), "--to", "hf", "--out", str(tmp_path / "back again")]) == 0
    said = capsys.readouterr()
    assert "BertForMaskedLM.from_pretrained(" in said.out
    assert "export: that needs torch and transformers, for a CPU: pip install torch transformers --extra-index-url " in said.err
    wanted, found = (folders.read(folder / "model.safetensors") for folder in (theirs, tmp_path / "back again"))
    assert found.keys() == wanted.keys() and all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


def test_a_converted_model_opens_and_computes(ours: Path) -> None:
    model = jaxenc.load(ours)
    encoded = model.encode(tokens=[[5, 6, 7]])
    assert encoded.hidden.shape == (folders.LAYERS + 1, 1, 3, folders.WIDTH) and np.isfinite(encoded.hidden).all()
    assert {path.name for path in ours.iterdir()} == {"checkpoints", "config.json"}


def test_the_line_that_says_there_is_no_tokenizer(theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for number, asked in enumerate(([], ["--tokenizer", "none"])):
        assert main(["convert", "--from", f"hf:{theirs}", "--to", str(tmp_path / str(number)), *asked]) == 0
        out, err = capsys.readouterr()
        assert "mlm" in out and ("has no tokenizer files" in err) == (not asked)


def test_a_home_directory(theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(theirs.parent))
    assert main(["convert", "--from", f"hf:~/{theirs.name}", "--to", "~/made here"]) == 0
    assert (theirs.parent / "made here" / "config.json").is_file()


SMALL = ("train.batch=8", "train.steps=1", "optim.warmup=0", "log.tensorboard=false")


@pytest.mark.usefixtures("one_device")
@pytest.mark.parametrize(
    "architecture, fresh, spare",
    [
        ("BertModel", ["mlm"], 0),
        pytest.param("BertForPreTraining", [], 20, marks=pytest.mark.full),
        pytest.param("BertForTokenClassification", ["mlm"], 0, marks=pytest.mark.full),
    ],
)
def test_the_next_commands_run_as_they_are_printed(
    architecture: str, fresh: list[str], spare: int, tmp_path: Path, monkeypatch, capsys
) -> None:
    """With files and folders for the words in capitals: a head that the folder has none of starts fresh, all else is taken over. R13: also
    rows without a piece, `spare` of them."""
    monkeypatch.chdir(tmp_path)
    text = "the quick brown fox\njumps over the lazy dog\n\na dog\nand a fox\n" * 4
    Path("text.txt").write_text(text)
    tokenizer = wordpiece.train([text], 60)
    size, of_tokens = tokenizer.vocabulary.size + spare, ("bert.embeddings.word", "embeddings.word", "cls.predictions.bias")
    tensors = {name: a[:size] if name.startswith(of_tokens) else a for name, a in folders.tensors(architecture).items()}
    folder = folders.write(tmp_path / "their model", tensors, folders.config(architecture) | {"vocab_size": size})
    tokenizer.save(folder)
    assert main(["convert", "--from", f"hf:{folder}", "--to", "our model"]) == 0
    for line in capsys.readouterr().out.splitlines()[-2:]:
        argv = shlex.split(line.removeprefix("next:"))
        replaced = {"FILES": "text.txt"}
        more = [f"--config.{item}" for item in SMALL] if argv[1] == "pretrain" else []
        assert argv[0] == "jaxenc" and main([*(replaced.get(item, item) for item in argv[1:]), *more]) == 0
    said = capsys.readouterr().err
    assert [line.split()[0] for line in said.splitlines() if "starts fresh: " in line] == fresh
    before, after = jaxenc.load("our model").params, jaxenc.load("RUN").params
    kept = lambda params: np.asarray(params["encoder"]["layer_00"]["attention"]["query"]["kernel"])
    assert 0 < np.abs(kept(after) - kept(before)).max() < 1e-2 and "mlm" in after
    assert [jaxenc.load(name).config.model.spare_rows for name in ("our model", "RUN")] == [spare, spare]


def test_a_run_of_another_number_of_rows_says_what_to_set(tmp_path: Path, monkeypatch, capsys, fails: Callable[..., str]) -> None:
    """R13: 80 rows and 60 are stored alike, so the shapes say nothing; the advice works, and all rows count as parameters."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("the quick brown fox\njumps over the lazy dog\n\na dog\nand a fox\n" * 4)
    tokenizer, rows = wordpiece.train([Path("text.txt").read_text()], 60), 80
    tensors = {name: a[:rows] if len(a) == folders.VOCAB else a for name, a in folders.tensors("BertForPreTraining").items()}
    folder = folders.write(tmp_path / "theirs", tensors, folders.config("BertForPreTraining") | {"vocab_size": rows})
    tokenizer.save(folder)
    assert main(["convert", "--from", f"hf:{folder}", "--to", "ours"]) == 0
    assert main(["data", "--input", "text.txt", "--tokenizer", "ours/tokenizer", "--out", "data"]) == 0
    saved, pieces = json.loads(Path("ours/config.json").read_text()), tokenizer.vocabulary.size
    saved["model"].pop("spare_rows")
    Path("mine.json").write_text(json.dumps(saved))
    flags = ["pretrain", "--config", "mine.json", "--init-from", "ours", "--config.data.path=data", "--workdir", "run"]
    flags += [f"--config.{item}" for item in SMALL]
    said = fails(*flags)
    assert f"its token table has {rows} rows for {pieces} pieces and this run's {pieces}; set model.spare_rows to {rows - pieces}" in said
    assert main([*flags, f"--config.model.spare_rows={rows - pieces}"]) == 0
    assert f"{sum(array.size for array in tensors.values()):,} parameters on " in capsys.readouterr().err
    assert main(["export", "--model", "run", "--to", "hf", "--out", "out"]) == 0
    assert len(folders.read(Path("out/model.safetensors"))["bert.embeddings.word_embeddings.weight"]) == rows


def test_an_evaluation_of_a_converted_model_asks_for_data(ours: Path, fails: Callable[..., str]) -> None:
    said = fails("evaluate", "--workdir", ours)
    assert "checkpoints/0: was saved without data; name a folder made by `jaxenc data` with --data DIR" in said


@pytest.mark.parametrize("source", ["DIR", "hf", "hf:", "torch:DIR", "allennlp:"])
def test_a_source_that_is_none(source: str, tmp_path: Path, fails: Callable[..., str]) -> None:
    said = fails("convert", "--from", source, "--to", tmp_path / "out")
    assert "name one as hf:DIR, tf:PREFIX, allennlp:DIR or fairseq:DIR" in said and "did you mean" not in said


def test_a_folder_of_transformers_where_a_run_is_wanted(theirs: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    words = f"`jaxenc convert --from '{f'hf:{theirs}'}' --to DIR`"
    for place in (theirs, f"hf:{theirs}"):
        assert words in fails("fill-mask", "--model", place, "--text", "[MASK]")
        assert words in fails("export", "--model", place, "--out", tmp_path / "out")
        with pytest.raises(UserError, match="jaxenc convert --from"):
            jaxenc.load(place)
        with pytest.raises(UserError, match="--init-from .*: not a run directory; .*jaxenc convert --from"):
            restore.choose(tmp_path / "checkpoints", "", str(place), True)
    assert f"did you mean --from 'hf:{theirs}'?" in fails("convert", "--from", theirs, "--to", tmp_path / "out")


def test_places_that_are_taken_are_left_alone(theirs: Path, ours: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("mine")
    for place, what in ((tmp_path, "a folder with file"), (tmp_path / "file", "a file")):
        assert f"{place}: exists already, {what}; choose another --to" in fails("convert", "--from", f"hf:{theirs}", "--to", place)
        assert f"{place}: exists already, {what}; choose another --out" in fails("export", "--model", ours, "--out", place)
    inside, words = tmp_path / "file" / "run", f"{tmp_path / 'file'}: a file and not a folder; choose another --"
    assert words in fails("convert", "--from", f"hf:{theirs}", "--to", inside)
    assert words in fails("export", "--model", ours, "--out", inside)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "mine"


def test_bad_input_leaves_nothing(theirs: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    bad = tmp_path / "bad"
    folders.write(bad, folders.tensors("BertModel"), json.loads((theirs / "config.json").read_text()) | {"model_type": "t5"})
    assert "its model_type is 't5'" in fails("convert", "--from", f"hf:{bad}", "--to", tmp_path / "out")
    (bad / "model.safetensors").write_bytes(b"\0" * 20)
    (bad / "config.json").write_text((theirs / "config.json").read_text())
    assert f"{bad}/model.safetensors: " in fails("convert", "--from", f"hf:{bad}", "--to", tmp_path / "out")
    assert f"use --from hf:{bad}" in fails("convert", "--from", f"hf:{bad}/config.json", "--to", tmp_path / "out")
    assert "not a folder; name" in fails("export", "--model", tmp_path / "gone", "--out", tmp_path / "out")
    assert "invalid choice" in fails("export", "--model", tmp_path, "--out", tmp_path / "out", "--dtype", "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_a_disk_that_refuses_is_one_line_and_leaves_nothing(theirs: Path, tmp_path: Path) -> None:
    """Every array's write fails, and those that were under way when the first did say nothing of their own."""
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (500, -1)); from jaxenc.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", limited, "convert", "--from", f"hf:{theirs}", "--to", str(tmp_path / "out")]
    uncached = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}  # Whose files the limit would stop too.
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=uncached)
    assert done.returncode == 2 and "File too large" in done.stderr.splitlines()[-1]
    assert not [line for line in done.stderr.splitlines() if not line.startswith(("jaxenc: ", "convert: "))]
    assert not any(tmp_path.iterdir())
