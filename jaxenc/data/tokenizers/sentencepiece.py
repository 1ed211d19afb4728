"""SentencePiece's unigram vocabularies as XLNet and ALBERT use them: the most probable cut of a word, whose first piece has the mark ▁.

Kudo, "Subword regularization" (2018); the vocabulary and its training are those of zihangdai/xlnet (README.md, spm_train). A text is
read by the rules of transformers' XLNetTokenizer, that is of preprocess_text in prepro_utils.py: `` and '' become ", compatibility
characters are taken apart and accents dropped (NFKD), the model's own table of characters (nmt_nfkc) is applied, and white space only
separates words. Three things differ from the original, as they do in transformers: a comma behind a digit is not cut off when a piece
holds both; what counts as an accent is every Unicode mark (M), not a character with a combining class, so that the scripts of India lose
vowels (keep their accents); and of two cuts that are equally probable (0 00 and 00 0) the other one may be taken (one line in 5,804 of
English, measured). One thing differs from transformers, whose XLNet knows no Korean: letters are put together again before the table,
as the sentencepiece library does. A literal `<eop>` in a text is letters, like all specials.
"""

import base64
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks, spm_train
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.spiece import LONGEST, NAME, Facts, parsed, written
from jaxenc.data.tokenizers.tokenizer import SETTINGS, Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json, user_errors

MARK = "▁"
OTHERS = "only XLNet's and ALBERT's SentencePiece can be opened, other kinds come later"


@dataclasses.dataclass(frozen=True)
class Layout:
    """What a family calls its specials, and how it frames a text and a pair (`piece:type`)."""

    name: str
    unk: str
    pad: str
    cls: str
    sep: str
    mask: str
    single: str
    pair: str

    @property
    def specials(self) -> tuple[str, ...]:
        """The five pieces."""
        return self.unk, self.pad, self.cls, self.sep, self.mask


LAYOUTS = (
    Layout("XLNet", "<unk>", "<pad>", "<cls>", "<sep>", "<mask>", "$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2"),
    Layout("ALBERT", "<unk>", "<pad>", "[CLS]", "[SEP]", "[MASK]", "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
)


@dataclasses.dataclass(frozen=True)
class Reading:
    """What is done with a text before the model's own table of characters."""

    lowercase: bool
    strip_accents: bool


def train(texts: Iterable[str], vocab_size: int, lowercase: bool = False, strip_accents: bool = True) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces, with the specials of XLNet at the published ids; the same for the same texts.

    texts: read once, by the rules that `encode` reads by. Raises UserError as `spm_train.trained` does.
    """
    reading = Reading(lowercase, strip_accents)
    rules = _rules(reading, b"")
    content = spm_train.trained((rules.normalize_str(text) for text in texts), vocab_size)
    return _build("the trained model", parsed("the trained model", content), reading)


def from_model(path: str | Path) -> Tokenizer:
    """The tokenizer of a spiece.model. A tokenizer_config.json beside it says do_lower_case and keep_accents; without one the family's
    own choice holds: accents go, and ALBERT lower-cases.

    Raises UserError for a file that is damaged, Unsupported for a model of another kind or without the specials of a family.
    """
    path = Path(path)
    with user_errors(path, AGAIN):
        content = path.read_bytes()
    facts = parsed(path, content)
    settings = path.with_name(SETTINGS)
    config = read_json(settings, AGAIN) if settings.is_file() else {}
    layout = _layout(path, [piece for piece, _ in facts.pieces])
    lowercase, keep_accents = config.get("do_lower_case", layout.name == "ALBERT"), config.get("keep_accents", False)
    if not isinstance(lowercase, bool) or not isinstance(keep_accents, bool):
        raise UserError(f"{settings}: do_lower_case and keep_accents are {lowercase!r} and {keep_accents!r}; write true or false")
    return _build(path, facts, Reading(lowercase, not keep_accents))


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`, ours or one that transformers wrote for an XLNet or an ALBERT.

    Raises UserError for a file that is damaged, Unsupported for other rules of reading, other specials, and pieces added by hand.
    """
    with checks.damaged(path):
        model, splitter = data["model"], data.get("pre_tokenizer") or {}
        pieces = tuple((piece, float(score)) for piece, score in model.get("vocab", []))
        _layout(path, [piece for piece, _ in pieces])
        rules = data.get("normalizer") or {}
        rules = {_name(rule): rule for rule in rules.get("normalizers", [rules] if rules else [])}
        rules.pop("Replace  {2,}", None)  # joins white space, which only separates words
        reading = Reading("Lowercase" in rules, "StripAccents" in rules)
        charsmap = base64.b64decode(rules.get("Precompiled", {}).get("precompiled_charsmap", ""))
        added = data.get("added_tokens") or []
        facts = Facts(pieces, frozenset(entry["content"] for entry in added), charsmap).check()
        ours = [_name(rule) for rule in json.loads(_rules(reading, charsmap).__getstate__())["normalizers"]]
        if list(rules) not in (list(dict.fromkeys(ours)), [name for name in ours if name != "NFC"]):
            raise Unsupported(f"{path}: reads texts by {', '.join(rules) or 'no rules'}; {OTHERS}")
        if [part["type"] for part in splitter.get("pretokenizers", [])] != ["WhitespaceSplit", "Metaspace"] or model.get("byte_fallback"):
            raise Unsupported(f"{path}: does not cut texts at white space alone, or into bytes; {OTHERS}")
        if other := [entry["content"] for entry in added if not entry["special"] or entry["id"] >= len(pieces)]:
            raise Unsupported(f"{path}: {other[0]!r} was added behind the vocabulary; {OTHERS}")
        return _build(path, facts, reading)


def _name(rule: Mapping) -> str:
    return " ".join([rule["type"], *rule.get("pattern", {}).values()])


def _layout(path: str | Path, pieces: Sequence[str]) -> Layout:
    lacks = {layout: [piece for piece in layout.specials if piece not in pieces] for layout in LAYOUTS}
    layout = min(lacks, key=lambda layout: len(lacks[layout]))
    if lacks[layout]:
        raise Unsupported(f"{path}: lacks {' '.join(lacks[layout])}; {OTHERS}")
    return layout


def _rules(reading: Reading, charsmap: bytes) -> normalizers.Normalizer:
    """How a text is written before it is cut into words."""
    accents = [normalizers.NFKD(), normalizers.StripAccents()] if reading.strip_accents else []
    letters = [normalizers.Lowercase()] if reading.lowercase else []
    # `Precompiled` looks up a character at a time, or a cluster of less than six bytes, of which it keeps the first match; the
    # sentencepiece library takes the longest match. So what can be one character is made one before, and again behind (half-wide kana).
    table = [normalizers.NFC(), normalizers.Precompiled(charsmap), normalizers.NFC()] if charsmap else []
    return normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), *accents, *letters, *table])


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")])


