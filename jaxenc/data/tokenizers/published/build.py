"""A published tokenizer.json of any kind: the `tokenizers` library holds its rules, and what training needs is derived from them.

Derived are the roles of pieces (pad, unknown, CLS, SEP, mask), the ids that are not text, and a second object that takes text literally:
there special pieces have names that no text holds, so that no rule of the file gives one of them. Vocabularies of a layout that jaxenc
makes itself are opened by their own modules; docs/tokenizers.md says what each field does.
"""

import dataclasses
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import models

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import added as adding
from jaxenc.data.tokenizers import byte_letters, checks, separate
from jaxenc.data.tokenizers.bpe import BYTES
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.published.auto import Opened, library_errors
from jaxenc.data.tokenizers.published.sections import rules
from jaxenc.data.tokenizers.sentencepiece import unigram_words
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError

# Names of a role where no file beside tokenizer.json gives one
NAMES: Mapping[str, tuple[str, ...]] = {
    "unk": ("[UNK]", "<unk>", "<UNK>"),
    "pad": ("[PAD]", "<pad>", "<PAD>"),
    "cls": ("[CLS]", "<s>", "<cls>", "<S>", "_start_"),
    "sep": ("[SEP]", "</s>", "<sep>", "</S>", "_delimiter_"),
    "mask": ("[MASK]", "<mask>", "<MASK>"),
}
END_OF_DOCUMENT = "<eod>"
UNUSED = re.compile(r"\[unused\d+\]|madeupword\d+")
HIDDEN = "\uffff"  # a noncharacter, which no text in Unicode holds (Unicode standard, 23.7)
# Normalizers that read each character, or a letter with its marks, alone; splitters that end a word at white space
CHARACTERWISE = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt"}
AT_BLANKS = {"BertPreTokenizer", "WhitespaceSplit", "Whitespace"}
WITHIN_WORDS = {"Digits", "Punctuation", "BertPreTokenizer", "WhitespaceSplit", "Whitespace", "Metaspace"}


def tokenizer(path: Path, found: Opened) -> Tokenizer:
    """The tokenizer of what `auto.opened` built from `path`.

    An id without a piece, as a vocab.txt with a piece on two lines leaves it, is counted and reserved: no text gives it. Raises UserError
    for two pieces with one id, a frame of ids that are not there, and a vocabulary that names no unknown piece.
    """
    data = json.loads(found.tool.to_str())
    ids = found.tool.get_vocab(with_added_tokens=True)
    pieces = checks.by_id(ids, f"{path}: model.vocab", gaps=data["model"]["type"] != "Unigram")
    roles = _roles(path, data, found.roles, ids)
    _check_frame(path, data, len(pieces))
    special = {entry["content"] for entry in data["added_tokens"] if entry["special"]}
    hidden = special | {pieces[index] for index in roles.values() if index >= 0}
    reserved = tuple(index for index, piece in enumerate(pieces) if not piece or piece in hidden or UNUSED.fullmatch(piece))
    mark = fingerprint({"type": "published", **rules(data), "roles": roles, "split_special_tokens": found.tool.encode_special_tokens})
    names = ("pad", "unk", "cls", "sep", "mask")
    end = ids[END_OF_DOCUMENT] if END_OF_DOCUMENT in hidden and END_OF_DOCUMENT in ids else -1
    vocabulary = Vocabulary(len(pieces), *(roles[name] for name in names), reserved, mark, end)
    with library_errors(str(path)):
        literal = _literal(data, hidden)
    files = {
        JSON: found.tool.to_str(pretty=True),
        SETTINGS: json.dumps(_config(data, found), indent=2, ensure_ascii=False) + "\n",
    }
    whole = {entry["content"] for entry in data["added_tokens"]}
    by_bytes = '"ByteLevel"' in json.dumps(data["pre_tokenizer"])
    kind = dataclasses.replace(
        _cached(data, literal),
        readable=(lambda piece: piece if piece in whole else byte_letters.readable(piece)) if by_bytes else str,
        cuts_words_alone=data["model"]["type"] == "WordPiece",
    )
    return Tokenizer(literal, found.tool, vocabulary, files, lambda more: _extended(path, found, more, by_bytes), kind)


