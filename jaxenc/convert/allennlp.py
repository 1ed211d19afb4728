"""A folder with an options.json and a file of weights in HDF5, as AllenNLP keeps a model, in and out."""

import json
from pathlib import Path

from jaxenc.convert import assemble
from jaxenc.data.folders import must_be_new
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.families.foreign import AllenNlp
from jaxenc.files import made, read_json
from jaxenc.formats import hdf5
from jaxenc.inference.load import Model

ADVICE = "name a folder with an options.json and its weights in HDF5"
OPTIONS, WEIGHTS = "options.json", "weights.hdf5"


def load(folder: str | Path, tokenizer: str = "") -> Model:
    """The model of a folder, in float32, with the options' own names or those that AllenNLP published (..._options.json).

    tokenizer: as in `hf.load`; bilm-tf's vocab.txt beside the files is one. Raises UserError, one line that names the file, the field or
    the tensor, for what cannot be converted and for options that are not those of the weights.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: {ADVICE}")
    where, weights = _one(folder, OPTIONS), _one(folder, WEIGHTS)
    data, tensors = read_json(where, ADVICE), hdf5.open_tensors(weights)
    words = assemble.open_tokenizer(folder, tokenizer)
    # The options name no family: one alone has them.
    (layout,) = _layouts().values()
    return assemble.model(layout.read(data, tensors, where, words.vocabulary if words else None), words, weights)


def save(out: str | Path, ours: Model) -> None:
    """Writes a new folder that AllenNLP opens, whole or not at all, and the words beside it where there are some.

    Raises UserError for a folder that holds something already, a model that AllenNLP does not have or cannot compute, and a disk that
    refuses.
    """
    out, kind = Path(out), ours.config.model.kind
    if kind not in _layouts():
        raise UserError(f"a model of kind {kind} is none that AllenNLP opens: use --to hf")
    must_be_new(out, "folder")
    data, arrays = _layouts()[kind].write(assemble.weights(ours))
    with made(out) as folder:
        hdf5.write(folder / WEIGHTS, arrays)
        (folder / OPTIONS).write_text(json.dumps(data, indent=2) + "\n")
        if ours.tokenizer is not None:
            ours.tokenizer.save(folder)


def _layouts() -> dict[str, AllenNlp]:
    return {kind: family.allennlp for kind, family in BUILT_IN.items() if family.allennlp}


def _one(folder: Path, ending: str) -> Path:
    """The one file whose name ends so."""
    found = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    if len(found) != 1:
        told = f"holds {', '.join(path.name for path in found)}" if found else f"holds no file whose name ends in {ending}"
        raise UserError(f"{folder}: {told}: {ADVICE}, one of each")
    return found[0]
