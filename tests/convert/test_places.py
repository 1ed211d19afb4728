"""Folders that are no model of transformers as they stand: each says what it is, and what it says to do works (R20)."""

import ast
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.convert import fairseq, hf, tf
from jaxenc.errors import UserError
from tests.convert import folders, tf1


def model(folder: Path) -> Path:
    return folders.write(folder, folders.tensors("BertModel"), folders.config("BertModel"))


def made(folder: Path, *names: str, **contents: object) -> Path:
    """Empty files and, where a name ends with a slash, folders."""
    for name in names:
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def refused(place: Path | str, load: Callable = hf.load) -> str:
    with pytest.raises(UserError) as error:
        load(place)
    assert str(error.value).startswith(f"{place}: ") and "\n" not in str(error.value)
    return str(error.value)


def follow(said: str) -> None:
    """Converts what a message says after --from."""
    source = shlex.split(said.partition("--from ")[2])[0]
    kind, _, place = source.partition(":")
    assert {"hf": hf.load, "tf": tf.load}[kind](place).config.model.layers == folders.LAYERS


def test_a_training_run(tmp_path: Path) -> None:
    """R20: checkpoint-500 beside checkpoint-1000: the last one, or the one that the trainer calls the best."""
    for step in (500, 1000):
        model(tmp_path / f"checkpoint-{step}")
    said = refused(tmp_path)
    assert "whose models are in checkpoint-500, checkpoint-1000; use --from" in said and said.endswith("checkpoint-1000")
    follow(said)
    made(tmp_path / "checkpoint-1000", trainer_state={"best_model_checkpoint": "elsewhere/checkpoint-500"})
    said = refused(tmp_path)
    assert "of which checkpoint-500 is the best" in said and said.endswith("checkpoint-500")


