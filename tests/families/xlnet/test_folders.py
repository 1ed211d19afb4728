"""Whole folders of XLNet: of transformers with a tokenizer, in shards and halves, of zihangdai/xlnet, and what goes wrong."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import jaxenc
from jaxenc import tree
from jaxenc.cli.main import main
from jaxenc.convert import hf, onward, tf
from jaxenc.data.tokenizers import Tokenizer, load
from jaxenc.data.tokenizers.sentencepiece import model_folder, unigram
from jaxenc.errors import UserError
from tests import tiny
from tests.convert import folders, tf1, tf1_xlnet
from tests.data import spiece_models
from tests.parity import ours
from tests.parity.cases import CASES, example, golden

TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Read by XLNet's own rule, as a spiece.model alone is."""
    folder = tmp_path_factory.mktemp("tokenizer")
    unigram.train([TEXT] * 3, 60).save(folder)
    return model_folder.from_model((folder / "spiece.model").rename(tmp_path_factory.mktemp("alone") / "spiece.model"))


def make(folder: Path, architecture: str, size: int = folders.VOCAB, change: Callable[[dict], dict] = dict) -> Path:
    """A random folder of `architecture` with `size` tokens, its tensors changed by `change`."""
    rows = {name: value[:size] if len(value) == folders.VOCAB else value for name, value in folders.tensors(architecture).items()}
    return folders.write(folder, change(rows), folders.config(architecture) | {"vocab_size": size})


@pytest.mark.parametrize("architecture", ["XLNetLMHeadModel", "XLNetForSequenceClassification"])
def test_the_same_numbers_from_a_checkpoint_of_zihangdai(architecture: str, tmp_path: Path) -> None:
    """As train.py and run_classifier.py leave theirs; clamp_len is a flag there and not in the config. 3 s."""
    case, inputs, arrays = CASES[architecture], golden(architecture, "inputs/"), golden(architecture, "gelu_new/")
    found = tf.load(tf1_xlnet.archive(tmp_path, golden(architecture, "weights/"), 131))
    assert found.config.model.activation == "gelu_tanh" and found.tokenizer is None
    clamped = dataclasses.replace(found.config, model=dataclasses.replace(found.config.model, clamp=6))
    found = dataclasses.replace(found, config=clamped)
    rows = example(case, inputs, found.config.model.positions_of(inputs["input_ids"]))
    ours.assert_outputs(found.apply(found.params, rows), {name: arrays[name] for name in ("hidden", *case.logits)})


