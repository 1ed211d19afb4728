"""Folders of transformers in and out again, with all that real files vary in."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import config, tree
from jaxenc.convert import hf
from jaxenc.data.frames import CLS_FIRST
from jaxenc.data.tokenizers import wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families import fine_tuned
from jaxenc.inference.model import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.training.run import Run, from_dict
from tests import tiny
from tests.convert import folders
from tests.data import spiece_models

TEXT = "the quick brown fox jumps over the lazy dog"


def make(folder: Path, architecture: str, change: Callable[[dict], dict] = dict, **settings: object) -> Path:
    """A random folder of `architecture`, its tensors changed by `change` and its config by `settings`."""
    return folders.write(folder, change(folders.tensors(architecture)), folders.config(architecture) | settings)


def flat(model: Model) -> dict[str, np.ndarray]:
    return {path: np.asarray(leaf) for path, leaf in tree.leaves(model.params)}


def refused(folder: Path, tokenizer: str = "") -> str:
    with pytest.raises(UserError) as error:
        hf.load(folder, tokenizer)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("architecture", (*folders.ARCHITECTURES, *folders.ELECTRAS, *folders.XLNETS))
def test_in_and_out_and_in_is_the_identity(architecture: str, tmp_path: Path) -> None:
    """Every tensor of the folder bitwise, the class's name, and the Run through JSON."""
    folder = make(tmp_path / "theirs", architecture)
    first = hf.load(folder)
    assert from_dict(json.loads(json.dumps(config.to_dict(first.config)))) == first.config
    assert hf.save(tmp_path / "out", first) == {tmp_path / "out": architecture}
    wanted, found = folders.tensors(architecture), folders.read(tmp_path / "out" / "model.safetensors")
    assert found.keys() == wanted.keys() and all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)
    again = hf.load(tmp_path / "out")
    assert again.config == first.config
    tiny.assert_bitwise(again.params, first.params)


def test_labels_have_their_names(tmp_path: Path) -> None:
    run = hf.load(make(tmp_path / "theirs", "BertForTokenClassification")).config
    assert run.objective.labels == ("no", "maybe", "yes")