def test_sentence_transformers(tmp_path: Path, capsys) -> None:
    """R20: the encoder in 0_Transformer, as its first versions saved it; at the root it is converted, with a line."""
    parts = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    parts += [{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    made(tmp_path, "1_Pooling/", modules=parts)
    model(tmp_path / "0_Transformer")
    said = refused(tmp_path)
    assert "sentence-transformers, whose encoder is in 0_Transformer" in said
    follow(said)
    model(tmp_path)
    hf.load(tmp_path)
    assert "its encoder is converted and its Pooling is not" in capsys.readouterr().err


def test_the_cache_of_the_hub(tmp_path: Path) -> None:
    cached = tmp_path / "models--someone--theirs"
    for commit in ("aaaa", "bbbb"):
        model(cached / "snapshots" / commit)
    made(cached, "refs/", "blobs/")
    (cached / "refs" / "main").write_text("aaaa")
    said = refused(cached)
    assert "a folder of the hub's cache" in said and said.endswith("snapshots/aaaa")
    follow(said)
    assert f"such as {cached}" in refused(tmp_path)


def test_a_tensorflow_checkpoint(tmp_path: Path) -> None:
    prefix = tf1.archive(tmp_path)
    for place in (tmp_path, Path(f"{prefix}.index"), Path(f"{prefix}.data-00000-of-00001")):
        said = refused(place)
        assert said.endswith(f"use --from tf:{prefix}")
    follow(said)


@pytest.mark.parametrize("config, weights", [("bert_config.json", "model.safetensors"), ("config.json", "epoch_3.safetensors")])
def test_a_file_with_another_name(config: str, weights: str, tmp_path: Path) -> None:
    """R20: bert_config.json as the first torch versions called it, and weights as people call theirs."""
    folder = model(tmp_path / "their model")
    (folder / "config.json").rename(folder / config)
    (folder / "model.safetensors").rename(folder / weights)
    said = refused(folder)
    subprocess.run(shlex.split(re.search("`(cp .*)`", said)[1]), check=True)
    assert hf.load(folder).config.model.layers == folders.LAYERS


def test_a_folder_around_the_model_and_a_file_of_it(tmp_path: Path) -> None:
    inner = model(tmp_path / "model")
    follow(refused(tmp_path))
    for name in ("config.json", "model.safetensors"):
        follow(refused(inner / name))


@pytest.mark.parametrize(
    "names, words",
    [
        (
            ["global_step500/", "zero_to_fp32.py", "config.json", "latest"],
            r"DeepSpeed's shards .*`python -m deepspeed\.utils\.zero_to_fp32",
        ),
        (["zero_pp_rank_0_mp_rank_00_optim_states.pt"], "shards that DeepSpeed wrote .*name the folder above"),
        (["pytorch_model_fsdp_0/", "config.json", "optimizer_0/"], "FSDP's shards .*`accelerate merge-weights .*pytorch_model_fsdp_0"),
        (["__0_0.distcp", ".metadata"], "shards that FSDP wrote"),
        (["mp_rank_00/", "config.json"], "Megatron-LM"),
        (["config.json", "tf_model.h5"], "Keras .*from_tf=True"),
        (["config.json", "flax_model.msgpack"], "Flax .*from_flax=True"),
        (["saved_model.pb", "variables/variables.index"], "a SavedModel of TensorFlow"),
        (["config.json", "model.onnx"], "exported to ONNX"),
        (["config.json", "onnx/model.onnx"], "exported to ONNX"),
        (["model-q4.gguf"], "GGUF"),
        (["x_options.json", "x_weights.hdf5"], "AllenNLP .*use --from allennlp:"),
        (["dict.txt", "model.pt"], "a model of fairseq; use --from fairseq:"),
        (["config.json", "optimizer.pt", "scheduler.pt", "training_args.bin", "rng_state_0.pth"], "training run saves beside its weights"),
        (["config.json", "a.pt", "b.pt"], "no pytorch_model.bin but a.pt, b.pt; copy the one"),
        (["pytorch_model.bin"], "without the config.json that says what model it is"),
        (["model.tar.gz"], "an archive, model.tar.gz; unpack it"),
    ],
)
def test_what_is_no_folder_of_transformers(names: list[str], words: str, tmp_path: Path) -> None:
    """R20: one line each."""
    assert re.search(words, refused(made(tmp_path, *names)))


def test_an_adapter(tmp_path: Path) -> None:
    """R20: PEFT's, even beside the weights of its base, which alone would be another model."""
    made(model(tmp_path), "adapter_model.safetensors", adapter_config={"base_model_name_or_path": "someone/base"})
    assert "an adapter of PEFT for someone/base" in refused(tmp_path)


def test_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    """R20: in the place of the weights, whatever their format."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    for name in ("model.safetensors", "pytorch_model.bin"):
        folder = model(tmp_path / name)
        (folder / "model.safetensors").unlink()
        (folder / name).write_text(pointer)
        with pytest.raises(UserError, match=f"{name}: a pointer of git-lfs and not the file; run `git lfs pull` there"):
            hf.load(folder)
    prefix = tf1.archive(made(tmp_path / "tf", "vocab/"))
    Path(f"{prefix}.data-00000-of-00001").write_text(pointer)
    with pytest.raises(UserError, match="a pointer of git-lfs"):
        tf.load(prefix)
    Path(f"{prefix}.index").write_text(pointer)
    with pytest.raises(UserError, match="a pointer of git-lfs"):
        tf.load(prefix)


@pytest.mark.parametrize("load", [tf.load, fairseq.load])
def test_a_folder_of_transformers_named_as_another_source(load: Callable, tmp_path: Path) -> None:
    follow(refused(model(tmp_path), load))


def test_a_name_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "`hf download someone/theirs --local-dir OUT`" in refused("someone/theirs")


@pytest.mark.parametrize("name", ["plain", "with 'both\" and blanks"])
def test_python_to_paste_names_the_folder_as_a_string(name: str, tmp_path: Path) -> None:
    """R20: for weights of Keras and Flax the advice is a line of Python, and no shell reads it."""
    folder = tmp_path / name
    folder.mkdir()
    made(folder, "config.json", "tf_model.h5")
    call = ast.parse(refused(folder).split("`")[1], mode="eval").body
    assert ast.literal_eval(call.func.value.args[0]) == str(folder)


def test_a_run_directory_is_named_as_a_shell_reads_it(tmp_path: Path) -> None:
    """R20: in the option that takes it as it is."""
    folder = tmp_path / "it's a run"
    hf.load(model(tmp_path / "theirs")).save(folder)
    assert shlex.split(refused(folder).partition("as in ")[2]) == ["--init-from", str(folder)]
