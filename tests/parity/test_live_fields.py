"""Each field of a published folder's files, changed alone: the ids of AutoTokenizer, or a refusal that names the field."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from jaxenc.data.tokenizers import bpe, load, wordpiece
from jaxenc.data.tokenizers.normalization import Normalization
from tests.data import word_bpe_files
from tests.data.test_sentencepiece import model_of
from tests.parity import fields
from tests.parity.fields import Files
from tests.selection import FULL, thinned

TEXT = ["The quick brown fox jumps over the lazy dog.", "Kantō Ångström İstanbul 京都 сад", "don't I'll we've 12 3.5", "newton e1"] * 4
TEXTS = [
    *("hello world", "The the THE", "  two  blanks ", "a\tb\n\nc\r\n", "\u00a0x\u00a0", "\0 a\0b", "\u0301a", "", "   "),
    *("\x85\u200b\ufeff\ufffd", "🥱 📷🤏", "日本語。世界!", "京都 京都町", "é e\u0301 ﬁ İ", "x" * 120, "dog " * 20, "안녕"),
    *("E1 E12 [DIST] block", "e1e12", "xE1", "E1.", "[dist]", "[NEW] [new]", "<new>x", "new word", "fox [MASK] dog", "fox <mask> dog"),
    *("a[MASK]b", "a <mask>", "[CLS] fox [SEP]", "<s>fox</s>", "<cls> a <sep>", "<eop> <eod>", "<unk> [UNK]", "<pad> [PAD]"),
    *("don't I'll", "12 345", "3.14", "``quoted'' \"text\"", "The-quick, brown;fox", "(a)", "a  b", "Kantō", "сад Сад", "##a", "Ġa"),
    *("▁the the▁", "the fox the", "x", "@@", "jumps jumping", "over-lazy"),
]
ADDED = {"E1": 0, "E12": 1, "[DIST]": 2, "new word": 3}  # after the vocabulary


def saved(name: str, tool: Any, **settings: Any) -> Files:
    """The files that transformers writes for a tokenizer of its own, with truncation and padding as published files have them."""
    with tempfile.TemporaryDirectory() as folder:
        tool.save_pretrained(folder)
        files = {path.name: json.loads(path.read_text()) for path in Path(folder).iterdir() if path.suffix == ".json"}
    files["tokenizer.json"] |= {
        "truncation": {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            **{"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0},
            "pad_token": tool.pad_token or tool.unk_token,
        },
    }
    files["tokenizer_config.json"] |= {"tokenizer_class": name, "model_max_length": 512, **settings}
    return files


def with_old_files(files: Files) -> Files:
    """As transformers 4 wrote them for a tokenizer to which pieces were added."""
    size = len(files["tokenizer.json"]["model"]["vocab"])
    written = files["tokenizer_config.json"]
    roles = {name: value for name, value in written.items() if name.endswith("_token")}
    config = {name: value for name, value in written.items() if not (name in roles or "special" in name or name == "added_tokens_decoder")}
    mask = {"content": roles.get("mask_token", ""), "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
    roles |= {"mask_token": mask} if "mask_token" in roles else {}
    extra = {"additional_special_tokens": ["[DIST]"]}
    return {
        **{"tokenizer.json": files["tokenizer.json"], "tokenizer_config.json": config, "special_tokens_map.json": roles | extra},
        "added_tokens.json": {piece: size + n for piece, n in ADDED.items()},
    }


def bert() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        wordpiece.train(TEXT, 150, Normalization("nfc", True, True)).save(folder)
        (Path(folder) / "tokenizer.json").unlink()
        (Path(folder) / "tokenizer_config.json").unlink()
        return saved("BertTokenizer", transformers.BertTokenizer.from_pretrained(folder), strip_accents=None, do_lower_case=True)


def roberta() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        bpe.train(TEXT, 290, Normalization("none")).save(folder)
        return saved("RobertaTokenizer", transformers.RobertaTokenizer.from_pretrained(folder))


def unigram(name: str) -> Files:
    names = {
        "XLNetTokenizer": {"control_symbols": "<cls>,<sep>,<pad>,<mask>,<eod>", "user_defined_symbols": "<eop>,."},
        "AlbertTokenizer": {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"},
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rule.tsv").write_text("FB01\t66 69\n41\t61\n")
        options = {"vocab_size": 120, "hard_vocab_limit": False, "normalization_rule_tsv": f"{folder}/rule.tsv"}
        model_of(Path(folder), texts=TEXT, **options, **names[name])
        return saved(name, getattr(transformers, name).from_pretrained(folder))


def gpt() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        word_bpe_files.write(Path(folder), TEXT, 150)
        return saved("OpenAIGPTTokenizer", transformers.OpenAIGPTTokenizer.from_pretrained(folder))


def ours() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        wordpiece.train(TEXT, 150).save(folder)
        return {name: json.loads((Path(folder) / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")}


def with_added(files: Files) -> Files:
    """The class that follows the file, and pieces after the vocabulary, with flags of every kind."""
    size = len(files["tokenizer.json"]["model"]["vocab"])
    flags = [{"single_word": True, "normalized": True}, {"lstrip": True, "normalized": True}, {"rstrip": True}, {"normalized": True}]
    off = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    entries = [{"id": size + n, "content": piece, **off, **flags[n]} for piece, n in ADDED.items()]
    data = files["tokenizer.json"] | {"added_tokens": [*files["tokenizer.json"]["added_tokens"], *entries]}
    decoder = {str(entry["id"]): {name: value for name, value in entry.items() if name != "id"} for entry in data["added_tokens"]}
    config = files["tokenizer_config.json"] | {"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": decoder}
    return {"tokenizer.json": data, "tokenizer_config.json": config}


KINDS: dict[str, Callable[[], Files]] = {
    "bert": bert,
    "bert, old files": lambda: with_old_files(bert()),
    "bert, the file alone": lambda: with_added(bert()),
    "roberta": roberta,
    "roberta, old files": lambda: with_old_files(roberta()),
    "xlnet": lambda: unigram("XLNetTokenizer"),
    "albert": lambda: unigram("AlbertTokenizer"),
    "albert, the file alone": lambda: with_added(unigram("AlbertTokenizer")),
    "gpt-1": gpt,
    "ours": ours,
}
SHORT = 12  # one change in so many, in the short suite


def check(kind: str, part: int, folder: Path) -> Counter[tuple[str, str]]:
    """Compares one change in `part`; {(file, 'same' or 'refused'): how many}."""
    files, wrong, counts = KINDS[kind](), [], Counter()
    fields.write(folder, files)
    for change in fields.changes(files):
        if change.number % part == 0:
            found = fields.compared(folder, change, files, TEXTS)
            counts[change.file, found if found in fields.OUTCOMES else "wrong"] += 1
            wrong += [] if found in fields.OUTCOMES else [found]
    assert not wrong, f"{len(wrong)} wrong of {counts.total()}:\n" + "\n".join(wrong[:20])
    return counts


@pytest.mark.parametrize("kind", thinned(KINDS, *list(KINDS)[::3]))
def test_each_field_is_followed_or_named(kind: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """One change in SHORT; the long suite compares all of them. What transformers opens is refused for fewer than one change in ten. The
    counts are in the report of the run."""
    counts = check(kind, 1 if FULL else SHORT, tmp_path / "tok")
    record_property("compared", ", ".join(f"{file}: {count} {outcome}" for (file, outcome), count in sorted(counts.items())))
    refused = sum(count for (_, outcome), count in counts.items() if outcome == "refused")
    assert counts.total() and (not FULL or refused < counts.total() / 10)


@pytest.mark.parametrize("kind", KINDS)
def test_r09_a_saved_folder_gives_its_ids_in_transformers(kind: str, tmp_path: Path) -> None:
    """Added pieces with their flags too, beside the config.json of a model whose class there has rules of its own."""
    fields.write(tmp_path / "theirs", KINDS[kind]())
    ours = load(tmp_path / "theirs")
    ours.save(tmp_path / "saved", 512)
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "bert"}')
    prompts, plain, special = fields.theirs(tmp_path / "saved", TEXTS)
    assert [ours.encode_prompt(text) for text in TEXTS] == prompts and load(tmp_path / "saved").vocabulary == ours.vocabulary
    reserved = special | {ours.token(index) for index in ours.vocabulary.reserved}
    texts = [(text, ids) for text, ids in zip(TEXTS, plain, strict=True) if not any(piece.lower() in text.lower() for piece in reserved)]
    assert len(texts) > 30 and ours.encode([text for text, _ in texts]) == [ids for _, ids in texts]