def test_a_checkpoint_and_its_vocabulary_in_out_and_in_again(tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The command on spiece.model beside the weights: one run, which goes on as it is, a folder of transformers, and the run again."""
    size, lm = tokenizer.vocabulary.size, "XLNetLMHeadModel"
    theirs = folders.read(make(tmp_path / "theirs", lm, size) / "model.safetensors")
    prefix = tf1_xlnet.archive(tmp_path / "tf", theirs, size, tokenizer)
    run, out, again = (str(tmp_path / name) for name in ("run", "out", "again"))
    assert main(["convert", "--from", f"tf:{prefix}", "--to", run]) == 0
    said, told = capsys.readouterr()
    assert "parameters, lm" in said and "jaxenc pretrain" in said and "objective.kind" not in said
    assert f"convert: {prefix}: does not say how long its rows were" in told
    assert main(["export", "--model", run, "--out", out]) == 0
    assert f"{lm}.from_pretrained('{out}')" in capsys.readouterr().out
    written = folders.read(Path(out) / "model.safetensors")
    assert written.keys() == theirs.keys() and all(written[name].tobytes() == theirs[name].tobytes() for name in theirs)
    assert main(["convert", "--from", f"hf:{out}", "--to", again]) == 0
    first, last = jaxenc.load(run), jaxenc.load(again)
    tiny.assert_bitwise(last.params, first.params)
    assert last.config == first.config and last.tokenizer.vocabulary == first.tokenizer.vocabulary == tokenizer.vocabulary
    found = last.encode([TEXT, "dog"])
    assert found.tokens[0].tolist() == tokenizer.encode_prompt(TEXT) and found.mask[1].sum() == len(tokenizer.encode_prompt("dog"))
    assert np.isfinite(found.hidden).all() and np.array_equal(first.encode([TEXT, "dog"]).hidden, found.hidden)


def test_r12_an_export_says_what_transformers_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A model of characters: its ids are those of sentencepiece, and no tokenizer.json could give them."""
    content = spiece_models.trained([TEXT], model_type="char", **spiece_models.XLNET)
    spiece = spiece_models.folder(tmp_path / "tokenizer", content, {})
    theirs, run, out = make(tmp_path / "theirs", "XLNetLMHeadModel", load(spiece).vocabulary.size), str(tmp_path / "run"), tmp_path / "out"
    assert main(["convert", "--from", f"hf:{theirs}", "--to", run, "--tokenizer", str(spiece)]) == 0
    assert main(["export", "--model", run, "--out", str(out)]) == 0
    assert (
        "export: trainer_spec.model_type cannot be expressed in a tokenizer.json: spiece.model is written alone" in capsys.readouterr().err
    )
    assert (out / "spiece.model").read_bytes() == content and not (out / "tokenizer.json").exists()


def test_types_that_a_person_gives_are_compared_and_bounded(tmp_path: Path) -> None:
    """Which number a type has is nothing: 0, 0, 2 is 1, 1, 0."""
    model = hf.load(make(tmp_path, "XLNetModel"))
    one, other, plain = (model.encode(tokens=[[20, 21, 3]], types=types).hidden for types in ([[0, 0, 2]], [[1, 1, 0]], None))
    assert np.array_equal(one, other) and np.abs(one - plain).max() > 1e-3
    with pytest.raises(UserError, match="types holds 0 to 5, and the model takes 0 to 4"):
        model.encode(tokens=[[20, 21, 3]], types=[[0, 0, 5]])


def test_what_a_classifier_says_does_not_depend_on_the_side_of_the_padding(tmp_path: Path) -> None:
    model = hf.load(make(tmp_path, "XLNetForSequenceClassification"))
    rows = {
        "tokens": np.array([[20, 21, 4, 3, 5, 5], [5, 5, 20, 21, 4, 3]]),
        "segments": np.array([[1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1]]),
    }
    right, left = np.asarray(model.apply(model.params, rows)["classifier"])
    np.testing.assert_allclose(right, left, rtol=0, atol=1e-6)


@pytest.mark.parametrize("architecture", ["XLNetModel", "XLNetForTokenClassification"])
def test_r27_what_predicts_no_tokens_goes_on_with_permutations(architecture: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """With the rows that they need; masked tokens would need a head that XLNet does not have."""
    model = dataclasses.replace(hf.load(make(tmp_path, architecture, tokenizer.vocabulary.size)), tokenizer=tokenizer)
    fields = "--config.objective.kind=plm --config.data.rows=streams --config.data.length=512 --config.data.reuse=256"
    assert f"jaxenc pretrain --config run/config.json {fields} --init-from run " in onward.commands(Path("run"), model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_in_and_out(dtype: str, tmp_path: Path) -> None:
    """What comes in rounded goes out in the same dtype as it came."""
    halves = lambda arrays: {name: np.asarray(value, np.float16) for name, value in arrays.items()}
    first = hf.load(make(tmp_path / "theirs", "XLNetLMHeadModel", change=halves))
    hf.save(tmp_path / "out", first, dtype)
    again = dict(tree.leaves(hf.load(tmp_path / "out").params))
    for path, leaf in tree.leaves(first.params):
        wanted = np.asarray(leaf.astype(dtype).astype("float32"))
        assert (np.asarray(again[path]) == wanted).all(), path


def test_shards_are_one_model(tmp_path: Path) -> None:
    whole = hf.load(make(tmp_path, "XLNetLMHeadModel"))
    arrays = folders.read(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(arrays)}
    for file in set(files.values()):
        (tmp_path / file).write_bytes(folders.safetensors_bytes({name: arrays[name] for name in arrays if files[name] == file}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    tiny.assert_bitwise(hf.load(tmp_path).params, whole.params)


def test_a_decoder_that_is_not_tied_is_one_line(tmp_path: Path) -> None:
    copied = lambda arrays: arrays | {"lm_loss.weight": arrays["transformer.word_embedding.weight"]}
    tiny.assert_bitwise(hf.load(make(tmp_path / "copy", "XLNetLMHeadModel", change=copied)).params, hf.load(tmp_path / "copy").params)
    other = lambda arrays: arrays | {"lm_loss.weight": arrays["transformer.word_embedding.weight"] * 2}
    with pytest.raises(UserError, match=r"lm_loss\.weight differs from transformer\.word_embedding\.weight: untied heads"):
        hf.load(make(tmp_path / "other", "XLNetLMHeadModel", change=other))


def moved(arrays: dict) -> dict:
    return {name.replace("layer.1.rel_attn.r_s_bias", "layer.1.rel_attn.r_x_bias"): value for name, value in arrays.items()}


@pytest.mark.parametrize(
    "change, settings, words",
    [
        (moved, {}, "missing: layer.1.rel_attn.r_s_bias; not known: layer.1.rel_attn.r_x_bias"),
        (dict, {"n_layer": 3}, "n_layer is 3, which the shapes of the tensors contradict; set n_layer to 2 there"),
        (dict, {"n_layer": 1 << 30}, "its config has 1073741824 layers but there are 36 tensors"),
        (dict, {"n_head": 4, "d_head": 2}, "layer.0.rel_attn.q (8, 2, 4), expected (8, 4, 2)"),
        (lambda a: a | {"mask_emb": np.zeros(8, np.float32)}, {}, "of another shape: mask_emb (8,), expected (1, 1, 8)"),
        (dict, {"bi_data": True}, "config.json: bi_data is set"),
    ],
)
def test_what_does_not_fit_is_one_line(change: Callable[[dict], dict], settings: dict, words: str, tmp_path: Path) -> None:
    folders.write(tmp_path, change(folders.tensors("XLNetModel")), folders.config("XLNetModel") | settings)
    with pytest.raises(UserError) as error:
        hf.load(tmp_path)
    assert words in str(error.value) and str(tmp_path) in str(error.value) and "\n" not in str(error.value)


def test_a_summary_that_reads_the_first_token_is_one_line(tmp_path: Path) -> None:
    name, settings = "XLNetForSequenceClassification", {"summary_type": "first"}
    folders.write(tmp_path, folders.tensors(name), folders.config(name) | settings)
    with pytest.raises(UserError, match=r"config\.json: summary_type is 'first'; only 'last' can be converted"):
        hf.load(tmp_path)
    folders.write(tmp_path, folders.tensors("XLNetModel"), folders.config("XLNetModel") | settings)
    assert hf.load(tmp_path).config.objective.heads == ()


def test_checkpoints_that_go_wrong_are_one_line(tmp_path: Path) -> None:
    prefix = tf1_xlnet.archive(tmp_path, folders.tensors("XLNetLMHeadModel"), 131)
    held = tf1_xlnet.google_names(folders.tensors("XLNetLMHeadModel"))
    whole, bias = held["model/transformer/r_w_bias"], "model/transformer/r_w_bias"
    for changed, words in (
        ({bias: whole[:1]}, f"missing: {re.escape(bias)}.1."),
        ({bias: np.concatenate([whole, whole])}, f"not known: {re.escape(bias)}.2., {re.escape(bias)}.3."),
        ({bias: whole[0]}, f"of another shape: {re.escape(bias)}.0. .4,., expected .2, 4."),
        ({"model/start_logits/dense/kernel": whole}, "the model needs no model/start_logits/dense/kernel"),
    ):
        tf1.write(prefix, held | changed)
        with pytest.raises(UserError, match=words) as error:
            tf.load(prefix)
        assert "\n" not in str(error.value)
    (tmp_path / "xlnet_config.json").unlink()
    with pytest.raises(UserError, match=r"holds no xlnet_config\.json; put the one"):
        tf.load(prefix)
