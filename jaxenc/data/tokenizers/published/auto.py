"""A folder's tokenizer as AutoTokenizer of transformers 5.24 builds it: one object of the `tokenizers` library that holds every rule.

The sections of tokenizer.json are read by the library that defines them; settings.py reads the files beside it, and classes.py has what
the classes of transformers put in place of some sections. Sections for truncation and padding are checked and then left out: neither
transformers nor jaxenc cuts or pads a text unless it is asked to.
"""

import base64
import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers as library

from jaxenc.data.tokenizers import added as adding
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.published import classes, settings
from jaxenc.data.tokenizers.published.sections import differences
from jaxenc.data.tokenizers.published.settings import Piece, Settings
from jaxenc.data.tokenizers.sentencepiece import charsmap
from jaxenc.data.tokenizers.sentencepiece.model_file import LARGEST_SCORE, LONGEST
from jaxenc.data.tokenizers.sentencepiece.specials import ENDS
from jaxenc.errors import UserError

SECTIONS = ("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
# A sound tokenizer to which one section is added, to find the one at fault
EMPTY = {"model": {"type": "WordLevel", "vocab": {}, "unk_token": ""}, "version": "1.0", "added_tokens": []}


@dataclasses.dataclass(frozen=True)
class Opened:
    """tool: without truncation and padding. roles: {bos_token ...: piece}, as the files and the class name them. values: tokenizer_config
    without its pieces. kind: see classes.py."""

    tool: library.Tokenizer
    roles: Mapping[str, str]
    values: Mapping[str, Any]
    kind: str


def opened(path: Path, data: Mapping[str, Any], choice: classes.Choice) -> Opened:
    """The tokenizer of a folder. path, data: its tokenizer.json, or another file of a vocabulary and what it says in that form.
    choice: the class of transformers that builds it.

    A line on stderr says where the class named by the folder puts other rules in place of those in tokenizer.json. Raises UserError for
    what transformers does not open either, and for pieces that are named but not there; it names the file and the field.
    """
    _check(path, data)
    kind, found = choice.kind, settings.read(path.parent, data)
    if kind != classes.FILE and (null := [name for name in settings.SWITCHES if found.values.get(name, False) is None]):
        raise UserError(f"{null[0]} is null", found.where, "write true or false, or remove the field")
    written = _parsed(path, data if kind == classes.FILE else _without_pieces(data))
    roles = classes.DEFAULTS[kind] | _padding(data) | found.roles
    if null := [name for name in classes.DEFAULTS[kind] if roles.get(name) is None and name not in ("pad_token", "mask_token")]:
        raise UserError(f"{null[0]} is null", found.where, "name a piece")
    roles = {name: piece for name, piece in roles.items() if piece is not None}
    if isinstance(roles.get("mask_token"), str) and (kind == classes.XLNET or roles["mask_token"] == _takes_blank(kind, path)):
        roles["mask_token"] = library.AddedToken(roles["mask_token"], lstrip=True)
    with library_errors(f"{found.where}: its settings do not fit {path.name}"):
        tool = written if kind == classes.FILE else classes.rebuilt(choice, path, data, found, roles)
        if kind == classes.ALBERT and None in [tool.token_to_id(str(roles[name])) for name in ("cls_token", "sep_token")]:
            raise ValueError("cls_token or sep_token is not in the vocabulary")
        tool.no_truncation(), tool.no_padding()
        _add(tool, kind, roles, found)
        names = {name: str(piece) for name, piece in roles.items()}
        if (frame := classes.frame(kind, tool, names, found.values, written.post_processor)) is not None:
            tool.post_processor = frame
    tool.encode_special_tokens = bool(found.values.get("split_special_tokens"))
    if kind != classes.FILE and path.name == "tokenizer.json":
        _say(path, choice.where, {**json.loads(written.to_str()), "added_tokens": data.get("added_tokens") or []}, tool)
    tool, alike = adding.told_apart(tool)
    if alike:
        print(f"tokenizer: {path}: {alike}", file=sys.stderr)
    return Opened(tool, names, found.values, kind)


def _takes_blank(kind: str, path: Path) -> str:
    """The mask that takes the blank before it where no file says so: RoBERTa's beside its vocab.json, as fairseq and transformers 4 have
    it; in transformers 5 the blank there is a piece of its own."""
    return "<mask>" if kind == classes.ROBERTA and path.name == "vocab.json" else ""


def _check(path: Path, data: Mapping[str, Any]) -> None:
    """Raises UserError for what would make the library read beyond its tables, end the process, or draw ids at random."""
    model = data.get("model")
    if not isinstance(model, dict):
        raise UserError("model is not an object", path, AGAIN)
    if model.get("dropout"):
        raise UserError(f"model.dropout is {model['dropout']!r}: ids would be drawn at random", path, "write null")
    with library_errors(f"{path}: normalizer"):
        for step in _steps(data.get("normalizer")):
            charsmap.check(base64.b64decode(step.get("precompiled_charsmap") or ""))
    if isinstance(model.get("vocab"), list):
        with library_errors(f"{path}: model.vocab"):
            seen = set[str]()
            for piece, score in model["vocab"]:
                if piece in seen:
                    raise ValueError(f"the piece {piece[:20]!r} stands twice in it")
                seen.add(piece)
                if not 0 < len(piece) <= LONGEST or not abs(score) <= LARGEST_SCORE:
                    raise ValueError(f"the piece {piece[:20]!r} has {len(piece)} characters and the score {score}")


def _steps(section: Any) -> Iterator[Mapping[str, Any]]:
    """The steps of a section, of sequences in sequences too."""
    if isinstance(section, dict):
        yield section
        for value in section.values():
            yield from (step for one in (value if isinstance(value, list) else []) for step in _steps(one))


@contextlib.contextmanager
def library_errors(where: str) -> Iterator[None]:
    """Turns what the library raises, its panics too, into one UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"damaged ({type(error).__name__}: {error})", where, AGAIN) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UserError(f"damaged ({error})", where, AGAIN) from error


def _parsed(path: Path, data: Mapping[str, Any]) -> library.Tokenizer:
    """The tokenizer that the file says. Raises UserError, which names the section that the library does not read."""
    try:
        with library_errors(str(path)):
            return library.Tokenizer.from_str(json.dumps(data))
    except UserError:
        for name in SECTIONS:
            with library_errors(f"{path}: {name}"):
                library.Tokenizer.from_str(json.dumps({**EMPTY, **({name: data[name]} if name in data else {})}))
        raise


def _padding(data: Mapping[str, Any]) -> dict[str, str]:
    """The piece that the section `padding` names: transformers takes it for pad_token."""
    section = data.get("padding")
    return {"pad_token": section["pad_token"]} if isinstance(section, dict) and "pad_token" in section else {}


def _add(tool: library.Tokenizer, kind: str, roles: Mapping[str, Piece], found: Settings) -> None:
    """Adds the pieces of the files beside tokenizer.json in the order of transformers; one that the vocabulary lacks gets the next id."""
    own = ENDS if kind == classes.XLNET else ()
    extra = own if found.extra is None else found.extra
    adding: list[Piece] = [token for _, token in sorted(found.added.items())]
    there = {token.content for token in tool.get_added_tokens_decoder().values()} | {str(token) for token in adding}
    named = {str(piece) for piece in roles.values()}
    for piece in [*roles.values(), *extra]:
        if str(piece) not in there and piece not in adding:
            adding.append(piece)
    tokens = []
    for piece in adding:
        token = library.AddedToken(piece, special=True) if isinstance(piece, str) else piece
        token.special = token.special or str(token) in named
        tokens.append(token)
    tool.add_tokens(tokens)
    for index, token in sorted(found.added.items()):
        if (actual := tool.token_to_id(token.content)) != index:
            said = f"{token.content!r} has the id {actual}, as in transformers, and not {index} as its files say"
            print(f"tokenizer: {found.where.parent}: {said}", file=sys.stderr)


def _without_pieces(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` as transformers parses it for a class that builds its own rules: its model, if it is named, without pieces."""
    if data["model"].get("type") in (None, "Unigram"):
        return dict(data)
    empty = {name: type(data["model"][name])() for name in ("vocab", "merges") if name in data["model"]}
    return {**data, "model": {**data["model"], **empty}, "added_tokens": []}


def _say(path: Path, where: Path, written: Mapping[str, Any], tool: library.Tokenizer) -> None:
    """Prints the first fields of tokenizer.json that the class does not follow. The pieces are the same."""
    theirs, ours = ({**one, "model": one["model"] | {"vocab": {}, "merges": []}} for one in (written, json.loads(tool.to_str())))
    pieces = [{one["content"]: {**one, "id": 0} for one in data["added_tokens"]} for data in (theirs, ours)]
    theirs["added_tokens"], ours["added_tokens"] = pieces[0], {name: one for name, one in pieces[1].items() if name in pieces[0]}
    if differ := differences(theirs, ours):
        shown = ", ".join(f"{name} is {_short(one)} in the first and {_short(two)} in the second" for name, one, two in differ[:3])
        more = f", and {len(differ) - 3} more" if len(differ) > 3 else ""
        print(
            f"tokenizer: {path} and {where} differ: {shown}{more}; the second is followed, as in transformers 5: write "
            '"tokenizer_class": "PreTrainedTokenizerFast" there to follow the first',
            file=sys.stderr,
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
