"""A generator and a discriminator: two folders joined, taken apart, trained checkpoints of google-research/electra."""

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxenc.checkpoint import restore
from jaxenc.cli.main import main
from jaxenc.convert import hf, onward, tf
from jaxenc.data.tokenizers import wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError
from jaxenc.families.electra.two_models import alone
from jaxenc.inference import load
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests import tiny
from tests.convert import folders, tf1
from tests.parity import ours
from tests.parity.cases import CASES, example, inputs

ARCHITECTURES = {"generator": "ElectraForMaskedLM", "discriminator": "ElectraForPreTraining"}


def tensors(tied: bool) -> dict[str, dict[str, np.ndarray]]:
    """{network: {name: random array}}; the tables are the same where the networks are tied."""
    out = {network: folders.tensors(ARCHITECTURES[network], seed) for seed, network in enumerate(ARCHITECTURES)}
    if tied:
        out["generator"] |= {name: value for name, value in out["discriminator"].items() if name.startswith("electra.embeddings.")}
    return out


def write(folder: Path, held: dict[str, dict[str, np.ndarray]], **changed: object) -> Path:
    for network, arrays in held.items():
        more = changed if network == "generator" else {}
        folders.write(folder / network, arrays, folders.config(ARCHITECTURES[network]) | more)
    return folder


def assert_same_outputs(whole: Model, alone: Model, names: tuple[str, ...]) -> None:
    rows = example(CASES["ElectraModel"], inputs(CASES["ElectraModel"], 3), whole.config.model.positions_of(np.zeros((3, 11))))
    expected, found = alone.apply(alone.params, rows), whole.apply(whole.params, rows)
    ours.assert_outputs(found, {name: np.asarray(expected[name]) for name in names})


@pytest.mark.parametrize("tied", [True, False])
def test_two_folders_are_one_run_and_come_out_again(tied: bool, tmp_path: Path) -> None:
    """Tables are shared where the files hold the same; every tensor goes out bitwise; the run is saved, loaded and computes as both."""
    held = tensors(tied)
    found = hf.load(write(tmp_path / "theirs", held))
    assert found.config.objective.kind == "rtd" and found.config.model.sharing == ("embeddings" if tied else "none")
    assert ("embeddings" in found.params["generator"]) == (not tied)
    found.save(tmp_path / "run")
    found = load.load(tmp_path / "run")
    assert hf.save(tmp_path / "out", found) == {tmp_path / "out" / network: name for network, name in ARCHITECTURES.items()}
    for network, arrays in held.items():
        out = folders.read(tmp_path / "out" / network / "model.safetensors")
        assert out.keys() == arrays.keys() and all(out[name].tobytes() == arrays[name].tobytes() for name in arrays)
        alone = hf.load(tmp_path / "theirs" / network)
        tiny.assert_bitwise(hf.models(found)[network].params, alone.params)
        assert hf.models(found)[network].config == alone.config
        assert_same_outputs(found, alone, ("mlm",) if network == "generator" else ("hidden", "rtd"))
    again = hf.load(tmp_path / "out")
    assert again.config == found.config
    tiny.assert_bitwise(again.params, found.params)


@pytest.mark.parametrize("tied", [True, False])
def test_rows_without_a_piece_in_both_folders(tied: bool, tmp_path: Path) -> None:
    """R13, with the tokenizer in one of the folders: both networks keep all rows and have as many pieces as it."""
    held, tokenizer = tensors(tied), wordpiece.train(["the quick brown fox jumps over the lazy dog"] * 3, 60)
    theirs = write(tmp_path / "theirs", held)
    tokenizer.save(theirs / "discriminator")
    found, size = hf.load(theirs), tokenizer.vocabulary.size
    assert found.tokenizer.vocabulary == tokenizer.vocabulary
    assert (found.config.model.pieces, found.config.model.vocab_size) == (size, folders.VOCAB)
    assert found.config.with_vocabulary(tokenizer.vocabulary) == found.config
    hf.save(tmp_path / "out", found)
    for network, arrays in held.items():
        out = folders.read(tmp_path / "out" / network / "model.safetensors")
        assert out.keys() == arrays.keys() and all(out[name].tobytes() == arrays[name].tobytes() for name in arrays)
    assert hf.load(tmp_path / "out").config == found.config


def google_names(network: str, theirs: dict[str, np.ndarray], tied: bool) -> dict[str, np.ndarray]:
    """The weights of transformers' ELECTRA by the names of google-research/electra."""
    out = {}
    for name, value in theirs.items():
        dense = name.endswith(".weight") and not re.search(r"LayerNorm|_embeddings", name)
        if network == "generator" and not (tied and name.startswith("electra.embeddings.")):
            name = name.replace("electra.", "generator.")
        name = re.sub(r"layer\.(\d+)", r"layer_\1", name).replace("_embeddings.weight", "_embeddings")
        name = name.replace("generator_lm_head.bias", "generator_predictions.output_bias").replace("dense_prediction", "dense_1")
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta").replace(".weight", ".kernel")
        out[name.replace(".", "/")] = value.T if dense else value
    return out


