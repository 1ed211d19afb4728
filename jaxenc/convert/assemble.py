"""The steps that all formats share: from converted tensors and a tokenizer to a model, and from a model to the input of an export."""

import sys
from pathlib import Path

from jaxenc import tree
from jaxenc.config import to_dict
from jaxenc.convert import runs
from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import Unsupported, UserError
from jaxenc.families.foreign import Import, Weights
from jaxenc.formats import key_map
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model, objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters

# A folder with any of these files has a tokenizer, though perhaps of a kind that is not supported.
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
WITHOUT = "`--tokenizer none` converts without it"


def model(found: Import, tokenizer: Tokenizer | None, where: Path) -> Model:
    """The model of an `Import`, in float32; its note is printed to stderr. where: the name of the source in messages.

    Raises UserError for tensors that do not fit the config, and for a tokenizer that does not fit the model.
    """
    run = runs.run_of(found)
    _check_tokenizer(tokenizer, run, where)
    abstract, _ = parameters(objective_of(run, tokenizer))
    shapes = {path: leaf.shape for path, leaf in tree.leaves(abstract)}
    params = key_map.to_ours(found.entries, found.tensors, shapes, str(where), found.skipped)
    if note := runs.note(found, run):
        print(f"convert: {where}: {note}", file=sys.stderr)
    return Model(run, params, tokenizer)


def weights(ours: Model) -> Weights:
    """`ours` as a family's `write` takes it, without heads that are not built in."""
    params = {name: branch for name, branch in ours.params.items() if name in BUILT_IN or name not in ours.heads}
    # A head without parameters is named by the objective alone; any other head may have been left out of `ours`.
    without = set(ours.objective.heads) - set(parameters(ours.objective)[0])
    structure = runs.structure_of(ours.config, {*params, *without})
    return Weights(structure, ours.tokenizer.vocabulary if ours.tokenizer else None, params)


def open_tokenizer(folder: Path, choice: str) -> Tokenizer | None:
    """The tokenizer of `choice`: another folder, 'none' for no tokenizer, '' for the folder's own.

    The weights are useful without one: None where the folder has no tokenizer files, and, with a line on stderr, where they are of an
    unsupported kind. Raises UserError for damaged files, and where `choice` names a folder that cannot be opened.
    """
    if choice == "none" or not (choice or any((folder / name).exists() for name in TOKENIZER_FILES)):
        return None
    try:
        return tokenizers.load(Path(choice).expanduser() if choice else folder)
    except UserError as error:
        if isinstance(error, Unsupported) and not choice:
            print(f"convert: {error}", file=sys.stderr)
            return None
        raise UserError(f"{error}; {WITHOUT}") from error


def _check_tokenizer(tokenizer: Tokenizer | None, run: Run, where: Path) -> None:
    """Raises UserError for a tokenizer that does not fit the model: one that would change a field of the run."""
    if tokenizer is None or run.with_vocabulary(tokenizer.vocabulary) == run:
        return
    size, pad = tokenizer.vocabulary.size, tokenizer.vocabulary.pad
    fault = f"has {size} tokens and the model {run.model.vocab_size} embedding rows"
    if size == run.model.vocab_size:
        actual, fitting = to_dict(run.model), to_dict(run.with_vocabulary(tokenizer.vocabulary).model)
        differ = [f"model.{name} would be {fitting[name]} and is {actual[name]}" for name in actual if actual[name] != fitting[name]]
        fault = f"has the pad id {pad}, with which {', '.join(differ)}"
    raise UserError(f"{where}: the tokenizer {fault}: name the right one with --tokenizer DIR; {WITHOUT}")
