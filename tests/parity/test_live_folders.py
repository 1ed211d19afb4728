"""Folders as transformers 2 to 5 wrote them, without a tokenizer.json or with one: the ids of AutoTokenizer."""

import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import transformers

from jaxenc.data.tokenizers import bpe, load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.published import classes
from tests.data.hard_texts import mixed

TEXT = ["The quick brown fox jumps over the lazy dog.", "Kantō İstanbul 京都 сад", "don't I'll 12 3.5", "newton e1 NASA block new york"] * 4
ADDED = ["E1", "E12", "[DIST]", "new york", "C++", "c", "C+", "<e>", "ab", "abc", "É", "ERROR"]
TEXTS = [
    *("E1 E12 [DIST] block", "xE1 e1 E1x", "NEW YORK new york", "C++ c++ C+", "<e> <E>", "ab abc abcd", "Error É é", ""),
    *("fox [MASK] dog", "fox<mask>dog", "[CLS] [SEP] <s> </s>", "<pad> [PAD] [UNK] <unk>", "Kantō ÉCOLE"),
    *mixed(30, ADDED),
]
OFF = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
BERT = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
ROBERTA = {
    **{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>", "cls_token": "<s>"},
    "mask_token": {**OFF, "__type": "AddedToken", "content": "<mask>", "lstrip": True},
}


def decoder(size: int) -> dict[str, Any]:
    """Added pieces as the slow tokenizers of transformers 4 wrote them in tokenizer_config.json."""
    return {str(size + n): {**OFF, "content": piece, "normalized": True, "special": False} for n, piece in enumerate(ADDED)}


def old(size: int, step: int = 1) -> dict[str, int]:
    """added_tokens.json, with ids that fall."""
    return {piece: size + step * n for n, piece in reversed(list(enumerate(ADDED)))}


# {name: the files beside vocab.txt or vocab.json with merges.txt, of a vocabulary of `n` pieces}
FOLDERS = {
    "a class": lambda n, own: {},
    "added_tokens.json": lambda n, own: {"added_tokens": old(n)},
    "added_tokens.json with gaps": lambda n, own: {"added_tokens": old(n, 2)},
    "added_tokens.json of a piece that is there": lambda n, own: {"added_tokens": {"fox": 7, "E1": n}},
    "the old special_tokens_map": lambda n, own: {
        **{"special_tokens_map": own | {"additional_special_tokens": ["[DIST]"]}, "added_tokens": old(n)},
    },
    "added_tokens_decoder": lambda n, own: {"tokenizer_config": own | {"added_tokens_decoder": decoder(n)}},
    "extra pieces": lambda n, own: {"tokenizer_config": {"additional_special_tokens": ["[DIST]", "<e>"]}},
    "other padding": lambda n, own: {"tokenizer_config": {"pad_token": own["sep_token"]}},
    "another separator": lambda n, own: {"special_tokens_map": {"sep_token": own["cls_token"]}},
    "the mask is a word": lambda n, own: {"tokenizer_config": {"mask_token": "E"}, "added_tokens": {"E": n}},
    "special pieces are text": lambda n, own: {"tokenizer_config": {"split_special_tokens": True}},
    "a blank before a text": lambda n, own: {"tokenizer_config": {"add_prefix_space": True}},
}


@functools.cache
def vocabulary(kind: str) -> dict[str, bytes]:
    """The original format's files."""
    rule = Normalization("nfc", True, True) if kind == "BertTokenizer" else Normalization("none")
    with tempfile.TemporaryDirectory() as folder:
        (wordpiece if kind == "BertTokenizer" else bpe).train(TEXT, 340, rule).save(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir() if not path.name.startswith("tokenizer")}


def written(folder: Path, kind: str, files: dict[str, Any]) -> Path:
    """A vocabulary in its original format, with `files` beside it by the start of their names."""
    folder.mkdir(exist_ok=True)
    for name, held in vocabulary(kind).items():
        (folder / name).write_bytes(held)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def compare(folder: Path) -> Any:
    """Holds the ids of `load` against those of AutoTokenizer, and returns both."""
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True), load(folder)
    special = {*theirs.all_special_tokens, *(str(one) for one in theirs.added_tokens_decoder.values() if one.special)}
    for text in TEXTS:
        assert ours.encode_prompt(text) == theirs(text)["input_ids"], text
        if not any(piece.lower() in text.lower() for piece in special):
            ids = theirs(text, add_special_tokens=False)["input_ids"]
            assert ours.encode([text])[0] == ours.encode_flat([text]).tokens.tolist() == ids, text
    for role in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(ours.vocabulary, role) == getattr(theirs, f"{role}_token_id"), role
    return theirs, ours