@pytest.mark.parametrize("id2label", [{"0": "LABEL_0", "1": "LABEL_1"}, {"0": "fits"}, None])
def test_multiple_choice_is_a_number_for_each_text(id2label: dict | None, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """However many labels the config names; a line says that no file knows how many choices a row has."""
    for architecture in ("BertForMultipleChoice", "RobertaForMultipleChoice"):
        found = hf.load(make(tmp_path / architecture, architecture, id2label=id2label))
        assert found.config.objective == HeadsConfig(("pooler", "choice"), choices=2)
        assert np.asarray(found.apply(found.params, {"tokens": np.array([[5, 6]])})["choice"]).shape == (1,)
        assert "does not say how many choices a row has: objective.choices 2; set your own to train on" in capsys.readouterr().err


@pytest.mark.parametrize(
    "rows, problem, head",
    [
        (1, None, "regressor"),
        (1, "regression", "regressor"),
        (1, "single_label_classification", "classifier"),
        (1, "multi_label_classification", "multilabel"),
        (3, None, "classifier"),
        (3, "multi_label_classification", "multilabel"),
        (3, "regression", "classifier"),
    ],
)
def test_the_problem_says_which_head_on_a_text_it_is(rows: int, problem: str | None, head: str, tmp_path: Path) -> None:
    """transformers has one class for three losses. Without a `problem_type` one row is a regression there, and so it is here."""
    first = lambda arrays: {name: array[:rows] if name.startswith("classifier") else array for name, array in arrays.items()}
    labels = {str(i): name for i, name in enumerate("abc"[:rows])}
    folder = make(tmp_path / "theirs", "BertForSequenceClassification", first, id2label=labels, label2id=None, problem_type=problem)
    found = hf.load(folder)
    assert found.config.objective.heads == ("pooler", head)
    assert found.config.objective.labels == (() if head == "regressor" else tuple("abc"[:rows]))
    hf.save(tmp_path / "out", found)
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert written["architectures"] == ["BertForSequenceClassification"] and len(written["id2label"]) == rows
    assert written["problem_type"] == fine_tuned.CLASSES[head].problem
    assert hf.load(tmp_path / "out").config == found.config


@pytest.mark.parametrize("architecture", ["BertForTokenClassification", "RobertaForSequenceClassification"])
def test_labels_that_nothing_names_are_as_many_as_the_tensors_have(architecture: str, tmp_path: Path) -> None:
    run = hf.load(make(tmp_path / "theirs", architecture, id2label=None)).config
    assert run.objective.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def renamed(rule: Callable[[str], str]) -> Callable[[dict], dict]:
    return lambda arrays: {rule(name): array for name, array in arrays.items()}


def old_norms(name: str) -> str:
    if "LayerNorm" not in name:
        return name
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def with_buffers(arrays: dict) -> dict:
    ids = np.arange(folders.ROWS)[None]
    return {**arrays, "bert.embeddings.position_ids": ids, "bert.embeddings.token_type_ids": np.zeros_like(ids)}


def with_copies(arrays: dict) -> dict:
    copies = {"weight": arrays["bert.embeddings.word_embeddings.weight"], "bias": arrays["cls.predictions.bias"]}
    return {**arrays, **{f"cls.predictions.decoder.{leaf}": array for leaf, array in copies.items()}}


def copies_alone(arrays: dict) -> dict:
    left_out = ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias")
    return {name: array for name, array in with_copies(arrays).items() if name not in left_out}


@pytest.mark.parametrize("change", [renamed(old_norms), with_buffers, with_copies, copies_alone])
def test_variants_of_one_model_are_the_same(change: Callable[[dict], dict], tmp_path: Path) -> None:
    plain = hf.load(make(tmp_path / "plain", "BertForPreTraining"))
    varied = hf.load(make(tmp_path / "varied", "BertForPreTraining", change))
    assert varied.config == plain.config
    tiny.assert_bitwise(varied.params, plain.params)


@pytest.mark.parametrize("base", ["bert.", "", "model.", "0.auto_model."])
def test_an_encoder_behind_any_base(base: str, tmp_path: Path) -> None:
    plain = hf.load(make(tmp_path / "plain", "BertModel"))
    varied = hf.load(make(tmp_path / "varied", "BertModel", renamed(lambda name: base + name)))
    tiny.assert_bitwise(varied.params, plain.params)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats_become_float32(dtype: str, tmp_path: Path) -> None:
    kind = np.dtype(jnp.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    cast = lambda arrays: {name: array.astype(kind) for name, array in arrays.items()}
    found = flat(hf.load(make(tmp_path, "RobertaForMaskedLM", cast)))
    source = folders.tensors("RobertaForMaskedLM")
    assert all(array.dtype == np.float32 for array in found.values())
    assert (found["mlm/dense/kernel"] == source["lm_head.dense.weight"].astype(kind).astype(np.float32).T).all()
    assert (found["mlm/bias"][: folders.VOCAB] == source["lm_head.bias"].astype(kind).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_export_in_half_precision_rounds_once(dtype: str, tmp_path: Path) -> None:
    first = hf.load(make(tmp_path / "theirs", "BertModel"))
    hf.save(tmp_path / "out", first, dtype)
    kind = np.dtype(jnp.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    found = flat(hf.load(tmp_path / "out"))
    assert all((found[path] == array.astype(kind).astype(np.float32)).all() for path, array in flat(first).items())
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == dtype


@pytest.mark.parametrize("kind", ["xlm-roberta", "camembert"])
def test_names_of_the_same_model(kind: str, tmp_path: Path) -> None:
    run = hf.load(make(tmp_path, "RobertaForTokenClassification", model_type=kind, architectures=["Any"])).config
    assert (run.model.first_position, run.model.positions, run.model.types) == (2, 14, 1)


@pytest.mark.parametrize("architecture, said", [("RobertaForMaskedLM", True), ("BertForMaskedLM", True), ("BertForMaskedLM", False)])
def test_folders_from_before_model_types_name_their_class_or_are_berts(architecture: str, said: bool, tmp_path: Path) -> None:
    classes = [architecture] if said else None
    run = hf.load(make(tmp_path, architecture, model_type=None, architectures=classes)).config
    assert run.model.first_position == (2 if architecture.startswith("Roberta") else 0)


def test_heads_are_those_whose_tensors_are_there(tmp_path: Path) -> None:
    """bert-base-uncased says BertForMaskedLM and holds a pooler and the next-sentence head; some hold a pooler more."""
    said = hf.load(make(tmp_path / "a", "BertForPreTraining", architectures=["BertForMaskedLM"]))
    assert said.config.objective.kind == "mlm_nsp"
    pooler = folders.tensors("RobertaModel", seed=1)
    more = {f"roberta.{name}": array for name, array in pooler.items() if name.startswith("pooler")}
    masked = hf.load(make(tmp_path / "b", "RobertaForMaskedLM", lambda arrays: arrays | more))
    assert masked.config.objective.heads == ("pooler", "mlm")
    bare = hf.load(make(tmp_path / "c", "BertModel", lambda a: {name: array for name, array in a.items() if "pooler" not in name}))
    assert bare.config.objective.heads == ()


def test_the_pooler_beside_a_classifier_of_robertas_is_not_used(tmp_path: Path) -> None:
    """roberta-large-mnli and others hold it; transformers leaves it unused, as the classifier has a dense layer of its own."""
    pooler = {f"roberta.pooler.dense.{leaf}": np.ones(s, np.float32) for leaf, s in (("weight", (8, 8)), ("bias", (8,)))}
    found = flat(hf.load(make(tmp_path, "RobertaForSequenceClassification", lambda arrays: arrays | pooler)))
    source = folders.tensors("RobertaForSequenceClassification")
    assert (found["pooler/dense/kernel"] == source["classifier.dense.weight"].T).all()


@pytest.mark.parametrize(
    "architecture, name",
    [
        ("BertForMaskedLM", "cls.predictions.decoder.weight"),
        ("BertForMaskedLM", "cls.predictions.decoder.bias"),
        ("RobertaForMaskedLM", "lm_head.decoder.weight"),
        ("RobertaForMaskedLM", "lm_head.decoder.bias"),
    ],
)
def test_an_untied_head_is_one_line(architecture: str, name: str, tmp_path: Path) -> None:
    other = np.zeros((folders.VOCAB, folders.WIDTH) if name.endswith("weight") else folders.VOCAB, np.float32)
    assert f"{name} differs from " in (said := refused(make(tmp_path, architecture, lambda arrays: {**arrays, name: other})))
    assert "untied heads are not supported" in said


@pytest.mark.parametrize(
    "change, settings, words",
    [
        # R22: the config is wrong, and not the tokenizer.
        (dict, {"vocab_size": 30522}, "config.json: vocab_size is 30,522 and embeddings.word_embeddings.weight has 131 rows; set vocab_"),
        (dict, {"vocab_size": 130}, "vocab_size is 130 and embeddings.word_embeddings.weight has 131 rows; set vocab_size to 131 there"),
        (dict, {"num_hidden_layers": 3}, "config.json: num_hidden_layers is 3, which the shapes of the tensors contradict; set"),
        (dict, {"num_hidden_layers": 1 << 30}, "its config has 1073741824 layers but there are 39 tensors"),
        (dict, {"num_hidden_layers": 1}, "tensors contradict; set num_hidden_layers to 2 there"),
        (dict, {"max_position_embeddings": 512}, "set max_position_embeddings to 16 there"),
        (dict, {"hidden_size": 64}, "hidden_size is 64, which the shapes of the tensors contradict; set hidden_size to 8"),
        (dict, {"intermediate_size": 64}, "set intermediate_size to 12 there"),
        (dict, {"num_attention_heads": 3}, "config.json: hidden_size 8 does not divide into num_attention_heads 3"),
        (dict, {"type_vocab_size": 1}, "set type_vocab_size to 2 there"),
        (
            lambda a: a | {"crf.w": np.zeros(1, np.float32)},
            {"max_position_embeddings": 512, "num_hidden_layers": 3},
            "set num_hidden_layers to 2, max_position_embeddings to 16 there",
        ),
        (lambda a: a | {"adapter.w": np.zeros(1, np.float32)}, {}, "the model needs no adapter.w; `--leave-out 'adapter.*'` converts"),
        (lambda a: a | {"pooler.dense.bias": np.zeros(8, np.int64)}, {}, "another dtype: pooler.dense.bias int64; save the model in"),
        (dict, {"model_type": "deberta"}, f"its model_type is 'deberta'; name a model of {', '.join(hf.LAYOUTS)}"),
        (dict, {"model_type": 3}, "its model_type is 3"),
        (dict, {"model_type": ["bert"]}, "its model_type is ['bert']"),
        (dict, {"model_type": None, "architectures": ["DebertaModel"]}, "its model_type is 'DebertaModel'"),
    ],
)
def test_what_does_not_fit_is_one_line(change: Callable[[dict], dict], settings: dict, words: str, tmp_path: Path) -> None:
    assert words in refused(make(tmp_path, "BertModel", change, **settings))


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    assert "no such folder" in refused(tmp_path / "gone")
    assert "config.json" in refused(tmp_path)
    for text, words in (
        ("[1", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "holds no JSON object"),
        ('{"architectures": 3}', "no model."),
    ):
        (tmp_path / "config.json").write_text(text)
        assert words in refused(tmp_path)


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    """A model and a tokenizer of one size in a folder."""
    tokenizer = wordpiece.train([TEXT] * 3, 60)
    size = tokenizer.vocabulary.size
    rows = lambda arrays: {n: (a[:size] if "word_embeddings" in n else a) for n, a in arrays.items()}
    folder = make(tmp_path / "spoken", "BertModel", rows, vocab_size=size)
    tokenizer.save(folder)
    return folder


def test_the_tokenizer_comes_along_and_leaves_again(spoken: Path, tmp_path: Path) -> None:
    found = hf.load(spoken)
    hf.save(tmp_path / "out", found)
    again = hf.load(tmp_path / "out")
    assert again.tokenizer.encode([TEXT]) == found.tokenizer.encode([TEXT]) and again.tokenizer.vocabulary == found.tokenizer.vocabulary
    assert again.config == found.config
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"tokenizer.json", "vocab.txt", "tokenizer_config.json"}
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["model_max_length"] == found.config.model.positions


def test_r15_rows_of_pieces_on_several_lines_come_along_and_leave_again(tmp_path: Path) -> None:
    """131 rows for 131 lines, of which two repeat a piece."""
    folder = make(tmp_path / "in", "BertForMaskedLM")
    lines = [*wordpiece.SPECIALS, "the", "fox", *(f"w{number}" for number in range(122)), "the", "fox"]
    (folder / "vocab.txt").write_text("".join(f"{line}\n" for line in lines))
    found = hf.load(folder)
    assert found.config.model.vocab_size == found.tokenizer.vocabulary.size == 131 and found.tokenizer.encode(["the fox"]) == [[129, 130]]
    hf.save(tmp_path / "out", found)
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
    again = hf.load(tmp_path / "out")
    assert again.config == found.config and again.tokenizer.vocabulary == found.tokenizer.vocabulary
    table = lambda model: np.asarray(model.params["embeddings"]["token"]["table"])
    assert (table(again) == table(found)).all() and table(found)[5].any()


def test_a_tokenizer_of_more_pieces_than_rows_is_one_line_with_both_numbers(spoken: Path, tmp_path: Path) -> None:
    """R13 is about fewer pieces (`test_spare_rows.py`)."""
    size = hf.load(spoken).tokenizer.vocabulary.size
    rows = lambda arrays: {n: (a[: size - 1] if "word_embeddings" in n else a) for n, a in arrays.items()}
    other = make(tmp_path / "other", "BertModel", rows, vocab_size=size - 1)
    for name in ("tokenizer.json", "vocab.txt"):
        shutil.copy(spoken / name, other)
    assert f"the tokenizer has {size} tokens and the model {size - 1} embedding rows" in (said := refused(other))
    assert "`--tokenizer none` converts without it" in said
    assert hf.load(other, "none").tokenizer is None


def test_a_tokenizer_whose_pad_is_not_the_models_is_one_line(spoken: Path, tmp_path: Path) -> None:
    """RoBERTa's positions are counted over what is not the pad id."""
    size = hf.load(spoken).tokenizer.vocabulary.size
    rows = lambda arrays: {n: (a[:size] if "word_embeddings" in n else a) for n, a in arrays.items()}
    folder = make(tmp_path / "roberta", "RobertaModel", rows, vocab_size=size)
    shutil.copy(spoken / "tokenizer.json", folder)
    assert "model_type is 'roberta', which stands for BPE, and the model in tokenizer.json is WordPiece" in refused(folder)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    said = refused(folder)
    assert "the tokenizer has the pad id 0, with which model.first_position would be 1 and is 2" in said


def test_a_frame_of_another_family_is_the_models_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A BERT with the files of a vocabulary that puts CLS last, whose type transformers refuses; one that agrees is silent."""
    tool = unigram.train(["the cat sat on a mat"] * 9, 40)
    run = Run(HeadsConfig(), dataclasses.replace(tiny.MODEL, layers=1)).with_vocabulary(tool.vocabulary)
    hf.save(tmp_path / "theirs", Model(run, tiny.drawn(run), tool))
    found = hf.load(tmp_path / "theirs").tokenizer
    assert "texts are framed as bert models read them, <cls> A <sep>, with their token types; the tokenizer's files have A <sep> <cls>" in (
        capsys.readouterr().err
    )
    assert found.frame(2) == tool.in_frame(CLS_FIRST).frame(2) and found.vocabulary == tool.vocabulary
    hf.save(tmp_path / "ours", hf.load(tmp_path / "theirs"))
    capsys.readouterr()
    assert hf.load(tmp_path / "ours").tokenizer.files == found.files and not capsys.readouterr().err


def test_a_tokenizer_from_another_folder(spoken: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(spoken, bare, ignore=shutil.ignore_patterns("tok*", "vocab*"))
    assert hf.load(bare).tokenizer is None
    assert hf.load(bare, str(spoken)).tokenizer.vocabulary == hf.load(spoken).tokenizer.vocabulary


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "tokenizer.json"])
def test_a_kind_of_tokenizer_that_we_do_not_open_is_left_out_with_a_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The weights are worth having; where the folder was asked for by --tokenizer, it is an error, and so is a damaged file."""
    folder = make(tmp_path, "RobertaModel")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "XLMRobertaTokenizer"}))
    (folder / name).write_bytes(spiece_models.trained(model_type="bpe") if name.endswith(".model") else b"{}")
    assert hf.load(folder).tokenizer is None
    assert "tokenizer_config.json: tokenizer_class " in (said := capsys.readouterr().err) and said.count("\n") == 1
    with pytest.raises(UserError, match="tokenizer_class .*; `--tokenizer none` converts without it"):
        hf.load(folder, str(folder))
    (folder / "tokenizer.json").write_text("{")
    assert "`--tokenizer none` converts without it" in refused(folder)


