"""Reads TensorFlow 1 checkpoints that the authors of a paper published, without TensorFlow."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from jaxenc.convert import assemble, places, sizes
from jaxenc.data.tokenizers import Tokenizer, reach, vocab_txt, wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.files import read_json
from jaxenc.formats import tensorflow
from jaxenc.formats.tensor import Tensor
from jaxenc.inference.model import Model

# Variables of optimizers and of the training loop: google-research's Adam, NVIDIA's LAMB, TensorFlow's optimizers and its loss scaling
# (loss_scale_manager.py, loss_scale.py).
NOT_WEIGHTS = re.compile(
    r"(.*/)?((adam|lamb)_[mv]|Adam(_\d+)?|Momentum|RMSProp(_\d+)?|Adagrad|Adadelta(_\d+)?|Ftrl(_\d+)?|ExponentialMovingAverage"
    r"|beta[12]_power(_\d+)?|(global|current|local)_step|(current_)?loss_scale|(num_)?(good|bad)_steps|(current_)?learning_rate)"
)
ENDINGS = re.compile(r"\.(index|meta|data-\d+-of-\d+)")


def open_tensors(prefix: Path) -> dict[str, Tensor]:
    """{name: Tensor} of the weights in PREFIX.index and its data files, sorted by name, without what training leaves there: names of
    NOT_WEIGHTS, numbers without an axis, and slots of an optimizer, whose names are a variable's and one part more. Reads no values.

    Raises UserError when `prefix` is a folder or one of the files, and for an index that is missing or damaged.
    """
    if ENDINGS.fullmatch(prefix.suffix):
        raise UserError("one file of a checkpoint", prefix, f"name the prefix {prefix.with_suffix('')}")
    if prefix.is_dir():
        found = sorted(path.with_suffix("") for path in prefix.glob("*.index"))
        if not found:
            places.check(prefix, "tf")
        example = f"such as {found[0]}" if found else "PREFIX of PREFIX.index, which no file here is"
        raise UserError("a folder", prefix, f"name the prefix of the checkpoint, {example}")
    tensors = tensorflow.open_tensors(prefix)
    is_slot = lambda name: "/" in name and name.rpartition("/")[0] in tensors
    return {name: t for name, t in tensors.items() if t.shape and not is_slot(name) and not NOT_WEIGHTS.fullmatch(name)}


def load(prefix: str | Path, tokenizer: str = "", leave_out: Sequence[str] = ()) -> Model:
    """The model of a checkpoint, in float32, with the vocabulary and the config from the same folder.

    tokenizer, leave_out: as in `hf.load`. No published file says whether texts are lower-cased, so the pieces of vocab.txt decide: with
    capital letters texts keep their case. A tokenizer_config.json or tokenizer.json in the folder takes precedence. Raises UserError,
    which names the file, the tensor or the field, for what cannot be converted.
    """
    prefix = Path(prefix)
    tensors = open_tensors(prefix)
    layouts = [family.google for family in BUILT_IN.values() if family.google]
    fitting = [google for google in layouts if any(f"/{google.base}" in f"/{name}" for name in tensors)]
    # Names of one family may begin as another's do and go on.
    google = max(fitting, key=lambda google: len(google.base), default=None)
    if google is None:
        wanted = " or ".join(google.base for google in layouts)
        raise UserError(f"no name in it has {wanted}", prefix, "name a checkpoint of a model that can be converted")
    where = prefix.parent / google.config if google.config else prefix
    if google.config and not where.is_file():
        raise UserError(f"holds no {google.config}", prefix.parent, "put the one that was published with the checkpoint beside it")
    config = read_json(where, "copy it again") if google.config else {}
    found, dropped = assemble.read(lambda some: google.read(config, some, where), tensors, leave_out, prefix)
    with sizes.named(config, found, lambda other: google.read(other, found.tensors, where), where):
        return assemble.model(found, _tokenizer(prefix.parent, tokenizer), prefix, where, dropped)


def _tokenizer(folder: Path, choice: str) -> Tokenizer | None:
    path = folder / "vocab.txt"
    if choice or not path.is_file() or any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json")):
        return assemble.open_tokenizer(folder, choice)
    pieces = (piece for piece in vocab_txt.read(path)[0] if piece not in wordpiece.SPECIALS and not wordpiece.UNUSED.fullmatch(piece))
    cased = any(piece != piece.lower() for piece in pieces)
    reason = "capital letters, so texts are kept as they are" if cased else "no capital letters, so texts are lower-cased"
    print(f"convert: {path} has {reason}", file=sys.stderr)
    rules = PublishedRules(lowercase=not cased, strip_accents=not cased)
    tool = wordpiece.from_vocab(path, rules)
    reach.report(path, tool, rules)
    return tool
