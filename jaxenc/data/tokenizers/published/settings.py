"""The files beside a tokenizer.json: tokenizer_config.json, special_tokens_map.json and added_tokens.json, read as transformers reads them.

The order is that of `from_pretrained` in transformers 5.24 (tokenization_utils_base.py): where the config has `added_tokens_decoder`, the
other two files are not read; otherwise special_tokens_map.json overrides the config, and added_tokens.json and the added tokens of
tokenizer.json are added. docs/tokenizers.md lists every field.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers as library

from jaxenc.data.tokenizers import checks
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import SETTINGS, SPECIALS_MAP
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

ADDED = "added_tokens.json"
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")  # in the order in which they are added
EXTRA, OLD_EXTRA, NAMED = "extra_special_tokens", "additional_special_tokens", "model_specific_special_tokens"
SWITCHES = (
    "do_lower_case",
    "tokenize_chinese_chars",
    "add_prefix_space",
    "keep_accents",
    "trim_offsets",
    "split_special_tokens",
    "clean_up_tokenization_spaces",
)
SIDES = ("padding_side", "truncation_side")
FLAGS = {"content", "single_word", "lstrip", "rstrip", "normalized", "special"}

Piece = str | library.AddedToken


@dataclasses.dataclass(frozen=True)
class Settings:
    """values: the config without its pieces. roles: {name: piece}, of ROLES first and then of names that only this folder has; None where
    the file says null. extra: other special pieces, None where the files do not say. added: {id in the file: piece}. where: the config's
    path, for messages."""

    values: Mapping[str, Any]
    roles: Mapping[str, Piece | None]
    extra: list[Piece] | None
    added: Mapping[int, library.AddedToken]
    where: Path


def read(folder: Path, data: Mapping[str, Any]) -> Settings:
    """The settings of a folder. data: the content of its tokenizer.json. Raises UserError, which names the file and the field."""
    where = folder / SETTINGS
    config = dict(read_json(where, AGAIN)) if where.is_file() else {}
    _check(config, where)
    values = {name: value for name, value in config.items() if name not in ("tokenizer_class", "init_inputs")}
    if OLD_EXTRA in values and not values.get(EXTRA):
        values[EXTRA] = values.pop(OLD_EXTRA)
    if isinstance(values.get(EXTRA), dict):
        values = {**{name: value for name, value in values.items() if name != EXTRA}, **values[EXTRA]}
    _check_extra(values.get(EXTRA), OLD_EXTRA if EXTRA not in config else EXTRA, where)
    if "added_tokens_decoder" in values:
        added = _decoder(values.pop("added_tokens_decoder"), where)
    else:
        values |= _specials(folder / SPECIALS_MAP, values)
        added = _added(folder / ADDED, values)
        with checks.damaged("tokenizer.json"):
            for entry in data.get("added_tokens") or []:
                added[int(entry["id"])] = _token({name: entry[name] for name in entry if name != "id"}, "added_tokens", "tokenizer.json")
    return _settings(values, added, where)


def _settings(values: Mapping[str, Any], added: Mapping[int, library.AddedToken], where: Path) -> Settings:
    found: dict[str, Piece | None] = {}
    for name in [*ROLES, *(name for name in values if name.endswith("_token") and name not in ROLES)]:
        if name in values and not isinstance(values[name], bool):
            found[name] = _piece(values[name], name, where)
    extra = values[EXTRA] if EXTRA in values else values.get(OLD_EXTRA)
    _check_extra(extra, EXTRA if EXTRA in values else OLD_EXTRA, where)
    pieces = None if extra is None else [piece for item in extra if (piece := _piece(item, EXTRA, where)) is not None]
    return Settings({name: value for name, value in values.items() if name not in (*found, EXTRA, OLD_EXTRA)}, found, pieces, added, where)


def _check_extra(extra: Any, name: str, where: Path) -> None:
    if not isinstance(extra, list | None):
        raise UserError(f"{name} is {extra!r}", where, "write a list of pieces")


def _check(config: Mapping[str, Any], where: Path) -> None:
    """Raises UserError for a field of another type than transformers takes, and for one that points to other files."""
    for name in SWITCHES:
        if not isinstance(config.get(name), bool | None):
            raise UserError(f"{name} is {config[name]!r}", where, "write true or false")
    if not isinstance(config.get("strip_accents"), bool | None):
        raise UserError(f"strip_accents is {config['strip_accents']!r}", where, "write true, false or null")
    for name in SIDES:
        if config.get(name, "right") not in ("left", "right"):
            raise UserError(f"{name} is {config[name]!r}", where, "write left or right")
    if not isinstance(config.get("model_max_length", 0), int | float | None):
        raise UserError(f"model_max_length is {config['model_max_length']!r}", where, "write a number of tokens")
    if not isinstance(config.get("model_input_names", []), list):
        raise UserError(f"model_input_names is {config['model_input_names']!r}", where, "write a list of names")
    if config.get("init_inputs"):
        raise Unsupported("init_inputs holds arguments without names", where, "remove the field")
    if (files := config.get("fast_tokenizer_files")) not in (None, ["tokenizer.json"]):
        raise Unsupported(f"fast_tokenizer_files names {files!r}", where, "leave the tokenizer.json to use and remove the field")


def _decoder(written: Any, where: Path) -> dict[int, library.AddedToken]:
    with checks.damaged(f"{where}: added_tokens_decoder"):
        return {int(index): _token(one, "added_tokens_decoder", where) for index, one in written.items()}


def _specials(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of special_tokens_map.json, which replace those of `values`."""
    written = read_json(path, AGAIN) if path.is_file() else {}
    out: dict[str, Any] = {}
    for name, value in written.items():
        for item in value if isinstance(value, list) else []:
            _piece(item, name, path)
        if not (name.endswith("_token") or name in (EXTRA, OLD_EXTRA)):
            raise Unsupported(f"{name} is not a special piece", path, "remove the field")
        if name == EXTRA and isinstance(value, dict):
            out |= value
        elif name == EXTRA:
            _check_extra(value, name, path)
            out[name] = list(dict.fromkeys([*(values.get(EXTRA) or []), *(value or [])]))
        elif name == OLD_EXTRA:
            out[name] = value
        else:
            out[name] = _token({**value, "special": True}, name, path) if isinstance(value, dict) else _piece(value, name, path)
    return out