def test_fairseqs_missing_types_leave_as_a_row_of_zeros(tmp_path: Path) -> None:
    first = hf.load(make(tmp_path / "theirs", "RobertaForMaskedLM"))
    params = dict(first.params)
    params["embeddings"] = {name: leaf for name, leaf in params["embeddings"].items() if name != "type"}
    run = dataclasses.replace(first.config, model=dataclasses.replace(first.config.model, types=0))
    hf.save(tmp_path / "out", dataclasses.replace(first, config=run, params=params))
    out = folders.read(tmp_path / "out" / "model.safetensors")
    assert (out["roberta.embeddings.token_type_embeddings.weight"] == np.zeros((1, 8), np.float32)).all()
    assert hf.load(tmp_path / "out").config.model.types == 1


def test_a_failed_export_leaves_nothing(tmp_path: Path) -> None:
    first = hf.load(make(tmp_path / "theirs", "BertModel"))
    params = {**first.params, "pooler": {"dense": {"kernel": np.full((8, 8), 1e30, np.float32), "bias": np.zeros(8, np.float32)}}}
    with pytest.raises(UserError, match="pooler.dense.weight holds numbers too large for float16"):
        hf.save(tmp_path / "out", dataclasses.replace(first, params=params), "float16")
    with pytest.raises(UserError, match="theirs: exists already"):
        hf.save(tmp_path / "theirs", first)
    assert {path.name for path in tmp_path.iterdir()} == {"theirs"}