@pytest.mark.parametrize("tied", [True, False])
def test_a_checkpoint_of_google_research_is_the_same_pair(tied: bool, tmp_path: Path) -> None:
    """It has no config beside it; heads are 64 wide there, so that these small networks have one."""
    held = tensors(tied)
    variables = {name: value for network in held for name, value in google_names(network, held[network], tied).items()}
    slots = {f"{name}/adam_m": np.zeros_like(value) for name, value in variables.items()}
    tf1.write(tmp_path / "model.ckpt", {**variables, **slots, "global_step": np.array(7)})
    found, expected = tf.load(tmp_path / "model.ckpt"), hf.load(write(tmp_path / "theirs", held))
    assert found.config.model == dataclasses.replace(expected.config.model, heads=1, generator_heads=1, attention_dropout=0.1)
    tiny.assert_bitwise(found.params, expected.params)


def test_a_discriminator_of_google_research_alone(tmp_path: Path) -> None:
    """The generator is left out where only what is kept is handed on."""
    held = tensors(True)
    tf1.write(tmp_path / "model.ckpt", google_names("discriminator", held["discriminator"], True))
    found, expected = tf.load(tmp_path / "model.ckpt"), hf.load(write(tmp_path / "theirs", held) / "discriminator")
    one = {"heads": 1, "generator_heads": 1, "attention_dropout": 0.1}
    assert found.config.model == dataclasses.replace(expected.config.model, **one)
    assert found.config.objective == expected.config.objective
    tiny.assert_bitwise(found.params, expected.params)


@pytest.mark.parametrize(
    "task, outputs, heads",
    [("mnli", 3, ("classifier", "first_token")), ("sts", 1, ("first_token", "regressor")), ("chunk", 3, ("tags",))],
)
def test_a_fine_tuned_checkpoint_of_google_research(task: str, outputs: int, heads: tuple[str, ...], tmp_path: Path) -> None:
    """The encoder is that of the discriminator; the head is the dense layer as it stands in the file, on the first token or on all."""
    variables = google_names("discriminator", tensors(True)["discriminator"], True)
    variables = {name: value for name, value in variables.items() if not name.startswith("discriminator_predictions/")}
    kernel, bias = np.random.default_rng(0).normal(size=(8, outputs)).astype(np.float32), np.arange(outputs, dtype=np.float32)
    tf1.write(
        tmp_path / "model.ckpt", {**variables, f"task_specific/{task}/dense/kernel": kernel, f"task_specific/{task}/dense/bias": bias}
    )
    found = tf.load(tmp_path / "model.ckpt")
    labels = ("LABEL_0", "LABEL_1", "LABEL_2")[:outputs] if outputs > 1 else ()
    assert (found.config.objective.heads, found.config.objective.labels) == (heads, labels)
    (own,) = set(heads) - {"first_token"}
    tiny.assert_bitwise(found.params[own]["dense"], {"kernel": kernel, "bias": bias})
    rows = tiny.batch((12, 5), 12)
    rows["tokens"] %= 131
    out = jax.jit(found.apply)(found.params, {name: rows[name] for name in ("tokens", "types", "segments", "positions")})
    last = np.float64(out["hidden"][-1])
    want = last @ kernel + bias if own == "tags" else last[:, 0] @ kernel + bias
    np.testing.assert_allclose(out[own], want[:, 0] if own == "regressor" else want, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"task_specific/mnli/dense/kernel": (8, 3)}, "fine-tuned, with task_specific/mnli/dense/kernel"),
        ({"generator_predictions/output_bias": (131,)}, "holds no generator/encoder/layer_0/intermediate/dense/kernel"),
        ({"electra/embeddings/word_embeddings": (131,)}, "not matrices"),
        ({"electra/pooler/dense/kernel": (8, 8)}, "needs no electra/pooler/dense/kernel; `--leave-out 'electra/pooler/*'` converts"),
    ],
)
def test_a_checkpoint_that_cannot_be_converted_is_one_line(change: dict, words: str, tmp_path: Path) -> None:
    variables = google_names("discriminator", tensors(True)["discriminator"], True)
    tf1.write(tmp_path / "model.ckpt", {**variables, **{name: np.zeros(shape, np.float32) for name, shape in change.items()}})
    assert words in refused(tf.load, tmp_path / "model.ckpt")


