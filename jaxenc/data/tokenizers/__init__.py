"""Text to ids and back. One file per kind of vocabulary; all of them build the same `Tokenizer`."""

from pathlib import Path

from jaxenc.data.tokenizers import wordpiece
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.errors import UserError

__all__ = ["Tokenizer", "load"]


def load(directory: str | Path) -> Tokenizer:
    """The tokenizer of a folder: its `tokenizer.json`, or else its BERT `vocab.txt`.

    A `tokenizer_config.json` beside a lone vocab.txt says do_lower_case and strip_accents; without one they take BERT's defaults.
    Raises UserError when the folder holds neither file, or a vocabulary that is not sound.
    """
    folder = Path(directory)
    if (folder / "tokenizer.json").is_file():
        return wordpiece.from_json(folder / "tokenizer.json")
    if (folder / "vocab.txt").is_file():
        lowercase, strip_accents = wordpiece.settings_of(folder / "tokenizer_config.json")
        return wordpiece.from_vocab(folder / "vocab.txt", lowercase, strip_accents)
    raise UserError(f"{folder}: no tokenizer.json and no vocab.txt here; `jaxenc tokenizer --input FILES --out {folder}` makes one")
