"""The steps that all formats share: from converted tensors and a tokenizer to a model, and from a model to the input of an export."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from jaxenc import tree
from jaxenc.config import to_dict
from jaxenc.convert import prefix, runs
from jaxenc.data import tokenizers
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import Unsupported, UserError
from jaxenc.families.foreign import Import, Weights
from jaxenc.formats import key_map, left_out
from jaxenc.formats.left_out import listed
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model, objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters

# A folder with any of these files has a tokenizer, though perhaps of a kind that is not supported.
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
WITHOUT = "`--tokenizer none` converts without it"


def model(found: Import, tokenizer: Tokenizer | None, where: Path, dropped: Mapping[str, Tensor] = MappingProxyType({})) -> Model:
    """The model of an `Import`, in float32; its notes are printed to stderr. where: the name of the source in messages; dropped: tensors
    that the user left out, by the names that `found` would know them by.

    Raises UserError for tensors that do not fit the config, for a tensor that was left out and is needed, and for a tokenizer that does not
    fit the model.
    """
    _check_dropped(found, dropped, where)
    run = runs.run_of(found)
    _check_tokenizer(tokenizer, run, where)
    abstract, _ = parameters(objective_of(run, tokenizer))
    shapes = {path: leaf.shape for path, leaf in tree.leaves(abstract)}
    params = key_map.to_ours(found.entries, found.tensors, shapes, str(where), found.skipped)
    notes = [f"left out, as asked: {listed([tensor.name for tensor in dropped.values()])}"] if dropped else []
    for note in (*notes, *found.notes, runs.note(found, run)):
        if note:
            say(where, note)
    return Model(run, params, tokenizer)


def say(where: object, note: str) -> None:
    """Prints one line about a conversion to stderr."""
    print(f"convert: {where}: {note}", file=sys.stderr)


def read(
    reader: Callable[[Mapping[str, Tensor]], Import], tensors: Mapping[str, Tensor], leave_out: Sequence[str], where: Path
) -> tuple[Import, dict[str, Tensor]]:
    """(what `reader` makes of the tensors without those that `leave_out` matches and without a prefix of all names, those left out).

    A line on stderr says which prefix it is. Raises UserError as `left_out.split` and as `reader`.
    """
    kept, dropped = left_out.split(tensors, leave_out, where)
    found, off = prefix.read(reader, kept)
    if off.inner:
        say(where, f"the prefix {off} of its tensors' names is taken off")
    return found, {off.taken_off(name): tensor for name, tensor in dropped.items()}


def _check_dropped(found: Import, dropped: Mapping[str, Tensor], where: Path) -> None:
    """Raises UserError where a tensor that the user left out is one that the model needs."""
    needed = [dropped[name].name for name in key_map.missing(found.entries, found.tensors) if name in dropped]
    if needed:
        what = f"matches {listed(needed)}, which the model needs"
        raise UserError(what, f"{where}: {left_out.OPTION}", "give a pattern that matches only what nothing needs")


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