def refused(load: Callable[[Path], Model], place: Path) -> str:
    with pytest.raises(UserError) as error:
        load(place)
    assert str(error.value).startswith(str(place)) and "\n" not in str(error.value)
    return str(error.value).removeprefix(str(place))


def test_networks_of_two_vocabularies_are_one_line(tmp_path: Path) -> None:
    held = tensors(True)
    held["generator"] = {name: value[:120] if len(value) == folders.VOCAB else value for name, value in held["generator"].items()}
    assert refused(hf.load, write(tmp_path, held, vocab_size=120)).startswith(": the generator's model.vocab_size is 120")


@pytest.mark.parametrize(
    "network, architecture, words",
    [
        ("generator", "ElectraForPreTraining", "generator holds a model of the kind electra with rtd; an ELECTRA with mlm belongs there"),
        ("discriminator", "ElectraForMaskedLM", "discriminator holds a model of the kind electra with mlm; an ELECTRA with rtd belongs"),
        ("generator", "ElectraModel", "generator holds a model of the kind electra with no heads"),
        ("generator", "BertForMaskedLM", "generator holds a model of the kind bert with mlm"),
        ("discriminator", "BertForMaskedLM", "discriminator holds a model of the kind bert with mlm"),
    ],
)
def test_a_folder_of_another_model_is_one_line(network: str, architecture: str, words: str, tmp_path: Path) -> None:
    write(tmp_path, tensors(True))
    folders.write(tmp_path / network, folders.tensors(architecture), folders.config(architecture))
    assert words in refused(hf.load, tmp_path)


@pytest.mark.parametrize("network, other", [("generator", "discriminator"), ("discriminator", "generator")])
def test_half_a_pair_is_one_line_that_names_the_other(network: str, other: str, tmp_path: Path) -> None:
    write(tmp_path, tensors(True))
    shutil.rmtree(tmp_path / network)
    assert refused(hf.load, tmp_path) == f": holds no {network}/config.json; name {tmp_path / other} to convert that model alone"
    (tmp_path / other / "model.safetensors").unlink()
    assert "no model.safetensors and no pytorch_model.bin here" in refused(hf.load, tmp_path / other)


def test_two_tokenizers_are_one_line_and_one_may_be_named(tmp_path: Path) -> None:
    write(tmp_path, tensors(True))
    for network, word in (("generator", "a"), ("discriminator", "b")):
        pieces = [*tf1.SPECIALS, word, *(f"##{i}" for i in range(folders.VOCAB - len(tf1.SPECIALS) - 1))]
        (tmp_path / network / "vocab.txt").write_text("\n".join(pieces) + "\n")
    assert "have different tokenizers; name one for both with --tokenizer DIR" in refused(hf.load, tmp_path)
    found = hf.load(tmp_path, str(tmp_path / "generator")).tokenizer
    assert found.vocabulary == hf.load(tmp_path / "generator").tokenizer.vocabulary
    (tmp_path / "generator" / "vocab.txt").unlink()
    assert hf.load(tmp_path).tokenizer.vocabulary == hf.load(tmp_path / "discriminator").tokenizer.vocabulary


def test_tables_that_differ_by_a_rounding_are_two_and_a_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    held = tensors(True)
    assert hf.load(write(tmp_path / "one", held)).config.model.sharing == "embeddings" and not capsys.readouterr().err
    held["generator"] = {name: value.astype(np.float16) for name, value in held["generator"].items()}
    assert hf.load(write(tmp_path / "two", held)).config.model.sharing == "none"
    assert capsys.readouterr().err == "convert: the two networks hold different tables, so each has its own: model.sharing is none\n"