def _roles(path: Path, data: Mapping[str, Any], named: Mapping[str, str], ids: Mapping[str, int]) -> dict[str, int]:
    """The id of each role, -1 for a CLS, SEP or mask that the vocabulary has not. Padding may be the unknown piece."""
    model, first, last = data["model"], *_frame(data)
    own = {"unk": [model.get("unk_token")], "cls": first[:1] or last[1:2], "sep": last[:1]}
    candidates = {role: [named.get(f"{role}_token"), *own.get(role, []), *some] for role, some in NAMES.items()}
    out = {role: next((ids[piece] for piece in some if piece in ids), -1) for role, some in candidates.items()}
    if model["type"] == "Unigram":
        out["unk"] = out["unk"] if model.get("unk_id") is None else model["unk_id"]
    if model.get("unk_token") not in model.get("vocab", {}) and not _never_unknown(model):
        raise UserError(f"unk_token is {model.get('unk_token')!r}, which the vocabulary lacks", path, "name a piece of it")
    if out["unk"] < 0:
        raise UserError("no unknown piece is named", path, f"write unk_token in {SETTINGS}")
    return out | {"pad": out["pad"] if out["pad"] >= 0 else out["unk"]}


def _never_unknown(model: Mapping[str, Any]) -> bool:
    """Whether the model needs no `unk_token`: Unigram has `unk_id`, BPE without one leaves unknown characters out, and with all 256 bytes
    no character is unknown."""
    return model["type"] == "Unigram" or (model["type"] == "BPE" and (not model.get("unk_token") or model["vocab"].keys() >= BYTES))


