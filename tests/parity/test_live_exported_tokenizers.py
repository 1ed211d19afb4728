"""Our tokenizers in transformers: AutoTokenizer opens the folder, alone and as part of an exported model, and gives our ids.

The full suite asks 2,000 texts of 40 scripts of every vocabulary (tests/data/hard_texts.py), the short one fewer texts of fewer.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sentencepiece as library
import transformers

from jaxenc.cli.main import main
from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, word_list, wordpiece
from jaxenc.data.tokenizers.normalization import FORMS, Normalization
from jaxenc.data.tokenizers.sentencepiece import model_file, model_folder, unigram
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from tests import tiny
from tests.data import word_bpe_files
from tests.data.hard_texts import mixed
from tests.data.scripts import SENTENCES
from tests.selection import FULL

COUNT = 2000 if FULL else 120
ENGLISH = ["The quick brown fox jumps over the lazy dog.", "don't I'll we've 12 3.5 (café) 1,000"]
TEXT = [*ENGLISH, *(line for lines in SENTENCES.values() for line in lines)] * 3
# New pieces: a word, accents, other scripts; a piece inside of words, a word with its blank, two words, a letter that is also a byte's.
NEW = ["quagga", "quaggé", "Ångquag", "ξένοςβ", "กขคง"]
MORE = {"wordpiece": ["##quag", "##ξβ"], "bpe": ["京都町", " quagga", "two words", "ð"], "unigram": ["京都町"], "word_bpe": ["ð"]}
# google-research/albert and zihangdai/xlnet, README.md: how their models were trained.
SPIECE = {
    "xlnet": {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>", ".", "(", ")", "-"]},
    "albert": {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]},
}
TRAIN = {
    "wordpiece": wordpiece.train,
    "bpe": bpe.train,
    "word_bpe": word_bpe.train,
    "unigram": unigram.train,
    "characters": word_list.train,
}


def trained(kind: str, rule: Normalization) -> Tokenizer:
    return TRAIN[kind](TEXT, 2200, rule)


def reopened(made: Tokenizer, keep: Sequence[str], settings: dict[str, bool]) -> Tokenizer:
    """`made` from the files `keep` of its folder, as authors publish them, with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        made.save(folder)
        for path in Path(folder).iterdir():
            if path.name not in keep:
                path.unlink()
        (Path(folder) / "tokenizer_config.json").write_text(json.dumps(settings))
        return load(folder)


def vocab_txt(lowercase: bool, strip_accents: bool, chinese: bool = True) -> Tokenizer:
    """A vocabulary read by BERT's own rule."""
    made = trained("wordpiece", Normalization("nfc", lowercase, strip_accents))
    settings = PublishedRules(lowercase, strip_accents, chinese).settings
    return reopened(made, ["vocab.txt"], settings)


