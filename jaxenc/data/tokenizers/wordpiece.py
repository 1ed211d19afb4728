"""WordPiece as BERT uses it: words are split into the longest pieces of the vocabulary, from the left.

How a text is normalized and split into words is in wordpiece_rules.py.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import decoders, models, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks, separate, wordpiece_rules, wordpiece_train
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD, PublishedRules, WordPieceRules
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.files import read_lines

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNUSED = re.compile(r"\[unused\d+\]")


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A WordPiece vocabulary of at most `vocab_size` pieces that reads texts by `rule`; see `wordpiece_train.trained`."""
    rules = WordPieceRules(rule)
    return _build(wordpiece_train.trained(texts, vocab_size, rules, SPECIALS), rules)


def from_vocab(path: str | Path, rules: PublishedRules | WordPieceRules) -> Tokenizer:
    """The tokenizer of a BERT vocab.txt: one piece a line, the id is the line's number from 0. rules: how it reads texts.

    Raises UserError naming the line of a byte order mark, a blank, padded or repeated piece, and the specials that are missing.
    """
    pieces = read_lines(Path(path), "name a vocab.txt in UTF-8")
    _check(pieces, path)
    return _build(pieces, rules)


def _check(pieces: Sequence[str], path: str | Path) -> None:
    seen: dict[str, int] = {}
    for number, piece in enumerate(pieces, 1):
        if number == 1 and piece.startswith("\ufeff"):
            raise UserError(f"{path}:{number}: starts with a byte order mark; remove it")
        if not piece.strip(" \t\r"):
            raise UserError(f"{path}:{number}: blank line; every line is one piece, whose id is its number")
        if piece != piece.strip(" \t\r"):
            raise UserError(f"{path}:{number}: {piece!r} has white space around it; remove it")
        if piece in seen:
            raise UserError(f"{path}:{number}: {piece!r} is already on line {seen[piece]}; every piece has one id")
        seen[piece] = number
    missing = [piece for piece in SPECIALS if piece not in seen]
    if missing:
        raise UserError(f"{path}: lacks {' '.join(missing)}; put each on a line of its own (lines 1 to {len(pieces)} were read)")


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`. The caller compares its definition with `data`: of the sections only those
    are read in which vocabularies of this kind differ. Raises UserError for other kinds, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        rules = wordpiece_rules.of_json(path, data.get("normalizer") or {}, data.get("pre_tokenizer") or {})
        pieces = checks.by_id(data["model"]["vocab"], path)
        _check(pieces, path)
        return _build(pieces, rules)


def _build(pieces: Sequence[str], rules: PublishedRules | WordPieceRules) -> Tokenizer:
    ids = {piece: index for index, piece in enumerate(pieces)}

    def model() -> library.Tokenizer:
        out = library.Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
        out.normalizer, out.pre_tokenizer = rules.normalizer, rules.splitter
        out.decoder = decoders.WordPiece(prefix="##", cleanup=True)
        return out

    literal, framed = model(), model()
    framed.add_special_tokens([library.AddedToken(piece, special=True, normalized=False) for piece in SPECIALS])
    framed.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[(s, ids[s]) for s in ("[CLS]", "[SEP]")]
    )
    facts = {"type": "wordpiece", "pieces": list(pieces), **rules.facts}
    pad, unk, cls, sep, mask = (ids[piece] for piece in SPECIALS)
    reserved = tuple(index for piece, index in ids.items() if piece in SPECIALS or UNUSED.fullmatch(piece))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask, reserved, fingerprint(facts))
    config = {**rules.settings, "clean_up_tokenization_spaces": True}
    config |= {f"{name[1:-1].lower()}_token": name for name in SPECIALS}
    files = {
        "tokenizer.json": framed.to_str(pretty=True),
        "vocab.txt": "".join(piece + "\n" for piece in pieces),
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
    }
    return Tokenizer(literal, framed, vocabulary, files, lambda more: _extended(pieces, rules, more), separate=separate.always)


def _extended(pieces: Sequence[str], rules: PublishedRules | WordPieceRules, more: Sequence[str]) -> Tokenizer:
    """The vocabulary `pieces` with `more` after it; `##more` continues a word. UserError for what the longest match never meets."""
    normalizer, splitter = rules.normalizer, rules.splitter
    for piece in more:
        continues = piece.startswith("##") and piece != "##"
        word = f"a{piece[2:]}" if continues else piece
        words = [part for part, _ in splitter.pre_tokenize_str(normalizer.normalize_str(word))]
        if continues and words:
            words[0] = f"##{words[0][1:]}"
        if len(words) > 1:
            held = ", ".join(map(repr, words))
            raise UserError(f"{piece!r} is never found in a text: it holds {len(words)} words, {held}; a piece is one")
        if words != [piece]:
            raise UserError(f"{piece!r} is never found in a text: it is read as {''.join(words)!r}; write it as it is read")
        if len(word) > LONGEST_WORD:
            raise UserError(f"{piece[:20]!r}... is never found in a text: a word of more than {LONGEST_WORD} characters is [UNK]")
    return _build([*pieces, *more], rules)
