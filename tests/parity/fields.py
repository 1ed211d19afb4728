"""Changes of single fields in the files of a tokenizer, and what transformers and jaxenc give for each."""

import copy
import dataclasses
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import transformers

from jaxenc.data.tokenizers import load
from jaxenc.errors import UserError

Files = Mapping[str, Any]  # {name: content as JSON}
Path_ = tuple[str | int, ...]
FAILS = "fails"
OUTCOMES = ("same", "refused", "fails there too")  # the ids of transformers, a refusal that names the field, a refusal as there
# {field: two values that it may hold}; a field of another name gets two by the type of its value
OTHERS: Mapping[str, tuple[Any, Any]] = {
    "prepend_scheme": ("first", "never"),
    "behavior": ("Removed", "MergedWithPrevious"),
    "direction": ("Left", "up"),
    "padding_side": ("left", "up"),
    "truncation_side": ("left", "up"),
    "pad_to_multiple_of": (8, 2),
    "strip_accents": (True, False),
    "normalizer": (None, {"type": "Lowercase"}),
    "pre_tokenizer": ({"type": "WhitespaceSplit"}, {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}]}),
    "post_processor": (None, {"type": "BertProcessing", "sep": ["a", 9], "cls": ["b", 8]}),
    "decoder": (None, {"type": "Fuse"}),
    "tokenizer_class": ("PreTrainedTokenizerFast", "XLMRobertaTokenizer"),
    "max_input_chars_per_word": (3, 0),
    "continuing_subword_prefix": ("@@", "x"),
    "end_of_word_suffix": ("@@", "x"),
    "dropout": (0.0, 0.5),
    "special_tokens": ({}, None),
    "replacement": ("_", "e"),
    "version": ("1.0", "2.0"),
}
# {value: other values of the same field}: types with the same parameters or none, pieces that a frame has, texts of a frame
VALUES: Mapping[str, tuple[Any, Any]] = {
    **dict.fromkeys(("NFKD", "NFC", "StripAccents", "Lowercase", "BertNormalizer", "Precompiled", "Replace"), ("Nmt", "NFKC")),
    **dict.fromkeys(("BertPreTokenizer", "WhitespaceSplit", "ByteLevel", "Metaspace"), ("Whitespace", "UnicodeScripts")),
    **{"LongestFirst": ("OnlyFirst", "OnlySecond"), "[CLS]": ("[SEP]", "the"), "[SEP]": ("[CLS]", "the"), "A": ("B", "C"), "B": ("A", "C")},
}


@dataclasses.dataclass(frozen=True)
class Change:
    """One field of one file with another value."""

    file: str
    field: Path_
    value: Any

    def __str__(self) -> str:
        return f"{self.file}:{'.'.join(map(str, self.field))}={json.dumps(self.value)[:60]}"

    def applied(self, files: Files) -> dict[str, Any]:
        """`files` with the change."""
        out = copy.deepcopy(dict(files))
        place = out[self.file]
        for key in self.field[:-1]:
            place = place[key]
        place[self.field[-1]] = self.value
        return out

    @property
    def name(self) -> str:
        """The innermost name in the field."""
        return next(str(key) for key in reversed(self.field) if isinstance(key, str))

    @property
    def number(self) -> int:
        """A number that depends on the change alone."""
        return zlib.crc32(str(self).encode())


def changes(files: Files) -> list[Change]:
    """Each field of each file with two other values; of lists of pieces and of merges three entries, and the whole."""
    found = ((name, field, value) for name, content in files.items() for field, value in _fields(content))
    return [Change(name, field, other) for name, field, value in found for other in _others(field, value, files)]


def _fields(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if path:
        yield path, value
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    if path and path[-1] in ("vocab", "merges", "added_tokens", "added_tokens_decoder") and len(items) > 3:
        items = [items[0], items[len(items) // 2], items[-1]]
    if path[-2:-1] != ("merges",):
        for key, one in items:
            yield from _fields(one, (*path, key))


def _others(field: Path_, value: Any, files: Files) -> Sequence[Any]:
    """Two values that the field does not hold."""
    if field[-1] == "precompiled_charsmap":
        return "", "AAAA"
    if field[-2:-1] == ("merges",):
        merges = files["tokenizer.json"]["model"]["merges"]
        return [merge for merge in (merges[0], merges[3], merges[5]) if merge != value][:2]
    if field[-1] in ("sep", "cls") or (field[-2:-1] == ("vocab",) and isinstance(value, list)):
        return []  # a piece and its id or score: each is changed
    found: list[Any] = [*OTHERS.get(str(field[-1]), ()), *(VALUES.get(value, ()) if isinstance(value, str) else ())]
    if field == ("decoder", "type"):
        found = ["Fuse", "ByteFallback"]
    if isinstance(value, bool):
        found += [not value, None]
    elif isinstance(value, int):
        found += [value + 1, 0, 3]
    elif isinstance(value, float):
        found += [value - 1.5, value + 2.0]
    elif isinstance(value, str):
        found += [f"{value}x", "the", ""]
    elif isinstance(value, list):
        found += [value[::-1], value[:-1], [*value, *value[:1]], []]
    elif value is None:
        found += [True, "x"]
    return [other for n, other in enumerate(found) if other != value and other not in found[:n]][:2]


def write(folder: Path, files: Files) -> None:
    """Writes `files`, and removes the others of the folder."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def theirs(folder: Path, texts: Sequence[str]) -> tuple[list, list, set[str]] | str:
    """AutoTokenizer's ids of prompts and of plain texts, and its special pieces; FAILS where it does not open or encode."""
    try:
        tool = transformers.AutoTokenizer.from_pretrained(folder)
        special = {str(token) for token in tool.added_tokens_decoder.values() if token.special} | set(tool.all_special_tokens)
        return tool(list(texts))["input_ids"], tool(list(texts), add_special_tokens=False)["input_ids"], special
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return FAILS


def compared(folder: Path, change: Change, files: Files, texts: Sequence[str]) -> str:
    """One of OUTCOMES, or what is wrong."""
    write(folder, change.applied(files))
    wanted = theirs(folder, texts)
    try:
        ours = load(folder)
    except UserError as error:
        named = change.name in str(error)
        if wanted == FAILS:
            return "fails there too"
        return "refused" if named else f"{change}: refused without the name {change.name}: {error}"
    if wanted == FAILS:
        return f"{change}: opened, and transformers fails"
    prompts, plain, special = wanted
    special |= {ours.token(index) for index in ours.vocabulary.reserved}
    for text, prompt, ids in zip(texts, prompts, plain, strict=True):
        if (found := ours.encode_prompt(text)) != prompt:
            return f"{change}: {text!r} is {found} and not {prompt}"
        literal = not any(piece.strip().lower() in text.lower() for piece in special)
        if literal and not ours.encode([text])[0] == ids == ours.encode_flat([text]).tokens.tolist():
            return f"{change}: {text!r} as text is {ours.encode([text])[0]} and not {ids}"
    return "same"
