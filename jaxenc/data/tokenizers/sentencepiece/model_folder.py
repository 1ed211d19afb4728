"""The tokenizer of a SentencePiece `.model`: read by the sentencepiece library itself, so its ids are those of the library.

A model with XLNet's or ALBERT's special pieces reads texts as those two do: rules.py says what happens before the model.
Any other model gets the text as it is; do_lower_case and keep_accents in a tokenizer_config.json change that. A tokenizer_config.json
with `normalize` belongs to a vocabulary that `jaxenc tokenizer` made: unigram.py reads it.
"""

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece as library

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import normalization
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.frame_files import SAME, checksum
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.sentencepiece import export, model_file, specials, unigram
from jaxenc.data.tokenizers.sentencepiece.engine import Literal, Prompt
from jaxenc.data.tokenizers.sentencepiece.model_file import Model
from jaxenc.data.tokenizers.sentencepiece.rules import Before, SentencePieceRules
from jaxenc.data.tokenizers.sentencepiece.specials import ENDS, Specials
from jaxenc.data.tokenizers.sentencepiece.unigram_rules import UnigramRules
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json, user_errors

NAMES = (model_file.NAME, "sentencepiece.bpe.model", "tokenizer.model")
BLANKS = "\t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
# {word in a message of the library: the field of the model that it is about}
FIELDS = {"Self-test": "self_test_data", "byte": "pieces.type, trainer_spec.byte_fallback", "unk": "pieces.type", "defined": "pieces.piece"}


@dataclasses.dataclass(frozen=True)
class Source:
    """A model and how a text reaches it. path: what messages call it; more: (piece, score, kind) after the model's own."""

    path: Path
    model: Model
    specials: Specials
    lowercase: bool
    strip_accents: bool
    more: tuple[tuple[str, float, int], ...] = ()

    @property
    def scored(self) -> tuple[tuple[str, float], ...]:
        """(piece, score) by id."""
        return (*self.model.pieces, *((piece, score) for piece, score, _ in self.more))

    @property
    def content(self) -> bytes:
        """The bytes of the model file, with `more`."""
        return self.read_as(())

    def read_as(self, controls: Collection[str]) -> bytes:
        """The bytes of the model with `more`, and with `controls` as control pieces.

        Where a tokenizer.json can express the model, symbols of the user are ordinary pieces beside `more`: they would be worth as much as
        the longest new word, so that no word with a full stop in it could be added.
        """
        ordinary = self.symbols if self.more and not self.beyond else ()
        return model_file.as_read(self.model, controls, self.more, ordinary)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the user that a text may hold."""
        return self.model.of_kinds(model_file.USER_DEFINED) - {*self.specials.pieces, *ENDS}

    @property
    def beyond(self) -> str:
        """The field that a tokenizer.json cannot express, '' where it can express all."""
        return export.beyond(self.model, self.rules, self.specials)

    @property
    def rules(self) -> SentencePieceRules:
        """How the tokenizers library would read a text."""
        return SentencePieceRules(self.lowercase, self.strip_accents, self.model.facts.charsmap)

    def on(self, setting: int) -> bool:
        """Whether a setting of the normaliser, on by default, is on."""
        return bool(self.model.normalizer.get(setting, 1))


def find(folder: Path) -> Path | None:
    """The .model file of a folder: one of NAMES, or the only one there. Raises UserError for several of other names."""
    if named := [folder / name for name in NAMES if (folder / name).is_file()]:
        return named[0]
    found = sorted(folder.glob("*.model"))
    if len(found) > 1:
        raise UserError(f"holds {', '.join(path.name for path in found)}", folder, f"rename the right one to {model_file.NAME}")
    return found[0] if found else None


def is_source(folder: Path) -> bool:
    """Whether the .model of a folder is read although it holds a tokenizer.json: one that was written for transformers from that model,
    and that nobody has changed since."""
    written, settings = folder / JSON, folder / SETTINGS
    if not settings.is_file() or find(folder) is None:
        return False
    with user_errors(written, AGAIN):
        return read_json(settings, AGAIN).get(SAME) == checksum(written.read_bytes())


def from_model(path: str | Path) -> Tokenizer:
    """The tokenizer of a .model, with the tokenizer_config.json and special_tokens_map.json beside it, if they are there.

    Raises UserError for a file that is damaged, Unsupported for one whose special pieces are not known.
    """
    path = Path(path)
    with user_errors(path, AGAIN):
        content = path.read_bytes()
    model, settings = model_file.opened(path, content), path.with_name(SETTINGS)
    config = read_json(settings, AGAIN) if settings.is_file() else {}
    if (rule := normalization.of_settings(settings, config)) is not None:
        rules = UnigramRules(rule)
        return unigram.build(path, dataclasses.replace(model.facts, charsmap=b""), rules)
    _check_twice(path, [piece for piece, _ in model.pieces])
    _library(path, content)  # refuses what it cannot open, such as a model without exactly one unknown piece
    (unknown,) = model.of_kinds(model_file.UNKNOWN)
    found = specials.of_folder(path, [piece for piece, _ in model.pieces], unknown)
    lowercase, keep_accents = config.get("do_lower_case", found.name == "ALBERT"), config.get("keep_accents", not found.name)
    if not isinstance(lowercase, bool) or not isinstance(keep_accents, bool):
        raise UserError(f"do_lower_case and keep_accents are {lowercase!r} and {keep_accents!r}", settings, "write true or false")
    return _build(Source(path, model, found, lowercase, not keep_accents))


def _check_twice(path: Path, pieces: Sequence[str]) -> None:
    seen: set[str] = set()
    for piece in pieces:
        if piece in seen:
            raise UserError(f"pieces.piece holds {piece!r} twice", path, AGAIN)
        seen.add(piece)


def _library(path: Path, content: bytes) -> library.SentencePieceProcessor:
    try:
        return library.SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise UserError(f"sentencepiece cannot open it ({_meaning(str(error))})", path, AGAIN) from error


def _meaning(said: str) -> str:
    """The library's message, with the field of the model that it is about."""
    text = " ".join(said.split()).removeprefix("INTERNAL: ").rstrip(".")
    return next((f"{field}: {text}" for word, field in FIELDS.items() if word in text), text)


