"""Text to ids and back. One file per kind of vocabulary; all of them build the same `Tokenizer`."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxenc.data.tokenizers import (
    agreement,
    auto,
    bpe,
    classes,
    published,
    sections,
    sentencepiece,
    settings,
    word_bpe,
    word_list,
    wordpiece,
    wordpiece_rules,
)
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.tokenizer import SETTINGS, Tokenizer
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

__all__ = ["Tokenizer", "load"]

# {type of model in a tokenizer.json: module that makes such vocabularies}; word_bpe those that mark the ends of words
KINDS: Mapping[str, ModuleType] = {"WordPiece": wordpiece, "BPE": bpe, "Unigram": sentencepiece, "WordLevel": word_list}


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else BERT's or bilm-tf's `vocab.txt`, `vocab.json` with `merges.txt`, or
    `spiece.model`.

    A tokenizer.json gives the ids that transformers' AutoTokenizer gives, with the tokenizer_config.json, special_tokens_map.json and
    added_tokens.json beside it. A `tokenizer_config.json` next to BERT's vocab.txt says how texts are read: normalize, do_lower_case,
    strip_accents; without one BERT's defaults hold.
    Raises UserError when the folder holds none of these files, a vocabulary that is not sound, or two files that disagree about a piece;
    Unsupported for other kinds.
    """
    folder = Path(directory)
    if (path := folder / "tokenizer.json").is_file():
        return _opened(path)
    if (path := folder / "vocab.txt").is_file():
        if word_list.is_list(path):
            return word_list.from_vocab(path)
        return _with_pieces(path, wordpiece.from_vocab(path, wordpiece_rules.of_settings(folder / SETTINGS)))
    if (path := folder / "vocab.json").is_file():
        return _with_pieces(path, word_bpe.from_files(folder) if word_bpe.is_vocab(path) else bpe.from_files(folder))
    if (path := folder / sentencepiece.NAME).is_file():
        return sentencepiece.from_model(path)
    if (folder / "tokenizer").is_dir():
        raise UserError(f"{folder}: no tokenizer but a folder that holds one: name {folder / 'tokenizer'}")
    if found := sorted(folder.glob("*.model")):
        raise Unsupported(f"{found[0]}: a SentencePiece model; only a {sentencepiece.NAME} can be opened, other kinds come later")
    names = f"tokenizer.json, vocab.txt, vocab.json or {sentencepiece.NAME}"
    raise UserError(f"{folder}: no {names} here; `jaxenc tokenizer --input FILES --out {folder}` makes one")


def _opened(path: Path) -> Tokenizer:
    """The tokenizer of a tokenizer.json. Raises UserError where the original format's files next to it disagree."""
    data = read_json(path, AGAIN)
    found = auto.opened(path, data, classes.chosen(path.parent))
    held = json.loads(found.tool.to_str())
    tool = _of(path, data, found, held)
    agreement.check(path, held, held["model"]["type"], tool)
    return tool


def _with_pieces(path: Path, tool: Tokenizer) -> Tokenizer:
    """`tool`, opened from the original format's files, with the pieces of an added_tokens.json and special_tokens_map.json beside them."""
    if not any((path.parent / name).is_file() for name in (settings.ADDED, settings.SPECIALS_MAP)):
        return tool
    data = json.loads(tool.definition)
    found = auto.opened(path, data, classes.Choice(classes.FILE, "", path))
    return _of(path, data, found, json.loads(found.tool.to_str()))


def _of(path: Path, data: Mapping[str, Any], found: auto.Opened, held: dict[str, Any]) -> Tokenizer:
    """The tokenizer of what `auto` opened, `held` as JSON. The module that makes vocabularies of this kind opens it if all rules are its
    own: fingerprint, files and the way to add words then stay what they were. Else it is a published one."""
    if isinstance(data["model"].get("vocab"), list):
        held["model"]["vocab"] = data["model"]["vocab"]  # with the scores as they are written
    opener = word_bpe if word_bpe.is_model(held["model"]) else KINDS[held["model"]["type"]]
    of_words = word_list.SIZE in found.values  # whose words are read by their characters: no other kind can take its place
    try:
        tool = opener.from_json(path, held)
    except UserError:
        if of_words:
            raise
        return published.tokenizer(path, found)
    if differ := sections.differences(json.loads(tool.definition), held):
        if of_words:
            name, one, two = differ[0]
            raise Unsupported(f"{name} is {two!r} and not {one!r}, as in all lists of words made by jaxenc", path, AGAIN)
        return published.tokenizer(path, found)
    return published.tokenizer(path, found) if found.tool.encode_special_tokens else tool
