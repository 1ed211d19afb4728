"""Opens the tokenizer of a folder: which of its files is read, and by which module."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxenc.data.tokenizers import agreement, bpe, reach, word_bpe, word_list, wordpiece, wordpiece_rules
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.published import auto, build, classes, sections, settings
from jaxenc.data.tokenizers.sentencepiece import model_file, model_folder, unigram
from jaxenc.data.tokenizers.tokenizer import SETTINGS, SPECIALS_MAP, Tokenizer
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

# {type of model in a tokenizer.json: module that makes such vocabularies}; word_bpe those that mark the ends of words
KINDS: Mapping[str, ModuleType] = {"WordPiece": wordpiece, "BPE": bpe, "Unigram": unigram, "WordLevel": word_list}


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else BERT's or bilm-tf's `vocab.txt`, `vocab.json` with `merges.txt`, or
    a SentencePiece `.model` (sentencepiece/model_folder.py says which names).

    A tokenizer.json gives the ids that transformers' AutoTokenizer gives, with the tokenizer_config.json, special_tokens_map.json and
    added_tokens.json beside it. A `tokenizer_config.json` next to BERT's vocab.txt says how texts are read: normalize, do_lower_case,
    strip_accents; without one BERT's defaults hold, and a warning on stderr says where these keep many pieces from being found.
    Raises UserError when the folder holds none of these files, a vocabulary that is not sound, or two files that disagree about a piece;
    Unsupported for other kinds.
    """
    folder = Path(directory)
    if (path := folder / "tokenizer.json").is_file() and not model_folder.is_source(folder):
        return _opened(path)
    if (path := folder / "vocab.txt").is_file():
        if word_list.is_list(path):
            return word_list.from_vocab(path)
        classes.check_vocab_txt(path)
        rules = wordpiece_rules.of_settings(folder / SETTINGS)
        tool = wordpiece.from_vocab(path, rules)
        reach.report(path, tool, rules)
        return _with_pieces(path, tool)
    if (path := folder / "vocab.json").is_file():
        return _with_pieces(path, word_bpe.from_files(folder) if word_bpe.is_vocab(path) else bpe.from_files(folder))
    if (path := model_folder.find(folder)) is not None:
        return model_folder.from_model(path)
    if (folder / "tokenizer").is_dir():
        raise UserError("no tokenizer but a folder that holds one", folder, f"name {folder / 'tokenizer'}")
    names = f"tokenizer.json, vocab.txt, vocab.json or {model_file.NAME}"
    raise UserError(f"no {names} here", folder, f"`jaxenc tokenizer --input FILES --out {folder}` makes one")


def _opened(path: Path) -> Tokenizer:
    """The tokenizer of a tokenizer.json. Raises UserError where the original format's files next to it disagree."""
    data = read_json(path, AGAIN)
    found = auto.opened(path, data, classes.chosen(path.parent))
    held = json.loads(found.tool.to_str())
    tool = _of(path, data, found, held)
    agreement.check(path, held, held["model"]["type"], tool)
    return tool


def _with_pieces(path: Path, tool: Tokenizer) -> Tokenizer:
    """`tool`, opened from the original format's files, with the pieces of an added_tokens.json and special_tokens_map.json beside them.
    Raises Unsupported for an added_tokens.json beside a vocab.txt that repeats a piece, which no tokenizer.json can hold."""
    beside = [name for name in (settings.ADDED, SPECIALS_MAP) if (path.parent / name).is_file()]
    if not tool.definition and settings.ADDED in beside:
        raise Unsupported(
            f"a piece on several lines, and a {settings.ADDED} beside it", path, "append the added pieces to it, and remove that file"
        )
    if not tool.definition or not beside:
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
        return build.tokenizer(path, found)
    if differ := sections.differences(json.loads(tool.definition), held):
        if of_words:
            name, one, two = differ[0]
            raise Unsupported(f"{name} is {two!r} and not {one!r}, as in all lists of words made by jaxenc", path, AGAIN)
        return build.tokenizer(path, found)
    return build.tokenizer(path, found) if found.tool.encode_special_tokens else tool
