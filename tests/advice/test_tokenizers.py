"""The advice about the files of a tokenizer, followed: fields, lines and files as the message says, and the folder then opens."""

import codecs
import functools
import gzip
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import bpe
from jaxenc.errors import UserError
from tests.advice import edits
from tests.advice.edits import GONE, Edit, Rule, in_copies, line, put, removed, rewrite, together
from tests.advice.following import follow, listed, literal
from tests.training.conftest import SYLLABLES, TRAINERS

CONFIG, MAP, ADDED, DEFINITION = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A folder of each kind as it is saved, of its original files alone, and of its tokenizer.json alone."""
    root = tmp_path_factory.mktemp("bases")
    for kind, train in {**TRAINERS, "bpe": lambda words: bpe.train([" ".join(words)] * 3, 300)}.items():
        train(WORDS).save(root / kind)
        for name, left in {"files": DEFINITION, "definition": ""}.items():
            shutil.copytree(root / kind, root / f"{kind}-{name}")
            for path in (root / f"{kind}-{name}").iterdir():
                if path.name == left or (not left and path.name not in (DEFINITION,)):
                    path.unlink()
    return {path.name: path for path in root.iterdir()}


PIECES = {"wordpiece": "[PAD]", "bpe": "<pad>", "unigram": "<pad>", "characters": "<S>"}


def _again(base: Path) -> Rule:
    """`make the tokenizer again, or copy it again`: the folder as it was."""

    def copied(folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(base, folder)

    return lambda match, error: [copied]


def rules(base: Path) -> dict[str, Rule]:
    """The advice that needs to know the kind of tokenizer."""
    piece = PIECES[base.name.partition("-")[0]]
    write = lambda *values: lambda match, error: [put(edits._file(error), edits._field(error), value) for value in values]
    return {
        r"^write a piece$": write(piece),
        r"^name a piece$": write(piece),
        r"^write an object with the piece as its content$": write({"content": piece}),
        r"^write (.+), and true or false$": lambda match, error: [_normal(form, on) for form in listed(match[1]) for on in (True, False)],
        r"^write how many words are predicted, (\d+) to (\d+)$": lambda match, error: write(int(match[1]), int(match[2]))(match, error),
        r"^write (\w+) as (tokenizer_class) in tokenizer_config.json": lambda match, error: [put(CONFIG, match[2], match[1])],
        r"^write tokenizer_class in \S+: (\w+)": lambda match, error: [put(CONFIG, "tokenizer_class", match[1])],
        r'or write "(\w+)": "(\w+)" in': lambda match, error: [put(CONFIG, match[1], match[2])],
        r"^write (gpt2 or marks)$": lambda match, error: [put(CONFIG, "word_pattern", value) for value in listed(match[1])],
        r"again$|^copy the file itself again": _again(base),
        r"^start it with (.+), in this order$": lambda match, error: [
            rewrite(
                "vocab.txt",
                lambda content: "\n".join([*match[1].split(), *sorted({*content.decode().split()} - {*match[1].split()})]).encode(),
            )
        ],
        r"^put each on a line of its own, after the others": lambda match, error: [
            rewrite("vocab.txt", lambda content: content.rstrip(b"\n") + ("\n" + "\n".join(error.what.split()[1:]) + "\n").encode())
        ],
        r"\((.+ > new)\)": lambda match, error: [edits.shell(f"{match[1]}; mv new vocab.txt")],
        r"^rename the right one to (\S+)$": lambda match, error: [edits.shell(f"mv a.model {match[1]}")],
        r"^append the added pieces to it, and remove that file$": lambda match, error: [
            edits.shell(
                "python3 -c \"import json; print(*json.load(open('added_tokens.json')), sep='\\n')\" >> vocab.txt; rm added_tokens.json"
            )
        ],
        r"^write the id of the piece$": lambda match, error: [
            put(DEFINITION, "post_processor " + re.match(r"post_processor\.(\S+)", error.what)[1].replace(".", " "), [1])
        ],
        r"^name a piece of it$": lambda match, error: [put(DEFINITION, "model unk_token", "[UNK]")],
        r"^name a vocab.txt in UTF-8$": _again(base),
    }


def _normal(form: str, on: bool) -> Edit:
    return together(*(put(CONFIG, name, value) for name, value in (("normalize", form), ("do_lower_case", on), ("strip_accents", on))))


WP, BPE, SP, WL = "wordpiece", "bpe", "unigram", "characters"
FAULTS: list[tuple[str, Edit]] = [
    (WP, put(CONFIG, "do_lower_case", 3)),
    (WP, put(CONFIG, "strip_accents", 3)),
    (WP, put(CONFIG, "padding_side", "up")),
    (WP, put(CONFIG, "model_max_length", "x")),
    (WP, put(CONFIG, "model_input_names", 3)),
    (WP, put(CONFIG, "init_inputs", [1])),
    (WP, put(CONFIG, "fast_tokenizer_files", ["other.json"])),
    (WP, put(CONFIG, "additional_special_tokens", 3)),
    (WP, put(CONFIG, "pad_token", 3)),
    (WP, put(CONFIG, "pad_token", {"__type": "AddedToken", "content": 3})),
    (WP, put(CONFIG, "pad_token", {"__type": "AddedToken", "content": "[PAD]", "lstrip": 3})),
    (WP, put(MAP, "pad_token", {"content": "[PAD]", "lstrip": 3})),
    (WP, put(MAP, "name", "x")),
    (WP, put(ADDED, "zebra", "x")),
    (WP, put(CONFIG, "tokenizer_class", "T5Tokenizer")),
    (WP, together(put(CONFIG, "tokenizer_class", GONE), put("config.json", "model_type", "t5"))),
    (WP, put(MAP, "additional_special_tokens", 3)),
    (WP, put(CONFIG, "tokenizer_class", "RobertaTokenizer")),
    (WP, put(DEFINITION, "model", 3)),
    (WP, put(DEFINITION, "model type", "Nothing")),
    (WP, put(DEFINITION, "model unk_token", "zebra")),
    (WP, put(DEFINITION, "post_processor special_tokens [CLS] ids", [5000])),
    (WP, rewrite(DEFINITION, lambda content: content[:-9])),
    (WP, rewrite(CONFIG, lambda content: content[:-9])),
    (BPE, put(DEFINITION, "model dropout", 0.1)),
    (BPE, put(DEFINITION, "model merges", ["zz yy"])),
    ("wordpiece-files", put(CONFIG, "do_lower_case", 3)),
    ("wordpiece-files", put(CONFIG, "normalize", "nfx")),
    ("wordpiece-files", line("vocab.txt", 30, " a ")),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: codecs.BOM_UTF8 + content)),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: content.replace(b"[MASK]\n", b""))),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: b"")),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: b"<html>")),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: gzip.compress(content))),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: content.decode().encode("utf-16"))),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: content.decode().encode("utf-16-le"))),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: content + b"baba\n")),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: b"\xff" + content)),
    ("bpe-files", put(CONFIG, "word_pattern", "x")),
    ("bpe-files", put("vocab.json", "a", 70)),
    ("bpe-files", put("vocab.json", "a", GONE)),
    ("bpe-files", rewrite("merges.txt", lambda content: content + b"zz yy\n")),
    (SP, rewrite("spiece.model", lambda content: content[:40])),
    ("unigram-files", rewrite("spiece.model", lambda content: b"text")),
    (WL, put(CONFIG, "predicted_words", 2)),
    ("wordpiece-files", together(rewrite("vocab.txt", lambda content: content + b"baba\n"), put(ADDED, "zebra", 110))),
    ("wordpiece-files", rewrite("vocab.txt", lambda content: b"<S>\n</S>\n" + content)),
    ("characters-files", rewrite("vocab.txt", lambda content: b"</S>\n<S>\n<UNK>\nword")),
    ("characters-files", rewrite("vocab.txt", lambda content: b"<S>\n</S>\n<UNK>\nword\n\nother")),
    ("characters-files", rewrite("vocab.txt", lambda content: b"<S>\n</S>\n<UNK>\nword\nother\nword")),
    (SP, together(removed(DEFINITION), edits.shell("mv spiece.model a.model; cp a.model b.model"))),
    ("unigram-files", together(put(CONFIG, "do_lower_case", 3), put(CONFIG, "keep_accents", True))),
]  # fmt: skip


# kind, pieces to add
PIECES_TO_ADD: list[tuple[str, tuple[str, ...]]] = [
    *((kind, pieces) for kind in (WP, BPE, SP) for pieces in ((), (" ",), ("zebra", "zebra"))),
    (WP, ("baba",)),
    (WP, ("zebra fox",)),
    (WP, ("e\u0301",)),
    (WP, ("z" * 120,)),
    (BPE, ("[",)),
    (BPE, ("Ġzebra",)),
    (BPE, ("e\u0301",)),
    (SP, ("a" * 100_000,)),
    (SP, ("zebra fox",)),
    (SP, ("e\u0301",)),
]


def other_pieces(error: UserError, pieces: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The pieces that the advice of an error says to add instead."""
    named = re.match(r"('(?:[^'\\]|\\.)*')(\.\.\.)?", error.what)
    piece = literal(named[1]) if named else ""
    kept = tuple(one for one in pieces if not (one == piece or (named and named[2] and one.startswith(piece))))
    read = literal(re.search(r"read as ('.*')( in a text)?$", error.what)[1]) if "read as" in error.what else piece
    rules = {
        r"^leave it out$": [(*kept, "quagga")],
        r"^write it as it is read": [(*kept, read)],
        r"^write ('.+')$": [(*kept, literal(error.fix.removeprefix("write ")))],
        r"^give every piece once$": [tuple(dict.fromkeys(pieces))],
        r"^give each word as a piece of its own$": [(*kept, *re.findall(r"'([^']+)'", error.what.partition(" words, ")[2]))],
        r"^give words, one each, as they are read$": [(*kept, *read.split())],
        r"^name at least one$|^give pieces with at least one character$": [(*kept, "quagga")],
        r"^give a piece of at most (\d+)$": [(*kept, "q" * int((re.findall(r"\d+", error.fix) or [1])[0]))],
    }
    return next((attempts for pattern, attempts in rules.items() if re.search(pattern, error.fix)), [])


@pytest.mark.parametrize("kind, pieces", PIECES_TO_ADD, ids=lambda value: ascii(value)[:40])
def test_of_added_pieces(kind: str, pieces: tuple[str, ...], bases: Mapping[str, Path]) -> None:
    tool = tokenizers.load(bases[kind])
    assert follow(tool.extended, pieces, other_pieces)


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_of_files(number: int, bases: Mapping[str, Path], tmp_path: Path) -> None:
    kind, fault = FAULTS[number]
    act = in_copies(bases[kind], tmp_path, tokenizers.load)
    assert follow(act, (fault,), functools.partial(edits.advised, more=rules(bases[kind])))
