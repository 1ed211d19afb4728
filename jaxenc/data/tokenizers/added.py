"""Added pieces: found whole in a text before it is cut into words, as the add_tokens of transformers has them."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tokenizers as library

from jaxenc.errors import UserError

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

Entry = Mapping[str, Any]  # content, id and FLAGS, as tokenizer.json lists them


def entry(piece: str, index: int, *flags: str) -> Entry:
    """The added piece with this id and these of FLAGS on."""
    return {"content": piece, "id": index, **{flag: flag in flags for flag in FLAGS}}


def of_list(listed: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The added pieces that a tokenizer.json lists. Raises KeyError or TypeError for entries of another form."""
    return [{name: one[name] for name in ("content", "id", *FLAGS)} for one in listed]


def of_settings(config: Mapping[str, Any]) -> list[Entry]:
    """The added pieces in a tokenizer_config.json with the content `config`. Raises as `of_list`, also ValueError and AttributeError."""
    return of_list({**one, "id": int(index)} for index, one in config.get("added_tokens_decoder", {}).items())


def settings(entries: Sequence[Entry]) -> dict[int, dict[str, Any]]:
    """The entry `added_tokens_decoder` of a tokenizer_config.json."""
    return {one["id"]: {name: one[name] for name in ("content", *FLAGS)} for one in entries}


def by_id(entries: Iterable[Entry]) -> list[Entry]:
    """The entries sorted by id."""
    return sorted(entries, key=lambda one: one["id"])


def register(tool: library.Tokenizer, entries: Sequence[Entry]) -> None:
    """Adds `entries`, sorted by id, to `tool`; pieces that its model lacks get the ids after the model's."""
    for special, some in itertools.groupby(entries, key=lambda one: one["special"]):
        tokens = [library.AddedToken(one["content"], **{flag: one[flag] for flag in FLAGS}) for one in some]
        (tool.add_special_tokens if special else tool.add_tokens)(tokens)


def must_be_a_word(piece: str, words: Sequence[str]) -> None:
    """Raises UserError for a new piece that no text can give, in a vocabulary that cuts texts into words.
    words: what it cuts `piece` into."""
    if len(words) > 1:
        what = f"it holds {len(words)} words, {', '.join(map(repr, words))}"
        raise UserError(f"{piece!r} is never found in a text: {what}", fix="give each word as a piece of its own")
    if list(words) != [piece]:
        raise UserError(f"{piece!r} is never found in a text: it is read as {''.join(words)!r}", fix="write it as it is read")


def told_apart(tool: library.Tokenizer) -> tuple[library.Tokenizer, str]:
    """`tool` without added pieces that it reads alike, such as `Covid` and `covid` in lower case, and a line about them, '' for none.

    Of such pieces the library finds one drawn at random for each object (transformers too). Here one has the texts that are read like it:
    the one that is written so, or else the first. The others are found as they are written.
    """
    data, pieces = json.loads(tool.to_str()), dict[str, list[dict[str, Any]]]()
    for one in data["added_tokens"] if tool.normalizer is not None else []:
        if one["normalized"]:
            pieces.setdefault(tool.normalizer.normalize_str(one["content"]), []).append(one)
    alike = {read: some for read, some in pieces.items() if len(some) > 1}
    if not alike:
        return tool, ""
    for read, some in alike.items():
        kept = next((one for one in some if one["content"] == read), some[0])
        for one in some:
            one["normalized"] = one is kept
    out = library.Tokenizer.from_str(json.dumps(data))
    out.model, out.encode_special_tokens = tool.model, tool.encode_special_tokens
    read, some = next(iter(alike.items()))
    names, kept = " and ".join(repr(one["content"]) for one in some), next(one["content"] for one in some if one["normalized"])
    line = f"{names} are added pieces that are read alike, as {read!r} ({len(alike)} such cases): transformers gives any of them; "
    return out, line + f"here a text that is written like one gives that one, and any other gives {kept!r}"