def _build(path: str | Path, facts: Facts, reading: Reading) -> Tokenizer:
    """The tokenizer of checked facts. path: what messages call their source."""
    pieces = [piece for piece, _ in facts.pieces]
    layout, ids = _layout(path, pieces), {piece: index for index, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        raise UserError(f"{path}: {next(p for i, p in enumerate(pieces) if ids[p] != i)!r} stands twice in it; {AGAIN}")
    hidden = facts.hidden | {*layout.specials, *({"<eop>", "<eod>"} & ids.keys())}
    facts = dataclasses.replace(facts, hidden=frozenset(hidden))
    # No word holds a blank, so a piece that starts with one is never found in a text.
    literal = _library(facts, reading, [(" " * (piece in hidden) + piece, score) for piece, score in facts.pieces], ids[layout.unk])
    framed = _library(facts, reading, facts.pieces, ids[layout.unk])
    mask = {layout.mask: {"lstrip": True}}
    framed.add_special_tokens([library.AddedToken(p, normalized=False, **mask.get(p, {})) for p in sorted(hidden, key=ids.__getitem__)])
    frame = [(piece, ids[piece]) for piece in (layout.cls, layout.sep)]
    framed.post_processor = processors.TemplateProcessing(layout.single, layout.pair, frame)
    unk, pad, cls, sep, mask_id = (ids[piece] for piece in layout.specials)
    rest = {"charsmap": base64.b64encode(facts.charsmap).decode(), **dataclasses.asdict(reading)}
    mark = fingerprint({"type": "unigram", "pieces": facts.pieces, "hidden": sorted(hidden), **rest})
    reserved = tuple(sorted(ids[piece] for piece in hidden))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask_id, reserved, mark, ids.get("<eod>", -1))
    files = {
        "tokenizer.json": framed.to_str(pretty=True),
        NAME: written(facts, ids[layout.unk]),
        SETTINGS: json.dumps(_config(facts, reading, layout), indent=2) + "\n",
    }
    return Tokenizer(literal, framed, vocabulary, files, lambda more: _extended(facts, reading, more), _spelled)


def _library(facts: Facts, reading: Reading, pieces: Sequence[tuple[str, float]], unk: int) -> library.Tokenizer:
    out = library.Tokenizer(models.Unigram(list(pieces), unk, False))
    out.normalizer, out.pre_tokenizer, out.decoder = _rules(reading, facts.charsmap), _splitter(), decoders.Metaspace(MARK, "always")
    return out


def _config(facts: Facts, reading: Reading, layout: Layout) -> dict[str, object]:
    """What transformers reads in tokenizer_config.json. Its own classes for XLNet and ALBERT put rules of theirs in the place of those in
    tokenizer.json: they are not named. From transformers 5 on it leaves out the types, without which CLS is of the first segment: they are
    asked for."""
    ends = [piece for piece, _ in facts.pieces if piece in ("<eop>", "<eod>")]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": reading.lowercase,
        "keep_accents": not reading.strip_accents,
        "remove_space": True,
        "padding_side": "left" if layout.name == "XLNet" else "right",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "additional_special_tokens": ends,
        "clean_up_tokenization_spaces": False,
    } | {f"{name}_token": getattr(layout, name) for name in ("unk", "pad", "cls", "sep", "mask")}


def _spelled(piece: str) -> str:
    """A new piece as the vocabulary writes it: it starts a word."""
    return MARK + piece.lstrip(f" {MARK}")


def _extended(facts: Facts, reading: Reading, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` behind it: the start of a word, or a word, that is one of them is always that piece, the longest.

    Its logarithm of the probability is its length: all others have none above 0. Raises UserError for what no word starts with.
    """
    for piece in more:
        if piece in facts.hidden:
            raise UserError(f"{piece!r} is in the vocabulary already: leave it out")
        if len(_spelled(piece)) > LONGEST:
            raise UserError(f"{piece[:20]!r}... has {len(piece)} characters: a piece has {LONGEST - 1} at most")
        words = [word for word, _ in _splitter().pre_tokenize_str(_rules(reading, facts.charsmap).normalize_str(piece))]
        if words != [_spelled(piece)]:
            held = " ".join(words).replace(MARK, "")
            raise UserError(f"{piece!r} is never found in a text: it is read as {held!r}; give words, one each, as they are read")
    added = tuple((_spelled(piece), float(len(_spelled(piece)))) for piece in more)
    return _build("the larger vocabulary", dataclasses.replace(facts, pieces=(*facts.pieces, *added)), reading)
