"""WordPiece as BERT uses it: the text normaliser and word splitter of google-research/bert:tokenization.py, longest match first."""

import collections
import dataclasses
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json, read_lines, user_errors

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 100  # the library's max_input_chars_per_word; google-research/bert has 200
ALPHABET = 1000  # characters; the limit_alphabet of the library's BertWordPieceTokenizer
UNUSED = re.compile(r"\[unused\d+\]")


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a text becomes words. split_chinese: a blank around every Chinese character, which Japanese models leave out."""

    lowercase: bool
    strip_accents: bool
    split_chinese: bool = True

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The rules as the library has them."""
        return normalizers.BertNormalizer(True, self.split_chinese, self.strip_accents, self.lowercase)

    @property
    def facts(self) -> dict[str, bool]:
        """What a fingerprint is made of; without `split_chinese` where it is as usual, as fingerprints always were."""
        return {"lowercase": self.lowercase, "strip_accents": self.strip_accents} | ({} if self.split_chinese else {"split_chinese": False})


def train(texts: Iterable[str], vocab_size: int, lowercase: bool = True, strip_accents: bool = True) -> Tokenizer:
    """A WordPiece vocabulary of at most `vocab_size` pieces, the same for the same texts.

    texts: read once and kept in a temporary file, so memory does not grow with the corpus. lowercase, strip_accents: what the
    normaliser does. A pair of pieces that is seen once is not merged. The ALPHABET most frequent characters are kept as pieces, each
    also as a continuation where it can be one; words with another character become [UNK].

    The library numbers the continuation characters in the order of a randomly seeded hash map and breaks ties by these numbers,
    so two trainings would differ. Naming all of them beforehand, sorted, makes the result a function of the texts.
    Raises UserError when no text holds a character, or when vocab_size leaves no room beside the specials and the alphabet.
    """
    reading = Reading(lowercase, strip_accents)
    normalizer, splitter = reading.normalizer, pre_tokenizers.BertPreTokenizer()
    with (
        user_errors(tempfile.gettempdir(), "free some space there, or set TMPDIR to a folder with more"),
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool,
    ):
        letters = _alphabet(_spooled(texts, spool), normalizer)
        continuations = ["##" + c for c in letters if len(splitter.pre_tokenize_str(normalizer.normalize_str(f"a{c}a"))) == 1]
        first = [*SPECIALS, *continuations]
        if not letters:
            raise UserError("tokenizer: the input holds no text; name files with at least one line of text")
        checks.size(vocab_size, len(first) + len(letters), "the specials and characters")
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=first,
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            show_progress=False,
        )
        trained = library.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trained.normalizer, trained.pre_tokenizer = normalizer, splitter
        spool.seek(0)
        trained.train_from_iterator((line.rstrip("\n") for line in spool), trainer)
    ids = trained.get_vocab()
    return _build(sorted(ids, key=ids.__getitem__), reading)


def _spooled(texts: Iterable[str], spool) -> Iterator[str]:
    for text in texts:
        spool.write(text.replace("\n", " ") + "\n")
        yield text


def _alphabet(texts: Iterable[str], normalizer: normalizers.Normalizer) -> list[str]:
    """The ALPHABET most frequent characters after normalisation, ties by code point; in code point order."""
    raw: collections.Counter[str] = collections.Counter()
    for text in texts:
        raw.update(text)
    counts: collections.Counter[str] = collections.Counter()
    for character, count in raw.items():
        for c in normalizer.normalize_str(character).split():
            counts.update({piece: count for piece in c})
    return sorted(sorted(counts, key=lambda c: (-counts[c], c))[:ALPHABET])


def from_vocab(path: str | Path, lowercase: bool, strip_accents: bool, split_chinese: bool = True) -> Tokenizer:
    """The tokenizer of a BERT vocab.txt: one piece a line, the id is the line's number from 0.

    Raises UserError naming the line of a byte order mark, a blank, padded or repeated piece, and the specials that are missing.
    """
    pieces = read_lines(Path(path), "name a vocab.txt in UTF-8")
    _check(pieces, path)
    return _build(pieces, Reading(lowercase, strip_accents, split_chinese))


def _check(pieces: Sequence[str], path: str | Path) -> None:
    seen: dict[str, int] = {}
    for number, piece in enumerate(pieces, 1):
        if piece.startswith("\ufeff"):
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