def _frame(data: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The special pieces before and after a text."""
    frame = data.get("post_processor") or {}
    parts = frame.get("processors", [frame])
    for part in parts:
        if part.get("type") in ("BertProcessing", "RobertaProcessing"):
            return [part["cls"][0]], [part["sep"][0]]
        if part.get("type") == "TemplateProcessing":
            names = [item["SpecialToken"]["id"] if "SpecialToken" in item else None for item in part["single"]]
            place = names.index(None) if None in names else len(names)
            return names[:place], [name for name in names[place + 1 :] if name is not None]
    return [], []


def _check_frame(path: Path, data: Mapping[str, Any], size: int) -> None:
    """Raises UserError for a frame with an id that is not there, and for one that leaves the text out or gives it twice."""
    frame = data.get("post_processor") or {}
    for part in frame.get("processors", [frame]):
        held = [(name, [part[name][1]]) for name in ("cls", "sep") if name in part]
        held += [(f"special_tokens.{name}.ids", one["ids"]) for name, one in part.get("special_tokens", {}).items()]
        for name, ids in held:
            if wrong := [index for index in ids if not 0 <= index < size]:
                raise UserError(f"post_processor.{name} holds {wrong[0]}, and there are {size} ids", path, "write the id of the piece")
        if part.get("type") != "TemplateProcessing":
            continue
        used = [item["SpecialToken"]["id"] for name in ("single", "pair") for item in part[name] if "SpecialToken" in item]
        if lacks := [piece for piece in used if piece not in part["special_tokens"]]:
            raise UserError(f"post_processor frames a text by {lacks[0]!r}, which special_tokens lacks", path, "name it there with its id")
        if [item["Sequence"]["id"] for item in part["single"] if "Sequence" in item] != ["A"]:
            raise UserError("post_processor.single does not hold the text once", path, "write one Sequence with the id A")


def _literal(data: Mapping[str, Any], hidden: set[str]) -> library.Tokenizer:
    """The object for text taken literally: the pieces in `hidden` have the same ids and names that no text holds."""
    model = dict(data["model"])
    merged = {piece for merge in model.get("merges", []) for piece in (*_pair(merge), "".join(_pair(merge)))}

    def name(piece: str) -> str:
        return HIDDEN + piece if piece in hidden - merged else piece

    if model["type"] == "Unigram":
        vocab = [(name(piece), score) for piece, score in model["vocab"]]
        model["vocab"] = vocab
    else:
        model["vocab"] = {name(piece): index for piece, index in model["vocab"].items()}
        model |= {"unk_token": name(model["unk_token"])} if model.get("unk_token") else {}
    special = [one["special"] or one["content"] in hidden for one in data["added_tokens"]]
    entries = [{**one, "content": name(one["content"]), "special": s} for one, s in zip(data["added_tokens"], special, strict=True)]
    parts = {"truncation": None, "padding": None, "post_processor": None, "decoder": None}
    out = library.Tokenizer.from_str(json.dumps({**data, **parts, "model": model, "added_tokens": entries}))
    if model["type"] == "Unigram":  # as it is: the library's reader of JSON changes the last digit of some scores
        out.model = models.Unigram(model["vocab"], model.get("unk_id"), bool(model.get("byte_fallback")))
    out.encode_special_tokens = True
    return out


def _pair(merge: str | Sequence[str]) -> Sequence[str]:
    return merge.split(" ", 1) if isinstance(merge, str) else merge


def _cached(data: Mapping[str, Any], literal: library.Tokenizer) -> Kind:
    """The kind of the vocabulary, which says which words may be cached: none if a rule of the file is unknown here."""
    normalizer = _steps(data.get("normalizer"), "normalizers")
    splitters = _steps(data.get("pre_tokenizer"), "pretokenizers")
    steps, kinds = {step["type"] for step in normalizer if not _within_words(step)}, [step["type"] for step in splitters]
    written = literal.normalizer.normalize_str if literal.normalizer else str
    if not kinds or not steps <= CHARACTERWISE | {"Precompiled"}:
        return Kind()
    if kinds == ["ByteLevel"] and splitters[0].get("use_regex", True) and not splitters[0].get("add_prefix_space"):
        return Kind(separate=separate.by_edges(written)) if steps <= CHARACTERWISE else Kind()
    if kinds[0] not in AT_BLANKS or not set(kinds) <= WITHIN_WORDS:
        return Kind()
    out = Kind(separate=separate.by_clusters if "Precompiled" in steps else separate.always)
    model, marked = data["model"], {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    plain = kinds == ["WhitespaceSplit", "Metaspace"] and splitters[1] == marked and not model.get("byte_fallback")
    if model["type"] == "Unigram" and plain and all(entry["special"] for entry in data["added_tokens"]):
        return dataclasses.replace(out, by_word=unigram_words.encoder(literal, model["vocab"], written))
    return out


def _within_words(step: Mapping[str, Any]) -> bool:
    """Whether a normalizer replaces characters of words by others, or only joins blanks."""
    pattern = step.get("pattern", {})
    if step["type"] != "Replace" or "Regex" in pattern:
        return pattern == {"Regex": " {2,}"} and step["content"] == " "
    return bool(pattern["String"]) and not any(character.isspace() for character in pattern["String"] + step["content"])


def _steps(section: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if section is None:
        return []
    return [step for one in section[name] for step in _steps(one, name)] if section["type"] == "Sequence" else [section]


def _config(data: Mapping[str, Any], found: Opened) -> dict[str, Any]:
    """What transformers reads in tokenizer_config.json: the class that follows tokenizer.json to the letter."""
    kept = ("model_input_names", "padding_side", "truncation_side", "clean_up_tokenization_spaces", "split_special_tokens")
    there = found.tool.get_vocab(with_added_tokens=True)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{name: found.values[name] for name in kept if name in found.values},
        **{name: piece for name, piece in found.roles.items() if piece in there},
        "added_tokens_decoder": adding.settings(data["added_tokens"]),
    }


def _extended(path: Path, found: Opened, more: Iterable[str], by_bytes: bool) -> Tokenizer:
    """The vocabulary with `more` after it, as the add_tokens of transformers does it: a new piece is found before a text is cut into words,
    as a word; in a vocabulary of bytes also inside one. Raises UserError for a piece that the rules of the file never let through."""
    tool = _without_gaps(path, found.tool)
    tool.encode_special_tokens = found.tool.encode_special_tokens
    tool.add_tokens([library.AddedToken(piece, normalized=True, single_word=not by_bytes) for piece in more])
    tool, _ = adding.told_apart(tool)
    out = tokenizer(path, Opened(tool, found.roles, found.values, found.kind))
    for piece in more:
        if out.encode([piece]) != [[tool.token_to_id(piece)]]:
            raise UserError(
                f"{piece!r} is never found in a text: it is read as {out.decode(out.encode([piece])[0])!r}",
                fix="write it as it is read, or leave it out",
            )
    return out


def _without_gaps(path: Path, tool: library.Tokenizer) -> library.Tokenizer:
    """A copy of `tool` whose ids without a piece have an unused one: the library gives a new piece the number of pieces as its id."""
    data, ids = json.loads(tool.to_str()), tool.get_vocab(with_added_tokens=True)
    gaps = sorted({*range(max(ids.values()))} - {*ids.values()})
    if gaps:
        unused = (name for number in itertools.count() if (name := f"[unused{number}]") not in ids)
        data["model"]["vocab"] |= dict(zip(unused, gaps, strict=False))
    out = library.Tokenizer.from_str(json.dumps(data))
    if any(out.token_to_id(piece) != index for piece, index in ids.items()):
        raise UserError("has ids without a piece, and added pieces among them: no piece can be added", path, "name each id in model.vocab")
    return out
