"""Reads checkpoints of fairseq: a file of torch with the weights and the settings of their training, and dict.txt beside it."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxenc.convert import assemble, places
from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.files import read_json, read_lines
from jaxenc.formats import pytorch
from jaxenc.inference.model import Model

# If a folder has several files, the first of these is read.
PREFERRED = ("model.pt", "checkpoint_best.pt", "checkpoint_last.pt")
DICT, ENCODER, MERGES = "dict.txt", "encoder.json", "vocab.bpe"
AGAIN = "copy or download it again"
# The ids before and after the lines of dict.txt (fairseq/data/dictionary.py; fairseq/tasks/masked_lm.py).
FIRST, MASK = ("<s>", "<pad>", "</s>", "<unk>"), "<mask>"


def load(place: str | Path, tokenizer: str = "", leave_out: Sequence[str] = ()) -> Model:
    """The model of a checkpoint, in float32. place: the file, or its folder.

    tokenizer, leave_out: as in `hf.load`. The ids of a tokenizer are those of dict.txt, whose lines are the ids of fairseq's byte-level
    BPE, GPT-2's; its pieces are in encoder.json and vocab.bpe, beside the checkpoint or in the folder `tokenizer`. Without them the model
    has no tokenizer.
    Raises UserError, which names the file, the tensor or the setting, for what cannot be converted. Nothing in the file is run.
    """
    path = _file(Path(place))
    tensors, settings = pytorch.open_checkpoint(path)
    # No setting names a family, and only one family has this format.
    (reader,) = (family.fairseq for family in BUILT_IN.values() if family.fairseq)
    found, dropped = assemble.read(lambda some: reader(settings, some, path), tensors, leave_out, path)
    return assemble.model(found, _tokenizer(path.parent, tokenizer), path, path, dropped)


def _file(place: Path) -> Path:
    """The checkpoint at `place`. Raises UserError where there is none, or several and none of PREFERRED."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise UserError("no such file or folder", place, "name a checkpoint of fairseq or its folder")
    found = sorted(place.glob("*.pt"))
    preferred = [place / name for name in PREFERRED if place / name in found]
    if len(preferred or found) == 1 or preferred:
        return (preferred or found)[0]
    if found:
        raise UserError(f"holds {', '.join(path.name for path in found[:3])}", place, f"name one of them, such as fairseq:{found[0]}")
    places.check(place, "fairseq")
    raise UserError("holds no fairseq checkpoint, a file that ends in .pt", place, "name the folder that holds it")


def _tokenizer(folder: Path, choice: str) -> Tokenizer | None:
    """As `assemble.open_tokenizer`, and from dict.txt with ENCODER and MERGES."""
    if choice == "none":
        return None
    files = Path(choice).expanduser() if choice else folder
    if (files / ENCODER).is_file() and (files / MERGES).is_file():
        if not (folder / DICT).is_file():
            raise UserError(f"no {DICT}, which gives the ids of the pieces", folder, f"copy it there; {assemble.WITHOUT}")
        return _of_dict(folder / DICT, files)
    found = assemble.open_tokenizer(folder, choice)
    if found is None and (folder / DICT).is_file():
        assemble.say(folder, f"for a tokenizer, put fairseq's {ENCODER} and {MERGES} there or name their folder with --tokenizer")
    return found


def _of_dict(path: Path, files: Path) -> Tokenizer:
    """The tokenizer of a dict.txt and of the two files of its pieces in `files`. Raises UserError for files that do not belong together."""
    pieces = {number: piece for piece, number in read_json(files / ENCODER, AGAIN).items()}
    vocab = {piece: number for number, piece in enumerate((*FIRST, *_pieces(path, pieces, files / ENCODER)))}
    vocab.setdefault(MASK, len(vocab))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.json").write_text(json.dumps(vocab))
        (Path(folder) / "merges.txt").write_bytes((files / MERGES).read_bytes())
        try:
            return tokenizers.load(folder)
        except UserError as error:
            reason = str(error).replace(f"{folder}/", "")
            raise UserError(reason, f"{path} with {files / MERGES}", assemble.WITHOUT) from error


def _pieces(path: Path, pieces: Mapping[int, str], encoder: Path) -> list[str]:
    """The pieces of a dict.txt in the order of their ids: a line is an id of `pieces`, or the name of a filler, and its count."""
    out = []
    for number, line in enumerate(read_lines(path, AGAIN), 1):
        word = line.partition(" ")[0]
        piece = pieces.get(int(word)) if word.isdecimal() else word
        if not word or piece is None:
            raise UserError(f"{word!r} is not an id in {encoder}", f"{path}:{number}", assemble.WITHOUT)
        out.append(piece)
    return out