def test_norms_by_their_first_names(tmp_path: Path) -> None:
    held, old = tensors(True), {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    rename = lambda name: next((name.replace(new, first) for new, first in old.items() if new in name), name)
    renamed = {network: {rename(name): value for name, value in arrays.items()} for network, arrays in held.items()}
    tiny.assert_bitwise(hf.load(write(tmp_path / "old", renamed)).params, hf.load(write(tmp_path / "new", held)).params)


def test_a_pair_without_its_generator_goes_out_as_the_discriminator_and_other_heads_do_not(tmp_path: Path) -> None:
    """What is trained on tokens that no network replaced, and what has another head than transformers' pair."""
    pair = hf.load(write(tmp_path / "theirs", tensors(True)))
    without = lambda *names: dataclasses.replace(pair, params={name: p for name, p in pair.params.items() if name not in names})
    assert hf.save(tmp_path / "out", without("generator", "mlm")) == {tmp_path / "out": "ElectraForPreTraining"}
    tiny.assert_bitwise(hf.load(tmp_path / "out").params, hf.load(tmp_path / "theirs" / "discriminator").params)
    with pytest.raises(UserError, match="two networks without the head rtd; transformers has no such two networks"):
        hf.save(tmp_path / "other", without("rtd"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("network, objective", [("generator", MlmConfig()), ("discriminator", HeadsConfig())])
def test_a_run_of_one_network_of_an_unequal_pair_goes_out_as_that_network(network: str, objective: ObjectiveConfig, tmp_path: Path) -> None:
    """Its config has the numbers of both; the folder has those of the one that was trained."""
    run = Run(objective, tiny.PAIR)
    hf.save(tmp_path, Model(run, tiny.drawn(run), None))
    found = hf.load(tmp_path)
    assert found.config.model == alone(tiny.PAIR, network)
    tiny.assert_bitwise(found.params, tiny.drawn(run))


def test_a_decoder_that_is_not_tied_is_one_line(tmp_path: Path) -> None:
    held = tensors(True)
    held["generator"]["generator_lm_head.weight"] = np.zeros((folders.VOCAB, folders.EMBEDDING), np.float32)
    write(tmp_path, held)
    assert "/generator: generator_lm_head.weight differs from electra.embeddings" in refused(hf.load, tmp_path)


def test_a_checkpoint_with_tables_of_two_sizes_is_one_line(tmp_path: Path) -> None:
    held = tensors(False)
    variables = {name: value for network in held for name, value in google_names(network, held[network], False).items()}
    variables["generator/embeddings/word_embeddings"] = variables["generator/embeddings/word_embeddings"][:120]
    tf1.write(tmp_path / "model.ckpt", variables)
    with pytest.raises(UserError, match=r"of another shape: generator/embeddings/word_embeddings \(120, 6\), expected \(131, 6\)"):
        tf.load(tmp_path / "model.ckpt")


def test_a_folder_with_heads_of_both_is_one_line(tmp_path: Path) -> None:
    both = {**folders.tensors("ElectraForMaskedLM"), **folders.tensors("ElectraForPreTraining")}
    with pytest.raises(UserError, match="keep the heads of one of them"):
        hf.load(folders.write(tmp_path, both, folders.config("ElectraForMaskedLM")))


def test_a_checkpoint_of_the_pair_holds_the_discriminator_as_it_is_alone(tmp_path: Path) -> None:
    """So that a run with other heads starts from it, with no table of names between the two."""
    pair = hf.load(write(tmp_path / "theirs", tensors(True)))
    pair.save(tmp_path / "run")
    alone = dataclasses.replace(pair.config, objective=HeadsConfig(("rtd",)))
    shapes, _ = parameters(objective_of(alone, None))
    found = restore.restore_params(tmp_path / "run" / "checkpoints" / "0", shapes)
    tiny.assert_bitwise(found, hf.load(tmp_path / "theirs" / "discriminator").params)
    shapes, _ = parameters(objective_of(dataclasses.replace(pair.config, objective=MlmConfig()), None))
    found = restore.restore_params(tmp_path / "run" / "checkpoints" / "0", shapes)
    tiny.assert_bitwise(found, hf.load(tmp_path / "theirs" / "generator").params)


def test_the_command_takes_and_gives_both_and_tells_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    write(tmp_path / "theirs", tensors(True))
    assert main(["convert", "--from", f"hf:{tmp_path / 'theirs'}", "--to", str(tmp_path / "run"), "--tokenizer", "none"]) == 0
    assert "parameters, mlm, rtd" in capsys.readouterr().out
    assert main(["export", "--model", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}.from_pretrained('{tmp_path / 'out' / network}')" in said for network, name in ARCHITECTURES.items())


def test_what_a_network_alone_can_do_next(tmp_path: Path) -> None:
    """A generator goes on with masked tokens, the pair as it is, also with tables apart and a generator that needs no network; a
    discriminator alone only encodes."""
    write(tmp_path, tensors(True))
    pieces = [*tf1.SPECIALS, *(f"##{i}" for i in range(folders.VOCAB - len(tf1.SPECIALS)))]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    tokenizer = wordpiece.from_vocab(tmp_path / "vocab.txt", PublishedRules(True, True))
    next_of = lambda folder: onward.commands(Path("run"), dataclasses.replace(hf.load(folder), tokenizer=tokenizer))
    for folder in (tmp_path, tmp_path / "generator"):
        assert "jaxenc pretrain" in next_of(folder) and "objective.kind" not in next_of(folder)
    assert next_of(tmp_path / "discriminator") == "next, in Python: jaxenc.load('run').encode([...])"
    for objective, goes_on in ((RtdConfig(generator="uniform"), True), (HeadsConfig(("rtd",)), False)):
        run = Run(objective, dataclasses.replace(tiny.PAIR, sharing="none"))
        said = onward.commands(Path("run"), Model(run, tiny.drawn(run), tokenizer))
        assert ("jaxenc pretrain" in said) == goes_on and "objective.kind" not in said