@pytest.mark.parametrize(
    "architecture, field, rates",
    [
        ("BertForSequenceClassification", "classifier_dropout", (0.0, 0.3)),
        ("RobertaForSequenceClassification", "classifier_dropout", (0.3, 0.3)),
        ("RobertaForTokenClassification", "classifier_dropout", (0.3,)),
        ("ElectraForSequenceClassification", "classifier_dropout", (0.3, 0.3)),
        ("XLNetForSequenceClassification", "summary_last_dropout", (0.3, 0.0)),
    ],
)
def test_dropout_on_what_a_head_reads_is_kept(architecture: str, field: str, rates: tuple[float, ...], tmp_path: Path) -> None:
    """A rate of its own, in and out; none where it is the family's."""
    found = hf.load(make(tmp_path / "theirs", architecture, **{field: 0.3}))
    assert found.config.objective.dropout == rates
    hf.save(tmp_path / "out", found)
    assert json.loads((tmp_path / "out" / "config.json").read_text())[field] == 0.3
    assert hf.load(tmp_path / "out").config == found.config
    assert hf.load(make(tmp_path / "usual", architecture, **{field: None})).config.objective.dropout == ()
    assert f"{field} is 1.0" in refused(make(tmp_path / "none", architecture, **{field: 1.0}))
