"""Text to ids and back. One file per kind of vocabulary; all of them build the same `Tokenizer`."""

from pathlib import Path

from jaxenc.data.files import read_json
from jaxenc.data.tokenizers import bpe, wordpiece
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.errors import Unsupported, UserError

__all__ = ["Tokenizer", "load"]


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else its BERT `vocab.txt`, or its `vocab.json` and `merges.txt`.

    A `tokenizer_config.json` beside a lone vocab.txt says do_lower_case and strip_accents; without one they take BERT's defaults.
    Raises UserError when the folder holds none of these files, or a vocabulary that is not sound; Unsupported for other kinds.
    """
    folder = Path(directory)
    if (path := folder / "tokenizer.json").is_file():
        data = read_json(path, AGAIN)
        return (bpe if _is_bpe(data.get("model")) else wordpiece).from_json(path, data)
    if (folder / "vocab.txt").is_file():
        return wordpiece.from_vocab(folder / "vocab.txt", *wordpiece.settings_of(folder / "tokenizer_config.json"))
    if (folder / "vocab.json").is_file():
        return bpe.from_files(folder)
    if (folder / "tokenizer").is_dir():
        raise UserError(f"{folder}: no tokenizer but a folder that holds one: name {folder / 'tokenizer'}")
    if found := sorted(folder.glob("*.model")):
        raise Unsupported(f"{found[0]}: a SentencePiece model; only WordPiece and byte-level BPE can be opened, other kinds come later")
    raise UserError(f"{folder}: no tokenizer.json, vocab.txt or vocab.json here; `jaxenc tokenizer --input FILES --out {folder}` makes one")


def _is_bpe(model: object) -> bool:
    """Old files do not say the type of their model; only BPE has merges."""
    return isinstance(model, dict) and model.get("type", "BPE" if "merges" in model else "") == "BPE"