def spiece(family: str, lowercase: bool, keep_accents: bool) -> Tokenizer:
    """A model that the sentencepiece library made by the published flags."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"model_prefix": f"{folder}/spiece", "vocab_size": 2200, "hard_vocab_limit": False, "minloglevel": 2}
        library.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), **options, **SPIECE[family])
        (Path(folder) / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase, "keep_accents": keep_accents}))
        return load(folder)


def gpt(standardize: bool) -> Tokenizer:
    with tempfile.TemporaryDirectory() as folder:
        made = word_bpe_files.write(Path(folder), TEXT, 2200)
        (made / "tokenizer_config.json").write_text(json.dumps({"standardize": standardize}))
        return load(made)


def repeated() -> Tokenizer:
    """R15: pieces on several lines of vocab.txt, and a blank line."""
    with tempfile.TemporaryDirectory() as folder:
        trained("wordpiece", Normalization(lowercase=True, strip_accents=True)).save(folder)
        path = Path(folder) / "vocab.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("".join(f"{line}\n" for line in [*lines[:9], "fox", "", "##o", *lines[9:], "the", "fox"]), encoding="utf-8")
        return wordpiece.from_vocab(path, PublishedRules(True, True))


RULES = [Normalization(form, *case) for form in FORMS for case in ((False, False), (True, True), (True, False), (False, True))]
NAMED = {
    f"{kind}, {rule.form}{', lower' * rule.lowercase}{', no accents' * rule.strip_accents}": (kind, rule)
    for kind in TRAIN
    for rule in RULES
}
MADE: dict[str, Callable[[], Tokenizer]] = {
    **{name: lambda kind=kind, rule=rule: trained(kind, rule) for name, (kind, rule) in NAMED.items()},
    "characters, pretokenized": lambda: word_list.train(TEXT, 2200, pretokenized=True),
    "wordpiece, uncased": lambda: vocab_txt(True, True),
    "wordpiece, uncased with accents": lambda: vocab_txt(True, False),
    "wordpiece, cased": lambda: vocab_txt(False, False),
    "wordpiece, japanese": lambda: vocab_txt(False, False, chinese=False),
    "wordpiece, repeated": repeated,
    "bpe, roberta": lambda: reopened(trained("bpe", Normalization("none")), ["vocab.json", "merges.txt"], {}),
    "word_bpe, gpt": lambda: gpt(False),
    "word_bpe, gpt, standardized": lambda: gpt(True),
    "unigram, xlnet": lambda: spiece("xlnet", False, False),
    "unigram, xlnet, accents": lambda: spiece("xlnet", True, True),
    "unigram, albert": lambda: spiece("albert", True, False),
    "unigram, albert, accents": lambda: spiece("albert", False, True),
}
SHORT = (
    *("wordpiece, nfc", "wordpiece, nfkc, lower, no accents", "wordpiece, cased", "wordpiece, repeated", "bpe, nfc", "bpe, roberta"),
    *("word_bpe, nfc", "word_bpe, gpt", "unigram, nfc", "unigram, xlnet", "unigram, albert", "characters, nfc"),
)


def added(tool: Tokenizer, kind: str) -> list[str]:
    """New pieces for a vocabulary of this kind, as it reads texts."""
    pieces = dict.fromkeys(tool.written(piece) for piece in [*NEW, *MORE[kind]])
    return [piece for piece in pieces if piece != "ð" or kind == "bpe"]


def measure(tool: Tokenizer, folder: Path) -> Callable[[list[int]], object]:
    """What two readings of a text have in common: their ids; of a .model, which the sentencepiece library reads here, the text and its
    score, since that library and the tokenizers library choose differently among cuts that are equally probable (0 00 and 00 0)."""
    if not model_folder.is_source(folder):
        return tuple
    model = library.SentencePieceProcessor(model_file=str(folder / model_file.NAME))
    return lambda ids: (tool.decode(ids), round(sum(map(model.get_score, ids)), 3))


def agree(
    tool: Tokenizer, same: Callable[[list[int]], object], asked: Sequence[str], ours: Sequence[list[int]], theirs: Sequence[list[int]]
) -> None:
    """Every text has the same reading; of a tokenizer that says what transformers reads otherwise (`only_here`) all but one in twenty."""
    other = [text for text, one, two in zip(asked, ours, theirs, strict=True) if same(one) != same(two)]
    assert len(other) <= len(asked) / 20 * bool(tool.only_here), other[:3]


def compare(tool: Tokenizer, folder: Path, pieces: Sequence[str]) -> transformers.PreTrainedTokenizerBase:
    """The tokenizer of transformers, after prompts, types, corpus texts and decoded texts have been compared with those of `tool`."""
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    vocabulary = tool.vocabulary
    specials = [tool.token(index) for index in vocabulary.reserved if tool.token(index)]
    alone = (piece.removeprefix("##") for piece in pieces)
    asked = [*(f"a {piece} x{piece} {piece}y" for piece in alone), *mixed(COUNT, [*pieces, *specials])]
    said, measured = theirs(asked), measure(tool, folder)
    framed = [tool.encode_framed(text) for text in asked]
    agree(tool, measured, asked, [ids for ids, _ in framed], said["input_ids"])
    for (ours, own_types), ids, types in zip(framed, said["input_ids"], said.get("token_type_ids") or [None] * len(asked), strict=True):
        assert ours != ids or own_types == ([0] * len(ids) if types is None else types)
    plain = [text for text in mixed(COUNT, [*pieces, *NEW], seed=1) if not any(one.lower() in text.lower() for one in specials)]
    corpus = theirs(plain, add_special_tokens=False)["input_ids"]
    agree(tool, measured, plain, tool.encode(plain), corpus)
    seen = {index for ids in said["input_ids"] for index in ids}
    assert len(plain) > 0.9 * COUNT and len(seen) > min(300, 0.5 * vocabulary.ids)
    assert seen >= set(range(vocabulary.ids - len(pieces), vocabulary.ids)), "an added piece is in no text"
    if not getattr(theirs, "clean_up_tokenization_spaces", False):  # published BERT asks transformers to change what it decodes
        for ids in said["input_ids"][:: 10 if FULL else 4]:
            assert theirs.decode(ids) == tool.decode(ids)
    return theirs


CASES = [
    pytest.param(name, extended, id=f"{name}{', extended' * extended}", marks=() if name in SHORT else pytest.mark.full)
    for name in MADE
    for extended in (False, True)
    if not (extended and name.startswith("characters"))  # a list of words has a fixed order, and refuses more
]


@pytest.mark.parametrize("name, extended", CASES)
def test_a_saved_tokenizer_gives_its_ids_there_and_back(name: str, extended: bool, tmp_path: Path) -> None:
    tool, kind, pieces = MADE[name](), name.split(",")[0], []
    if extended:
        pieces = added(tool, kind)
        tool = tool.extended(pieces)
    tool.save(tmp_path / "ours")
    compare(tool, tmp_path / "ours", pieces).save_pretrained(tmp_path / "theirs")
    if name == "wordpiece, repeated":
        return  # its tokenizer.json lacks ids
    back, asked = load(tmp_path / "theirs"), mixed(COUNT, pieces, seed=2)
    measured = measure(tool, tmp_path / "ours")
    agree(tool, measured, asked, tool.encode(asked), back.encode(asked))
    agree(tool, measured, asked, *([one.encode_framed(text)[0] for text in asked] for one in (tool, back)))


SIZE = {"width": 8, "layers": 1, "heads": 2, "feed_forward": 32, "positions": 24}
# {model_type: (vocabulary, model, objective)}
EXPORTED = {
    "bert": ("wordpiece, uncased", BertConfig(**SIZE), MlmConfig()),
    "distilbert": ("wordpiece, nfc", DistilbertConfig(**SIZE), MlmConfig()),
    "electra": ("wordpiece, cased", ElectraConfig(**SIZE), RtdConfig()),
    "roberta": ("bpe, nfc", BertConfig(**SIZE, first_position=2, activation="gelu_erf"), MlmConfig()),
    "albert": ("unigram, albert", AlbertConfig(**SIZE), MlmConfig()),
    "xlnet": ("unigram, nfc", XlnetConfig(width=8, layers=1, heads=2, feed_forward=32), PlmConfig()),
    "gpt": ("word_bpe, nfc", GptConfig(**SIZE), CausalConfig()),
}


@pytest.mark.parametrize("family", [pytest.param(name, marks=() if name == "roberta" else pytest.mark.full) for name in EXPORTED])
def test_an_exported_model_has_the_tokenizer_with_its_new_pieces(family: str, tmp_path: Path) -> None:
    """Through the commands: resize-vocab, then export. The folder holds config.json, which names a class of its own in transformers."""
    name, model, objective = EXPORTED[family]
    tool = MADE[name]()
    run = Run(objective=objective, model=model, data=objective.rows).with_vocabulary(tool.vocabulary)
    Model(run, tiny.drawn(run), tool).save(tmp_path / "run")
    pieces = added(tool, name.split(",")[0])
    assert main(["resize-vocab", "--model", str(tmp_path / "run"), "--out", str(tmp_path / "more"), "--tokens", *pieces]) == 0
    assert main(["export", "--model", str(tmp_path / "more"), "--out", str(tmp_path / "out")]) == 0
    folder = next(path.parent for path in sorted((tmp_path / "out").rglob("config.json")))
    theirs = compare(tool.extended(pieces), folder, pieces)
    assert len(theirs) == json.loads((folder / "config.json").read_text())["vocab_size"]