@pytest.mark.parametrize("kind", ["BertTokenizer", "RobertaTokenizer"])
@pytest.mark.parametrize("name", FOLDERS)
def test_r09_files_beside_the_original_format_are_read_as_transformers_reads_them(kind: str, name: str, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", kind, {})
    size = load(folder).vocabulary.size
    own = BERT if kind == "BertTokenizer" else ROBERTA
    files = FOLDERS[name](size, own)
    mask = {} if kind == "BertTokenizer" or "special_tokens_map" in files else {"mask_token": ROBERTA["mask_token"]}
    if "special_tokens_map" in files:  # there without __type
        plain = lambda value: {flag: one for flag, one in value.items() if flag != "__type"} if isinstance(value, dict) else value
        files["special_tokens_map"] = {"mask_token": own["mask_token"]} | files["special_tokens_map"]
        files["special_tokens_map"] = {role: plain(value) for role, value in files["special_tokens_map"].items()}
    files["tokenizer_config"] = {"tokenizer_class": kind, **mask, **files.get("tokenizer_config", {})}
    for key, content in files.items():
        (folder / f"{key}.json").write_text(json.dumps(content))
    theirs, ours = compare(folder)
    theirs.save_pretrained(tmp_path / "theirs")
    ours.save(tmp_path / "ours")
    assert compare(tmp_path / "theirs")[1].encode(TEXTS) == compare(tmp_path / "ours")[1].encode(TEXTS) == ours.encode(TEXTS)


def test_r15_a_vocab_txt_with_odd_lines_after_save_pretrained(tmp_path: Path) -> None:
    """Its tokenizer.json has ids without a piece."""
    folder = written(tmp_path / "in", "BertTokenizer", {"tokenizer_config": {"tokenizer_class": "BertTokenizer"}})
    lines = (folder / "vocab.txt").read_text().splitlines()
    (folder / "vocab.txt").write_text("\n".join([*lines[:30], "fox", "", *lines[30:], "the ", "dog\t", "the", ""]))
    theirs, ours = compare(folder)
    theirs.save_pretrained(tmp_path / "out")
    for beside in (False, True):
        if beside:
            shutil.copy(folder / "vocab.txt", tmp_path / "out")
        assert compare(tmp_path / "out")[1].vocabulary.size == ours.vocabulary.size == len(lines) + 5


@pytest.mark.parametrize("family", [name for name, kind in classes.MODEL_TYPES.items() if kind in (classes.BERT, classes.ROBERTA)])
def test_the_class_of_a_model_type_is_that_of_transformers(family: str, tmp_path: Path) -> None:
    kind = "BertTokenizer" if classes.MODEL_TYPES[family] == classes.BERT else "RobertaTokenizer"
    folder = written(tmp_path, kind, {"config": {"model_type": family}})
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert load(folder).encode(["The fox É"]) == [theirs("The fox É", add_special_tokens=False)["input_ids"]]


@pytest.mark.parametrize("name", [name for name, kind in classes.CLASSES.items() if kind in (classes.BERT, classes.ROBERTA)])
def test_each_class_has_the_rules_of_its_kind(name: str, tmp_path: Path) -> None:
    kind = "BertTokenizer" if classes.CLASSES[name] == classes.BERT else "RobertaTokenizer"
    mask = {} if kind == "BertTokenizer" else {"mask_token": ROBERTA["mask_token"]}
    compare(written(tmp_path, kind, {"tokenizer_config": {"tokenizer_class": name, **mask}}))
