"""Text to ids and back. One file per kind of vocabulary; all of them build the same `Tokenizer`."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from jaxenc.data.tokenizers import (
    agreement,
    bpe,
    reach,
    sentencepiece,
    spiece,
    spiece_folder,
    word_bpe,
    word_list,
    wordpiece,
    wordpiece_rules,
)
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.tokenizer import SETTINGS, Tokenizer
from jaxenc.errors import UserError
from jaxenc.files import read_json

__all__ = ["Tokenizer", "load"]

# {type of model in a tokenizer.json: module that opens it}; word_bpe opens a BPE that marks the ends of words; wordpiece opens, or refuses,
# all others
KINDS: Mapping[str, ModuleType] = {"WordPiece": wordpiece, "BPE": bpe, "Unigram": sentencepiece, "WordLevel": word_list}


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else BERT's or bilm-tf's `vocab.txt`, `vocab.json` with `merges.txt`, or
    a SentencePiece `.model` (spiece_folder.py says which names).

    A `tokenizer_config.json` next to BERT's vocab.txt says how texts are read: normalize, do_lower_case, strip_accents; without one BERT's
    defaults hold, and a warning on stderr says where these keep many pieces from being found.
    Raises UserError when the folder holds none of these files, a vocabulary that is not sound, or two files that disagree about a piece;
    Unsupported for other kinds.
    """
    folder = Path(directory)
    if (path := folder / "tokenizer.json").is_file() and not spiece_folder.is_source(folder):
        return _opened(path)
    if (path := folder / "vocab.txt").is_file():
        if word_list.is_list(path):
            return word_list.from_vocab(path)
        rules = wordpiece_rules.of_settings(folder / SETTINGS)
        tool = wordpiece.from_vocab(path, rules)
        reach.report(path, tool, rules)
        return tool
    if (path := folder / "vocab.json").is_file():
        return word_bpe.from_files(folder) if word_bpe.is_vocab(path) else bpe.from_files(folder)
    if (path := spiece_folder.find(folder)) is not None:
        return spiece_folder.from_model(path)
    if (folder / "tokenizer").is_dir():
        raise UserError(f"{folder}: no tokenizer but a folder that holds one: name {folder / 'tokenizer'}")
    names = f"tokenizer.json, vocab.txt, vocab.json or {spiece.NAME}"
    raise UserError(f"{folder}: no {names} here; `jaxenc tokenizer --input FILES --out {folder}` makes one")


def _opened(path: Path) -> Tokenizer:
    """The tokenizer of a tokenizer.json. Raises UserError where the original format's files next to it disagree."""
    data = read_json(path, AGAIN)
    kind = _kind(data.get("model"))
    opener = word_bpe if kind == "BPE" and word_bpe.is_model(data["model"]) else KINDS.get(kind, wordpiece)
    tool = opener.from_json(path, data)
    agreement.check(path, data, kind, tool)
    return tool


def _kind(model: object) -> str:
    """The kind of a model. Old files do not say it: only BPE has merges, and only Unigram a list for its vocabulary."""
    if not isinstance(model, dict):
        return "WordPiece"
    guess = "BPE" if "merges" in model else "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"
    return str(model.get("type", guess))
