"""Opens the tokenizer of a folder: which of its files is read, and by which module."""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxenc.data.tokenizers import (
    agreement,
    bpe,
    bpe_rules,
    frame_files,
    merges,
    reach,
    vocab_txt,
    word_bpe,
    word_list,
    wordpiece,
    wordpiece_rules,
)
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS, SPECIALS_MAP
from jaxenc.data.tokenizers.published import auto, build, classes, sections, settings
from jaxenc.data.tokenizers.sentencepiece import model_file, model_folder, unigram
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json
from jaxenc.storage import READ_HERE, must_be_local

# {type of model in a tokenizer.json: module that makes such vocabularies}; word_bpe those that mark the ends of words
KINDS: Mapping[str, ModuleType] = {"WordPiece": wordpiece, "BPE": bpe, "Unigram": unigram, "WordLevel": word_list}


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else BERT's or bilm-tf's `vocab.txt`, `vocab.json` with `merges.txt`, or
    a SentencePiece `.model` (sentencepiece/model_folder.py says which names).

    All of them give the ids that transformers' AutoTokenizer gives, with the tokenizer_config.json, special_tokens_map.json and
    added_tokens.json beside them. Where no file names a class a vocab.txt is BERT's and a vocab.json RoBERTa's; a warning on stderr says
    where BERT's rule keeps many pieces of a vocab.txt from being found.
    Raises UserError when the folder holds none of these files, a vocabulary that is not sound, or two files that disagree about a piece;
    Unsupported for other kinds.
    """
    must_be_local(directory, "the tokenizer", READ_HERE)
    folder = Path(directory)
    if (mark := frame_files.read(folder / SETTINGS)) is None:
        return _load(folder, None)
    path, tool = folder / JSON, _load(folder, mark)
    if not tool.vocabulary.frames:
        raise UserError(f"its entry {frame_files.FRAME} frames texts, and no pieces are named for CLS and SEP", folder / SETTINGS, AGAIN)
    tool = tool.in_frame(mark.frame)
    # A frame that was changed after jaxenc wrote it is followed to the letter.
    changed = path.is_file() and sections.frame(read_json(path, AGAIN)) != sections.frame(json.loads(tool.definition or "{}"))
    return _load(folder, None) if changed else tool


def _load(folder: Path, mark: frame_files.Mark | None) -> Tokenizer:
    """mark: of a folder whose tokenizer.json frames texts otherwise than the vocabulary does: the vocabulary's own frame is then read."""
    if (path := folder / JSON).is_file() and not model_folder.is_source(folder):
        return _opened(path, {"post_processor": mark.own} if mark else {})
    if (path := folder / "vocab.txt").is_file():
        return word_list.from_vocab(path) if word_list.is_list(path) else _of_lines(path)
    if (path := folder / "vocab.json").is_file():
        return _of_pair(path)
    if (path := model_folder.find(folder)) is not None:
        return model_folder.from_model(path)
    raise _absent(folder)


def _absent(folder: Path) -> UserError:
    """The error for what holds no file of a tokenizer: it names the tokenizer inside it, for a run that of its newest checkpoint."""
    if folder.is_file():
        return UserError("a file, and a tokenizer is a folder", folder, "name the folder of a tokenizer")
    saved = (path for depth in ("", "checkpoints/", "*/checkpoints/") for path in folder.glob(f"{depth}*/tokenizer"))
    by_step = {path: int(path.parent.name) for path in saved if path.parent.name.isdecimal()}
    inside = folder / "tokenizer" if (folder / "tokenizer").is_dir() else max(by_step, key=by_step.__getitem__, default=None)
    if inside is not None:
        return UserError("not a tokenizer but a folder that holds one", folder, f"name {inside}")
    makes = f"`jaxenc tokenizer --input FILES --out {shlex.quote(str(folder))}` makes one"
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    names = f"tokenizer.json, vocab.txt, vocab.json or {model_file.NAME}"
    return UserError(f"no {names} here", folder, makes if is_free else "name a folder that `jaxenc tokenizer` made")