def settings_of(path: Path) -> tuple[bool, bool, bool]:
    """(lowercase, strip_accents, split_chinese) of a tokenizer_config.json; BERT's defaults, all of them on, when there is none.

    Raises UserError for one that is damaged, Unsupported for words that are split in another way than BERT's.
    """
    data = read_json(path, AGAIN) if path.is_file() else {}
    lowercase, strip_accents = data.get("do_lower_case", True), data.get("strip_accents")
    split_chinese = data.get("tokenize_chinese_chars", True)
    if not isinstance(lowercase, bool) or not isinstance(strip_accents, bool | None) or not isinstance(split_chinese, bool):
        given = f"{lowercase!r}, {strip_accents!r} and {split_chinese!r}"
        raise UserError(f"{path}: do_lower_case, strip_accents and tokenize_chinese_chars are {given}; write true or false")
    kinds = (data.get("word_tokenizer_type", "basic"), data.get("subword_tokenizer_type", "wordpiece"))
    if kinds != ("basic", "wordpiece"):
        raise Unsupported(f"{path}: holds {kinds}; only BERT's WordPiece can be opened, other kinds come later")
    return lowercase, _accents(strip_accents, lowercase), split_chinese


def _accents(strip_accents: bool | None, lowercase: bool) -> bool:
    """BERT's rule: what is not said follows lower-casing."""
    return lowercase if strip_accents is None else strip_accents


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`, ours or one that transformers wrote for a BERT.

    Raises UserError for a model, normaliser or word splitter that is not BERT's, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        return _from_parts(path, data, *(data.get(part) or {} for part in ("model", "normalizer", "pre_tokenizer")))


def _from_parts(path: str | Path, data: Mapping, model: dict, normalizer: dict, splitter: dict) -> Tokenizer:
    kinds = (model.get("type", "WordPiece"), normalizer.get("type"), splitter.get("type"))
    if kinds != ("WordPiece", "BertNormalizer", "BertPreTokenizer"):
        raise Unsupported(f"{path}: holds {kinds}; only BERT's WordPiece can be opened, other kinds come later")
    if not normalizer.get("clean_text"):
        raise Unsupported(f"{path}: clean_text must be on; other settings come later")
    ids = dict(model["vocab"]) | {token["content"]: token["id"] for token in data.get("added_tokens", [])}
    pieces = checks.by_id(ids, path)
    _check(pieces, path)
    lowercase = normalizer["lowercase"]
    return _build(pieces, Reading(lowercase, _accents(normalizer.get("strip_accents"), lowercase), normalizer["handle_chinese_chars"]))


def _build(pieces: Sequence[str], reading: Reading) -> Tokenizer:
    ids = {piece: index for index, piece in enumerate(pieces)}

    def model() -> library.Tokenizer:
        out = library.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
        out.normalizer, out.pre_tokenizer = reading.normalizer, pre_tokenizers.BertPreTokenizer()
        out.decoder = decoders.WordPiece(prefix="##", cleanup=True)
        return out

    literal, framed = model(), model()
    framed.add_special_tokens([library.AddedToken(piece, special=True, normalized=False) for piece in SPECIALS])
    framed.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[(s, ids[s]) for s in ("[CLS]", "[SEP]")]
    )
    facts = {"type": "wordpiece", "pieces": list(pieces), **reading.facts}
    pad, unk, cls, sep, mask = (ids[piece] for piece in SPECIALS)
    reserved = tuple(index for piece, index in ids.items() if piece in SPECIALS or UNUSED.fullmatch(piece))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask, reserved, fingerprint(facts))
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": reading.lowercase,
        "strip_accents": reading.strip_accents,
        "tokenize_chinese_chars": reading.split_chinese,
        "clean_up_tokenization_spaces": True,
    }
    config |= {f"{name[1:-1].lower()}_token": name for name in SPECIALS}
    files = {
        "tokenizer.json": framed.to_str(pretty=True),
        "vocab.txt": "".join(piece + "\n" for piece in pieces),
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
    }
    return Tokenizer(literal, framed, vocabulary, files, lambda more: _extended(pieces, reading, more))


def _extended(pieces: Sequence[str], reading: Reading, more: Sequence[str]) -> Tokenizer:
    """The vocabulary `pieces` with `more` behind it; `##more` continues a word. UserError for what the longest match never meets."""
    normalizer, splitter = reading.normalizer, pre_tokenizers.BertPreTokenizer()
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
    return _build([*pieces, *more], reading)
