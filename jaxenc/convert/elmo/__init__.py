"""ELMo as allenai/bilm-tf and AllenNLP keep it: a folder with an options.json and a file of weights in HDF5. In and out.

The weights are those of the network alone: the softmax stays behind in TensorFlow's checkpoint, in both directions of ours too.
"""

import json
from pathlib import Path

from jaxenc.convert import build
from jaxenc.convert.elmo import names, options
from jaxenc.convert.family import Import, check_layers
from jaxenc.data.folders import must_be_new
from jaxenc.data.sources import DataConfig
from jaxenc.errors import UserError
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.files import made, read_json
from jaxenc.formats import hdf5, key_map
from jaxenc.inference.load import Model
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run

ADVICE = "name a folder with an options.json and its weights in HDF5"
OPTIONS, WEIGHTS = "options.json", "weights.hdf5"
LENGTH = 20  # steps that the published models were unrolled over


def load(folder: str | Path, tokenizer: str = "") -> Model:
    """The model of a folder, in float32, with the options' own names or those that AllenNLP published (..._options.json).

    tokenizer: as in `hf.load`; bilm-tf's vocab.txt beside the files is one. Raises UserError, one line that names the file, the field or
    the tensor, for what cannot be converted and for options that are not those of the weights.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: {ADVICE}")
    where, weights = _one(folder, "options.json"), _one(folder, "weights.hdf5")
    data, tensors = read_json(where, ADVICE), hdf5.open_tensors(weights)
    words = build.open_tokenizer(folder, tokenizer)
    model = options.model_of(data, where)
    check_layers(max(model.layers, model.highways), tensors, where)
    run = run_of(options.with_words(model, data, words.vocabulary, where) if words else model)
    split = names.split(tensors, model)
    return build.model(Import(run, names.entries(run.model)), split, words, weights)


def run_of(model: ElmoConfig) -> Run:
    """A Run for a converted model: no loss; rows and optimizer as in its training (bin/train_elmo.py of allenai/bilm-tf)."""
    adagrad = OptimConfig("adagrad", lr=0.2, warmup=0, schedule="constant", weight_decay=0.0, clip=10.0, decay_exclude=())
    return Run(FeaturesConfig(), model, data=DataConfig(rows="sentences", length=LENGTH), optim=adagrad)


def save(out: str | Path, ours: Model) -> None:
    """Writes a new folder that AllenNLP and bilm-tf open, whole or not at all, and the words beside it where there are some.

    Raises UserError for a folder that holds something already, a model that is no ELMo or that they cannot compute, and a disk that
    refuses.
    """
    out, model = Path(out), ours.config.model
    if not isinstance(model, ElmoConfig):
        raise UserError(f"a model of kind {model.kind} is none that AllenNLP's ELMo opens: use --to hf")
    must_be_new(out, "folder")
    data = options.of_model(model)
    table = names.entries(model)
    kept = {name: branch for name, branch in ours.params.items() if name in {entry.ours.split("/")[0] for entry in table}}
    arrays = names.joined(key_map.to_theirs(table, kept), model)
    with made(out) as folder:
        hdf5.write(folder / WEIGHTS, arrays)
        (folder / OPTIONS).write_text(json.dumps(data, indent=2) + "\n")
        if ours.tokenizer is not None:
            ours.tokenizer.save(folder)


def _one(folder: Path, ending: str) -> Path:
    """The one file whose name ends so."""
    found = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    if len(found) != 1:
        told = f"holds {', '.join(path.name for path in found)}" if found else f"holds no file whose name ends in {ending}"
        raise UserError(f"{folder}: {told}: {ADVICE}, one of each")
    return found[0]
