"""Reads TensorFlow 1 checkpoints that the authors of a paper published, without TensorFlow."""

import re
import sys
from pathlib import Path

from jaxenc.convert import assemble
from jaxenc.data.tokenizers import Tokenizer, wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.files import read_json
from jaxenc.formats import tensorflow
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.load import Model

# Variables of optimizers and of the training loop: google-research's Adam, NVIDIA's LAMB, TensorFlow's optimizers.
NOT_WEIGHTS = re.compile(r"(.*/)?((adam|lamb)_[mv]|Adam(_\d+)?|Momentum|beta[12]_power(_\d+)?|global_step)")
ENDINGS = re.compile(r"\.(index|meta|data-\d+-of-\d+)")


def open_tensors(prefix: Path) -> dict[str, Tensor]:
    """{name: Tensor} of the weights in PREFIX.index and its data files, sorted by name, without those of an optimizer; reads no values.

    Raises UserError when `prefix` is a folder or one of the files, and for an index that is missing or damaged.
    """
    if ENDINGS.fullmatch(prefix.suffix):
        raise UserError(f"{prefix}: one file of a checkpoint: name the prefix {prefix.with_suffix('')}")
    if prefix.is_dir():
        found = sorted(path.with_suffix("") for path in prefix.glob("*.index"))
        example = f"such as {found[0]}" if found else "PREFIX of PREFIX.index, which no file here is"
        raise UserError(f"{prefix}: a folder: name the prefix of the checkpoint, {example}")
    return {name: tensor for name, tensor in tensorflow.open_tensors(prefix).items() if not NOT_WEIGHTS.fullmatch(name)}


def load(prefix: str | Path, tokenizer: str = "") -> Model:
    """The model of a checkpoint, in float32, with the vocabulary and the config from the same folder.

    tokenizer: as in `hf.load`. No published file says whether texts are lower-cased, so the pieces of vocab.txt decide: with capital
    letters texts keep their case. A tokenizer_config.json or tokenizer.json in the folder takes precedence. Raises UserError, which names
    the file, the tensor or the field, for what cannot be converted.
    """
    prefix = Path(prefix)
    tensors = open_tensors(prefix)
    layouts = [family.google for family in BUILT_IN.values() if family.google]
    fitting = [google for google in layouts if any(name.startswith(google.base) for name in tensors)]
    # Names of one family may begin as another's do and go on.
    google = max(fitting, key=lambda google: len(google.base), default=None)
    if google is None:
        wanted = " or ".join(google.base for google in layouts)
        raise UserError(f"{prefix}: no name in it begins with {wanted}: name a checkpoint of a model that can be converted")
    where = prefix.parent / google.config if google.config else prefix
    if google.config and not where.is_file():
        raise UserError(f"{prefix.parent}: holds no {google.config}: put the one that was published with the checkpoint beside it")
    found = google.read(read_json(where, "copy it again") if google.config else {}, tensors, where)
    return assemble.model(found, _tokenizer(prefix.parent, tokenizer), prefix, where)


def _tokenizer(folder: Path, choice: str) -> Tokenizer | None:
    path = folder / "vocab.txt"
    if choice or not path.is_file() or any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json")):
        return assemble.open_tokenizer(folder, choice)
    uncased = wordpiece.from_vocab(path, PublishedRules(lowercase=True, strip_accents=True))
    pieces = map(uncased.token, set(range(uncased.vocabulary.size)) - set(uncased.vocabulary.reserved))
    cased = any(piece != piece.lower() for piece in pieces)
    reason = "capital letters, so texts are kept as they are" if cased else "no capital letters, so texts are lower-cased"
    print(f"convert: {path} has {reason}", file=sys.stderr)
    return wordpiece.from_vocab(path, PublishedRules(lowercase=False, strip_accents=False)) if cased else uncased