def _build(source: Source) -> Tokenizer:
    pieces, roles = [piece for piece, _ in source.scored], source.specials
    ids = {piece: index for index, piece in enumerate(pieces)}
    apart = source.model.of_kinds(model_file.UNKNOWN, model_file.CONTROL) | {*roles.pieces, *(ids.keys() & ENDS)}
    tool = _library(source.path, source.read_as(apart))
    blanks = "".join(blank for blank in BLANKS if blank in tool.normalize(f"a{blank}a")) if roles.name else ""
    before = Before(bool(roles.name), source.lowercase, source.strip_accents, blanks)
    literal = Literal(tool, before, source.on(model_file.DUMMY_PREFIX), bool(source.model.trainer.get(model_file.SUFFIX)))
    reserved = apart | source.model.facts.hidden
    unk, pad, cls, sep, mask = (ids[piece] for piece in roles.pieces)
    mark = fingerprint(_facts(source, reserved))
    numbers = tuple(sorted(ids[piece] for piece in reserved))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask, numbers, mark, ids.get("<eod>", -1))
    prompt = Prompt(literal, roles, sorted(apart))
    kind = Kind(spelled=unigram.spelled, flat=literal.encode_flat, places=literal.written_places, only_here=_only_here(source))
    return Tokenizer(literal, prompt, vocabulary, _files(source), lambda more: _extended(source, literal, more), kind)


def _facts(source: Source, reserved: set[str]) -> Mapping[str, Any]:
    """What the fingerprint covers. For models that a tokenizer.json can express it stays what it was when the tokenizers library read
    them."""
    if not source.beyond:
        return {"type": "unigram", "pieces": source.scored, "hidden": sorted(reserved), **source.rules.facts}
    rules = {"lowercase": source.lowercase, "strip_accents": source.strip_accents, "roles": source.specials.pieces}
    return {"type": "sentencepiece", "model": checksum(source.content), **rules}


def _files(source: Source) -> Mapping[str, str | bytes]:
    """What `save` writes: the model, its settings and, where one can express it, a tokenizer.json for transformers."""
    roles = {f"{role}_token": getattr(source.specials, role) for role in specials.ROLES}
    if source.beyond:
        return {model_file.NAME: source.content, SETTINGS: json.dumps({**source.rules.settings, **roles}, indent=2) + "\n"}
    facts = dataclasses.replace(source.model.facts, pieces=source.scored)
    files = unigram.files(source.path, facts, source.rules)
    settings = json.loads(files[SETTINGS]) | {SAME: checksum(files[JSON])}
    return {**files, model_file.NAME: source.content, SETTINGS: json.dumps(settings, indent=2) + "\n"}


def _only_here(source: Source) -> str:
    """What `jaxenc export` says of transformers."""
    if beyond := source.beyond:
        what = f"{beyond} cannot be expressed in a tokenizer.json: {model_file.NAME} is written alone, and AutoTokenizer may give other ids"
        return f"{what}; get ids from the sentencepiece library"
    nearly = export.nearly(source.model, source.rules)
    return nearly and f"transformers reads rare texts otherwise: {nearly}"


def _extended(source: Source, literal: Literal, more: Sequence[str]) -> Tokenizer:
    """The model with `more` after it: the start of a word, or a word, that is one of them is always that piece, the longest. In a unigram
    model its score is its length, and no other piece has one above 0. In the other types it is a piece of the user's.

    Raises Unsupported for a model whose words do not begin with the mark, UserError for what no word starts with.
    """
    if source.model.trainer.get(model_file.SUFFIX):
        raise Unsupported(
            "pieces cannot be added where trainer_spec.treat_whitespace_as_suffix is on", source.path, "train a new model with them"
        )
    for setting, name in export.SWITCHES.items():
        if not source.on(setting):
            raise Unsupported(f"pieces cannot be added where normalizer_spec.{name} is off", source.path, "train a new model with them")
    by_score = source.model.trainer.get(model_file.MODEL_TYPE, model_file.UNIGRAM) == model_file.UNIGRAM
    hidden, added = {*source.model.facts.hidden, *source.specials.pieces}, []
    for piece in more:
        spelled = unigram.spelled(piece)
        if piece in hidden:
            raise UserError(f"{piece!r} is in the vocabulary already", fix="leave it out")
        if len(spelled) > model_file.LONGEST:
            raise UserError(f"{piece[:20]!r}... has {len(piece)} characters", fix=f"give a piece of at most {model_file.LONGEST - 1}")
        if (held := literal.normalizer.normalize_str(spelled[1:])) != spelled[1:] or " " in held:
            raise UserError(f"{piece!r} is never found in a text: it is read as {held!r}", fix="give words, one each, as they are read")
        if by_score and source.beyond and (symbol := next((symbol for symbol in source.symbols if symbol in spelled), "")):
            raise UserError(f"{piece!r} is never found in a text: the model cuts off {symbol!r} wherever it is", fix="leave it out")
        added.append((spelled, float(len(spelled)), model_file.NORMAL if by_score else model_file.USER_DEFINED))
    return _build(dataclasses.replace(source, more=(*source.more, *added)))
