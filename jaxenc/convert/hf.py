"""A model folder of transformers, in and out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.convert import FAMILIES, build
from jaxenc.convert.family import Export, Family, class_of
from jaxenc.data.folders import must_be_new
from jaxenc.errors import UserError
from jaxenc.files import made, read_json
from jaxenc.formats import key_map, safetensors, weights
from jaxenc.formats.tensor import ADVICE
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model

# Dtypes of the weights that are written.
WRITTEN = ("float32", "float16", "bfloat16")


def load(folder: str | Path, tokenizer: str = "") -> Model:
    """The model in a folder that transformers' save_pretrained wrote, in float32; or the run that several such folders are, where this
    one holds them under the names that `save` gives them.

    tokenizer: another folder to take it from, 'none' for no tokenizer, '' for the folder's own, or none where it has no such files.
    Raises UserError, one line that names the file, the tensor or the field, for what cannot be converted.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: name one that transformers wrote; a model of the hub is downloaded first")
    for several in (family.several for family in FAMILIES.values() if family.several):
        there = [name for name in several.folders if (folder / name / "config.json").is_file()]
        if len(there) == len(several.folders):
            models = {name: load(folder / name, tokenizer) for name in there}
            try:
                return several.join(models)
            except UserError as error:
                raise UserError(f"{folder}: {error}") from error
        if there and not (folder / "config.json").is_file():
            missing = next(name for name in several.folders if name not in there)
            raise UserError(f"{folder}: holds no {missing}/config.json: name {folder / there[0]} to convert that model alone")
    config, tensors = _config(folder / "config.json"), weights.open_tensors(folder)
    found = FAMILIES[config["model_type"]].read(config, tensors, folder / "config.json")
    return build.model(found, tensors, build.open_tokenizer(folder, tokenizer), folder)


def _config(path: Path) -> dict[str, Any]:
    """config.json, always with a `model_type`, one of FAMILIES."""
    config = read_json(path, ADVICE)
    # Folders from before 2020 name only the class, and those from before transformers had a second model not even that.
    named = class_of(config) or next(iter(FAMILIES))
    kind = config.get("model_type") or next((kind for kind in FAMILIES if named.lower().startswith(kind)), named)
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise UserError(f"{path}: its model_type is {kind!r}: {', '.join(FAMILIES)} can be converted")
    return {**config, "model_type": kind}


def models(ours: Model) -> Mapping[str, Model]:
    """The models of transformers that `ours` is: {subfolder: model}, {'': ours} for the usual one."""
    several = _family(ours).several
    return (several and several.split(ours)) or {"": ours}


def export(ours: Model) -> Export:
    """`ours`, one of `models`, as transformers has it. Raises UserError for a model that it does not have, such as one with a head that is
    not built in."""
    if own := [name for name in ours.heads if name in ours.params and name not in BUILT_IN]:
        raise UserError(f"this model has the head {own[0]}, and transformers has no such head: export a model without it")
    return _family(ours).write(ours)


def _family(ours: Model) -> Family:
    kind = ours.config.model.kind
    if kind not in FAMILIES:
        raise UserError(f"transformers has no class for a model of kind {kind}: `jaxenc export --help` shows what else there is")
    return FAMILIES[kind]


def save(out: str | Path, ours: Model, dtype: str = WRITTEN[0]) -> dict[Path, str]:
    """Writes a new folder that transformers opens: config.json, model.safetensors and the tokenizer's files, whole or not at all; of a
    run that is several models there, a folder that holds one for each.

    Returns {folder: name of the class of transformers that opens it}. dtype: of the weights, one of WRITTEN.
    Raises UserError for a folder that holds something already, a model that transformers does not have, numbers too large for `dtype`,
    and a disk that refuses.
    """
    out = Path(out)
    must_be_new(out, "folder")
    exports = {name: export(model) for name, model in models(ours).items()}
    with made(out) as whole:
        for name, theirs in exports.items():
            folder = whole / name
            folder.mkdir(exist_ok=True)
            arrays = key_map.to_theirs(theirs.entries, theirs.params)
            safetensors.write(folder / "model.safetensors", arrays, safetensors.NAMED[dtype])
            (folder / "config.json").write_text(json.dumps({**theirs.config, "dtype": dtype}, indent=2) + "\n")
            if ours.tokenizer is not None:
                ours.tokenizer.save(folder, ours.config.model.positions)
    return {out / name: class_of(theirs.config) for name, theirs in exports.items()}
