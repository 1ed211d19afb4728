"""Reads and writes models in the format of AllenNLP: a folder with an options.json and weights in HDF5."""

import json
from collections.abc import Sequence
from pathlib import Path

from jaxenc.convert import assemble
from jaxenc.data.folders import must_be_new
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.families.foreign import AllenNlp
from jaxenc.files import made, read_json
from jaxenc.formats import hdf5, left_out
from jaxenc.inference.model import Model

ADVICE = "name a folder with an options.json and its weights in HDF5"
OPTIONS, WEIGHTS = "options.json", "weights.hdf5"


def load(folder: str | Path, tokenizer: str = "", leave_out: Sequence[str] = ()) -> Model:
    """The model in a folder, in float32. The files may be called options.json and weights.hdf5 or end in that, as AllenNLP published them.

    tokenizer, leave_out: as in `hf.load`; bilm-tf's vocab.txt in the folder is a tokenizer. Raises UserError, which names the file, the
    field or the tensor, for what cannot be converted and for options that do not fit the weights.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError("no such folder", folder, ADVICE)
    where, weights = _one(folder, OPTIONS), _one(folder, WEIGHTS)
    data = read_json(where, ADVICE)
    tensors, dropped = left_out.split(hdf5.open_tensors(weights), leave_out, weights)
    words = assemble.open_tokenizer(folder, tokenizer)
    # The options do not name a family, and only one family has this format.
    (layout,) = _layouts().values()
    return assemble.model(layout.read(data, tensors, where, words.vocabulary if words else None), words, weights, where, dropped)


def save(out: str | Path, ours: Model) -> None:
    """Writes a new folder that AllenNLP opens, with the word list where there is one; complete or not at all.

    Raises UserError for a folder that is not empty, a model that AllenNLP does not support, and a write that fails.
    """
    out, kind = Path(out), ours.config.model.kind
    if kind not in _layouts():
        raise UserError(f"AllenNLP does not open a model of kind {kind}", fix="use --to hf")
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
    """The one file in `folder` whose name ends in `ending`. Raises UserError for none and for several."""
    found = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    if len(found) != 1:
        content = f"holds {', '.join(path.name for path in found)}" if found else f"holds no file whose name ends in {ending}"
        raise UserError(content, folder, f"{ADVICE}, one of each")
    return found[0]