def _added(path: Path, values: Mapping[str, Any]) -> dict[int, library.AddedToken]:
    """The pieces of an added_tokens.json, {piece: id}: those that `values` names are special."""
    written = read_json(path, AGAIN) if path.is_file() else {}
    pieces = [values[name] for name in ROLES if values.get(name)] + list(values.get(EXTRA) or [])
    special = {piece["content"] if isinstance(piece, dict) and "content" in piece else str(piece) for piece in pieces}
    for piece, index in written.items():
        if not isinstance(index, int) or isinstance(index, bool):
            raise UserError(f"the id of {piece!r} is {index!r}", path, "write a whole number")
    return {index: library.AddedToken(p, special=p in special, normalized=p not in special) for p, index in written.items()}


def _piece(value: Any, name: str, where: object) -> Piece | None:
    if isinstance(value, dict) and value.get("__type") == "AddedToken":
        return _token({key: one for key, one in value.items() if key != "__type"}, name, where)
    if not isinstance(value, str | library.AddedToken | None):
        raise UserError(f"{name} is {value!r}", where, "write a piece")
    return value


def _token(written: Mapping[str, Any], name: str, where: object) -> library.AddedToken:
    """An added piece in the form {content, flags}. Raises UserError that names the field and the flag."""
    if not isinstance(written, dict) or not isinstance(written.get("content"), str) or not written["content"]:
        raise UserError(f"{name} holds {written!r}", where, "write an object with the piece as its content")
    for flag, value in written.items():
        if flag not in FLAGS or (flag != "content" and not isinstance(value, bool)):
            raise UserError(f"{flag} of {written['content']!r} in {name} is {value!r}", where, "write true or false, or remove it")
    return library.AddedToken(**written)
