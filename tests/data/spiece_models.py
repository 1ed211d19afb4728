"""Small SentencePiece models of every type and setting, and lines of many scripts to read by them."""

import io
import json
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from tests.data.scripts import SENTENCES

# Special pieces of no family: the model gets a text as it is.
ROLES = {"pad_token": "<p>", "cls_token": "<c>", "sep_token": "<e>", "mask_token": "<m>"}
XLNET = {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>", *'.()"-–£€']}
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
TEXTS = [line for lines in SENTENCES.values() for line in lines]
RULE = "0041\t0058 0059\n0020 0062\t0042\n0E33\t0E4D 0E32\n"  # A to XY, a blank and b to B, a Thai vowel to its parts
SETTINGS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"model_type": "bpe"},
    "char": {"model_type": "char"},
    "word": {"model_type": "word"},
    "unigram, byte_fallback": {"byte_fallback": True},
    "bpe, byte_fallback": {"model_type": "bpe", "byte_fallback": True},
    "nfkc": {"normalization_rule_name": "nfkc"},
    "nmt_nfkc_cf": {"normalization_rule_name": "nmt_nfkc_cf"},
    "nfkc_cf": {"normalization_rule_name": "nfkc_cf"},
    "identity": {"normalization_rule_name": "identity"},
    "a table of one's own": {"rule": RULE},
    "denormalizer": {"back": RULE},
    "user_defined_symbols": {"user_defined_symbols": ["，", "。", "！", "ﬁ", "東京", "東", "▁x"]},
    "no add_dummy_prefix": {"add_dummy_prefix": False},
    "no remove_extra_whitespaces": {"remove_extra_whitespaces": False},
    "treat_whitespace_as_suffix": {"treat_whitespace_as_suffix": True},
    "bpe, treat_whitespace_as_suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
    "no split_by_whitespace": {"split_by_whitespace": False},
    "allow_whitespace_only_pieces": {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False, "split_digits": True},
}


def trained(texts: list[str] = TEXTS, **settings: Any) -> bytes:
    """A model file of at most 1400 pieces where `settings` do not say how many, with ROLES where they name no special pieces. The rarest
    characters are unknown. `rule`: the lines of a table of characters, for the text or, as `back`, from the pieces."""
    options = {"vocab_size": 1400, "character_coverage": 0.99, "minloglevel": 2, "control_symbols": [*ROLES.values()]} | settings
    options |= {"use_all_vocab": True} if options.get("model_type") in ("char", "word") else {}
    options |= {"hard_vocab_limit": False} if options.get("model_type", "unigram") == "unigram" else {}
    with tempfile.TemporaryDirectory() as place:
        for name, option in {"rule": "normalization_rule_tsv", "back": "denormalization_rule_tsv"}.items():
            if name in options:
                (path := Path(place) / name).write_text(options.pop(name))
                options[option] = str(path)
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, **options)
    return out.getvalue()


def folder(path: Path, content: bytes, config: dict[str, Any] | None = None, name: str = "spiece.model") -> Path:
    """A folder with the model and its tokenizer_config.json, ROLES where `config` is None."""
    path.mkdir(exist_ok=True)
    (path / name).write_bytes(content)
    (path / "tokenizer_config.json").write_text(json.dumps(ROLES if config is None else config))
    return path


def lines(count: int, seed: int = 0) -> list[str]:
    """Lines of all scripts, most of them changed in one or two ways."""
    random, out = np.random.default_rng(seed), []
    pick: Callable[[list], Any] = lambda choices: choices[random.integers(len(choices))]
    for _ in range(count):
        line = " ".join(pick(TEXTS) for _ in range(random.integers(1, 4)))
        for _ in range(random.integers(0, 3)):
            line = pick(CHANGES)(line, random)
        out.append(line)
    return out


def _put(*parts: str) -> Callable[[str, np.random.Generator], str]:
    """A change that puts one of `parts` at one to three places."""

    def change(line: str, random: np.random.Generator) -> str:
        for _ in range(random.integers(1, 4)):
            at, part = random.integers(len(line) + 1), parts[random.integers(len(parts))]
            line = line[:at] + part + line[at:]
        return line

    return change


def _wide(line: str, random: np.random.Generator) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" and random.random() < 0.5 else c for c in line)


def _shuffled(line: str, random: np.random.Generator) -> str:
    return "".join(random.permutation(list(line)))


CHANGES: list[Callable[[str, np.random.Generator], str]] = [
    _put("0", "7", "3.14", "92,000", "٣", "१२", "½", "²", "①"),
    _put(",", ".", "''", "``", "，", "。", "！", "(", "–", "€", "...", "▁", "⁇", "▅", "«"),
    _put("\u200d", "\u200c", "\u0301", "\u0323\u0307", "\u3099", "\u00ad", "\u0e33", "\u0600"),
    _put("👨‍👩‍👧", "🏳️‍🌈", "🇮🇸", "1️⃣", "🥱"),
    _put("  ", "    ", "\u00a0", "\u3000", "\t", " \u0301", "\u2003"),
    _put("\0", "\x01", "\x0b", "\x1c", "\x85", "\x97", "\u2028", "\ufeff", "\ufffd"),
    _put("\ue000", "\U0010ffff", "\uf8ff"),
    _put("A b", " b", "ﬁ", "x", "東京", "Ⅷ", "ﷺ", "ß", "İ", "ς"),
    lambda line, random: unicodedata.normalize("NFD", line),
    lambda line, random: unicodedata.normalize("NFKD", line),
    lambda line, random: line.upper(),
    lambda line, random: line.replace(" ", "") * 8,
    lambda line, random: " " * random.integers(1, 4) + line + " " * random.integers(1, 4),
    _wide,
    _shuffled,
]