def _opened(path: Path, replaced: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a tokenizer.json, with sections read in place of its own. Raises UserError where the original format's files
    next to it disagree."""
    data = {**read_json(path, AGAIN), **replaced}
    found = auto.opened(path, data, classes.chosen(path.parent))
    tool = _of(path, data, found, _own)
    agreement.check(path, json.loads(found.tool.to_str()), tool)
    return tool


def _of_lines(path: Path) -> Tokenizer:
    """The tokenizer of BERT's vocab.txt, with the files beside it as BertTokenizer reads them."""
    rules = wordpiece_rules.of_settings(path.with_name(SETTINGS))
    if not isinstance(rules, PublishedRules):
        return _with_pieces(path, wordpiece.from_vocab(path, rules))
    pieces, notes = vocab_txt.read(path)
    data = {"model": wordpiece.section(pieces)}
    found = auto.opened(path, data, classes.chosen(path.parent, classes.BERT))
    added = settings.read(path.parent, data).added.values()
    named = (found.roles[name] for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token") if name in found.roles)
    wordpiece.check_there(path, named, {*pieces, *(token.content for token in added)})
    tool = _of(path, data, found, lambda path, _: wordpiece.of_lines(path, pieces, rules))
    wordpiece.warn(path, notes)
    reach.report(path, tool, rules)
    return tool


def _of_pair(path: Path) -> Tokenizer:
    """The tokenizer of a vocab.json and the merges.txt beside it, with the other files as the class of transformers reads them."""
    settings_path = path.with_name(SETTINGS)
    if word_bpe.is_vocab(path):
        return _with_pieces(path, word_bpe.from_files(path.parent))
    if bpe_rules.of_settings(settings_path, read_json(settings_path, AGAIN) if settings_path.is_file() else {}) != bpe_rules.PUBLISHED:
        return _with_pieces(path, bpe.from_files(path.parent))
    choice = classes.chosen(path.parent, classes.ROBERTA)
    data = {"model": {"type": "BPE", "vocab": read_json(path, AGAIN), "merges": merges.read(path.with_name(merges.NAME))}}
    return _of(path, data, auto.opened(path, data, choice), _own)


def _with_pieces(path: Path, tool: Tokenizer) -> Tokenizer:
    """`tool`, opened from the original format's files, with the pieces of an added_tokens.json and special_tokens_map.json beside them."""
    if not any((path.parent / name).is_file() for name in (settings.ADDED, SPECIALS_MAP)):
        return tool
    data = json.loads(tool.definition)
    return _of(path, data, auto.opened(path, data, classes.Choice(classes.FILE, "", path)), _own)


def _own(path: Path, held: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a tokenizer.json by the module that makes vocabularies of its kind. Raises UserError for what none of them makes."""
    return (word_bpe if word_bpe.is_model(held["model"]) else KINDS[held["model"]["type"]]).from_json(path, held)


def _of(path: Path, data: Mapping[str, Any], found: auto.Opened, own: Callable[[Path, dict[str, Any]], Tokenizer]) -> Tokenizer:
    """The tokenizer of what `auto` opened. If all rules and roles are those of a vocabulary that jaxenc makes, `own` opens it, so that its
    fingerprint, its files and the way to add words stay what they were; otherwise it is a published one."""
    held = json.loads(found.tool.to_str())
    if isinstance(data["model"].get("vocab"), list):
        held["model"]["vocab"] = data["model"]["vocab"]  # with the scores as they are written
    of_words = word_list.SIZE in found.values  # whose words are read by their characters: no other kind can take its place
    try:
        tool = own(path, held)
    except UserError:
        if of_words:
            raise
        return build.tokenizer(path, found)
    if differ := sections.differences(json.loads(tool.rules), held):
        if of_words:
            name, one, two = differ[0]
            raise Unsupported(f"{name} is {two!r} and not {one!r}, as in all lists of words made by jaxenc", path, AGAIN)
        return build.tokenizer(path, found)
    roles = ((role, found.roles.get(f"{role}_token")) for role in build.NAMES)
    other = any(piece is not None and found.tool.token_to_id(piece) != getattr(tool.vocabulary, role) for role, piece in roles)
    return build.tokenizer(path, found) if other or found.tool.encode_special_tokens else tool
