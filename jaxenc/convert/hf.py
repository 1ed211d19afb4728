"""Reads and writes model folders of transformers."""

import dataclasses
import fnmatch
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import heads, tree
from jaxenc.convert import assemble, places, runs, sizes
from jaxenc.data.folders import must_be_new
from jaxenc.data.tokenizers.tokenizer import SETTINGS
from jaxenc.errors import UserError
from jaxenc.families import BUILT_IN
from jaxenc.families.count import has_vocabulary, true_shape
from jaxenc.families.foreign import Export, Folders, Transformers, class_of
from jaxenc.files import made, read_json
from jaxenc.formats import key_map, safetensors, weights
from jaxenc.formats.tensor import ADVICE
from jaxenc.inference.model import Model

# Dtypes of the weights that are written.
WRITTEN = ("float32", "float16", "bfloat16")
# The file of heads that are not built in.
OWN_HEADS = "own_heads.safetensors"
# {model_type in a config.json: the layout of its family}.
LAYOUTS = {name: family.transformers for family in BUILT_IN.values() if family.transformers for name in family.transformers.model_types}


def load(folder: str | Path, tokenizer: str = "", leave_out: Sequence[str] = ()) -> Model:
    """The model in a folder of transformers (save_pretrained), in float32; or the joined model of several such folders, where this one
    contains them under the names that `save` uses.

    tokenizer: another folder to take it from, 'none' for no tokenizer, '' for the folder's own, if it has one. leave_out: patterns
    (`fnmatch`) of the names of tensors that are not read, for those that the model does not need. A prefix of all names, such as `module.`,
    is taken off with a line on stderr. Raises UserError, which names the file, the tensor or the field, for what cannot be converted.
    """
    folder = Path(folder)
    for several in (layout.several for layout in LAYOUTS.values() if layout.several):
        there = [name for name in several.names if (folder / name / "config.json").is_file()]
        if len(there) == len(several.names):
            return _joined(folder, several, tokenizer, leave_out)
        if there and not (folder / "config.json").is_file():
            missing = next(name for name in several.names if name not in there)
            raise UserError(f"holds no {missing}/config.json", folder, f"name {folder / there[0]} to convert that model alone")
    places.check(folder)
    path = folder / "config.json"
    config, tensors = _config(path), weights.open_tensors(folder)
    layout = LAYOUTS[config["model_type"]]
    found, dropped = assemble.read(lambda some: layout.read(config, some, path), tensors, leave_out, folder)
    with sizes.named(config, found, lambda other: layout.read(other, found.tensors, path), path):
        model = assemble.model(found, assemble.open_tokenizer(folder, tokenizer), folder, path, dropped)
    if note := places.note(folder):
        assemble.say(folder, note)
    return model


def _joined(folder: Path, several: Folders, tokenizer: str, leave_out: Sequence[str]) -> Model:
    """The joined model of the folders `several` in `folder`; its note is printed to stderr."""
    held = {name: weights.open_tensors(folder / name) for name in several.names}
    # A pattern for one of them need not match in the others.
    fits = lambda pattern, names: any(fnmatch.fnmatchcase(name, pattern) for name in names)
    useless = [pattern for pattern in leave_out if not any(fits(pattern, names) for names in held.values())]
    chosen = {name: [one for one in leave_out if one in useless or fits(one, names)] for name, names in held.items()}
    models = {name: load(folder / name, tokenizer, chosen[name]) for name in several.names}
    shared = next((model.tokenizer for model in reversed(models.values()) if model.tokenizer), None)
    if shared:
        # One of the folders may have the tokenizer of both.
        models = {name: assemble.with_tokenizer(model, shared, folder / name) for name, model in models.items()}
    try:
        whole, note = several.join({name: assemble.weights(model) for name, model in models.items()})
    except UserError as error:
        raise error.at(folder) from error
    if note:
        print(f"convert: {note}", file=sys.stderr)
    return Model(runs.run_for(whole.structure), whole.params, shared)


def _config(path: Path) -> dict[str, Any]:
    """config.json with a `model_type` that is one of LAYOUTS. Raises UserError for another."""
    config = read_json(path, ADVICE)
    # Folders from before 2020 name only the class; the oldest, from when transformers had one model, name nothing.
    named = class_of(config) or next(iter(LAYOUTS))
    kind = config.get("model_type") or next((kind for kind in LAYOUTS if named.lower().startswith(kind.replace("-", ""))), named)
    if not isinstance(kind, str) or kind not in LAYOUTS:
        raise UserError(f"its model_type is {kind!r}", path, f"name a model of {', '.join(LAYOUTS)}")
    return {**config, "model_type": kind}


def models(ours: Model) -> Mapping[str, Model]:
    """The models that `ours` becomes in transformers, {subfolder: model}; usually one, {'': ours}."""
    several = _layout(ours).several
    parts = several.split(assemble.weights(ours)) if several else {}
    if not parts:
        return {"": ours}
    run = lambda one: dataclasses.replace(ours.config, objective=runs.objective_for(one), model=one.model)
    return {name: Model(run(part.structure), part.params, ours.tokenizer) for name, part in parts.items()}


def export(ours: Model) -> Export:
    """`ours`, one of `models`, in the format of transformers, without heads that are not built in. Raises UserError for a model that
    transformers does not have."""
    return _layout(ours).write(assemble.weights(ours))


def _without_types(settings: Path) -> None:
    """Leaves token types out of what the tokenizer gives: some classes refuse them, and one adds a row of the token table for each."""
    facts = json.loads(settings.read_text())
    if "token_type_ids" in facts.get("model_input_names", ()):
        facts["model_input_names"].remove("token_type_ids")
        settings.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def own_heads(ours: Model) -> dict[str, np.ndarray]:
    """{path: array} of the parameters of heads that are not built in, without the rows that pad the vocabulary; `OWN_HEADS` holds them."""
    kept = {name: ours.params[name] for name in ours.heads if name in ours.params and name not in heads.BUILT_IN}
    size, others = ours.config.model.vocab_size, ours.objective.vocabulary
    true = lambda path, leaf: leaf[: true_shape(path, leaf.shape, size, others)[0]] if has_vocabulary(path, others) else leaf
    return {path: true(path, np.asarray(leaf)) for path, leaf in tree.leaves(kept)}


def _layout(ours: Model) -> Transformers:
    family = BUILT_IN.get(ours.config.model.kind)
    if family is None or family.transformers is None:
        kind = ours.config.model.kind
        raise UserError(f"transformers has no class for a model of kind {kind}", fix="`jaxenc export --help` shows what else there is")
    return family.transformers


def save(out: str | Path, ours: Model, dtype: str = WRITTEN[0]) -> dict[Path, str]:
    """Writes a new folder that transformers opens, with config.json, model.safetensors and the tokenizer's files, complete or not at all;
    for a pair of networks, a folder with a subfolder for each. A user's own heads, which transformers does not have, are in the file
    `OWN_HEADS` beside them, by our paths.

    Returns {folder: name of the class of transformers that opens it}. dtype: of the weights, one of WRITTEN. Raises UserError for a folder
    that is not empty, a model that transformers does not have, numbers too large for `dtype`, and a write that fails.
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
                if ours.config.model.types < 2:
                    _without_types(folder / SETTINGS)
        if own := own_heads(ours):
            safetensors.write(whole / OWN_HEADS, own, safetensors.NAMED[dtype])
    return {out / name: class_of(theirs.config) for name, theirs in exports.items()}
