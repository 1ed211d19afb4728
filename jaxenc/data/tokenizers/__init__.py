"""Text to ids and back. One file per kind of vocabulary; all of them build the same `Tokenizer`."""

from pathlib import Path
from types import ModuleType

from jaxenc.data.tokenizers import bpe, sentencepiece, word_list, wordpiece
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

__all__ = ["Tokenizer", "load"]


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else BERT's or bilm-tf's `vocab.txt`, `vocab.json` with `merges.txt`, or
    `spiece.model`.

    A `tokenizer_config.json` beside a lone vocab.txt of BERT says do_lower_case and strip_accents; without one they take BERT's defaults.
    Raises UserError when the folder holds none of these files, or a vocabulary that is not sound; Unsupported for other kinds.
    """
    folder = Path(directory)
    if (path := folder / "tokenizer.json").is_file():
        data = read_json(path, AGAIN)
        return _kind(data.get("model")).from_json(path, data)
    if (path := folder / "vocab.txt").is_file():
        if word_list.is_list(path):
            return word_list.from_vocab(path)
        return wordpiece.from_vocab(path, *wordpiece.settings_of(folder / "tokenizer_config.json"))
    if (folder / "vocab.json").is_file():
        return bpe.from_files(folder)
    if (path := folder / sentencepiece.NAME).is_file():
        return sentencepiece.from_model(path)
    if (folder / "tokenizer").is_dir():
        raise UserError(f"{folder}: no tokenizer but a folder that holds one: name {folder / 'tokenizer'}")
    if found := sorted(folder.glob("*.model")):
        raise Unsupported(f"{found[0]}: a SentencePiece model; only a {sentencepiece.NAME} can be opened, other kinds come later")
    names = f"tokenizer.json, vocab.txt, vocab.json or {sentencepiece.NAME}"
    raise UserError(f"{folder}: no {names} here; `jaxenc tokenizer --input FILES --out {folder}` makes one")


def _kind(model: object) -> ModuleType:
    """The file of a model's kind. Old files do not say it: only BPE has merges, and only Unigram a list for its vocabulary."""
    if not isinstance(model, dict):
        return wordpiece
    guess = "BPE" if "merges" in model else "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"
    return {"BPE": bpe, "Unigram": sentencepiece, "WordLevel": word_list}.get(model.get("type", guess), wordpiece)
