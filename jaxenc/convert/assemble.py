"""The steps that all formats share: from converted tensors and a tokenizer to a model, and from a model to the input of an export."""

import dataclasses
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
from jaxenc.families.count import has_vocabulary
from jaxenc.families.foreign import Import, Weights
from jaxenc.formats import key_map, left_out
from jaxenc.formats.left_out import listed
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters

# A folder with any of these files has a tokenizer, though perhaps of a kind that is not supported.
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
WITHOUT = "`--tokenizer none` converts without it"


def model(
    found: Import, tokenizer: Tokenizer | None, where: Path, config: Path, dropped: Mapping[str, Tensor] = MappingProxyType({})
) -> Model:
    """The model of an `Import`, in float32; its notes are printed to stderr. where: the name of the source in messages; config: of the file
    with its sizes; dropped: tensors that the user left out, by the names that `found` would know them by.

    A model with more rows than its tokenizer has pieces keeps them (`ModelConfig.spare_rows`); a line on stderr says so. Raises UserError
    for tensors that do not fit the config, for a tensor that was left out and is needed, and for a tokenizer that does not fit the model.
    """
    _check_dropped(found, dropped, where)
    run = runs.run_of(found)
    _check_rows(found, run, config)
    if tokenizer is not None:
        run = _fitted(run, tokenizer, where)
        tokenizer = _framed(run, tokenizer, where)
    abstract, _ = parameters(objective_of(run, tokenizer))
    shapes = {path: leaf.shape for path, leaf in tree.leaves(abstract)}
    params = key_map.to_ours(found.entries, found.tensors, shapes, str(where), found.skipped)
    notes = [f"left out, as asked: {listed([tensor.name for tensor in dropped.values()])}"] if dropped else []
    for note in (*notes, *found.notes, runs.note(found, run), _spare(run)):
        if note:
            say(where, note)
    return Model(run, params, tokenizer)


def _spare(run: Run) -> str:
    if not (spare := run.model.spare_rows):
        return ""
    rows = f"{run.model.vocab_size:,} rows of the token table and {run.model.pieces:,} pieces"
    kept, right = f"{rows}: the last {spare:,} rows are kept and never predicted", "name the right one with --tokenizer DIR"
    # Published tables have a few rows for later use, or rows up to a round number.
    if spare > run.model.pieces:
        return f"warning: {kept}; the tokenizer is probably truncated or another model's: {right}"
    return f"{kept}; if the tokenizer is another model's, {right}"


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
    """Raises UserError where a tensor that the user left out is one that the model needs. Without the encoder's tensors, `found` may not
    know the first part of their names, which is that of the model."""
    missing = key_map.missing(found.entries, found.tensors)
    ends = lambda name: any(name == one or name.endswith((f".{one}", f"/{one}")) for one in missing)
    needed = [tensor.name for name, tensor in dropped.items() if ends(name)]
    if needed:
        what = f"matches {listed(needed)}, which the model needs"
        raise UserError(what, f"{where}: {left_out.OPTION}", "give a pattern that matches only what nothing needs")


def with_tokenizer(ours: Model, tokenizer: Tokenizer, where: Path) -> Model:
    """`ours` with this tokenizer where it has none. Raises UserError as `model`."""
    if ours.tokenizer is not None:
        return ours
    config = _fitted(ours.config, tokenizer, where)
    return dataclasses.replace(ours, config=config, tokenizer=_framed(config, tokenizer, where))


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
        raise UserError(error.what, error.where, f"{error.fix}; {WITHOUT}") from error


def _check_rows(found: Import, run: Run, config: Path) -> None:
    """Raises UserError where the token tables, which have one number of rows, have another than the file `config` says."""
    names = [name for entry in found.entries if has_vocabulary(entry.ours, ()) for name in entry.names if name in found.tensors]
    sizes = {found.tensors[name].shape[:1] for name in names}
    if len(sizes) == 1 and (held := sizes.pop()) not in ((), (run.model.vocab_size,)):
        what = f"vocab_size is {run.model.vocab_size:,} and {names[0]} has {held[0]:,} rows"
        raise UserError(what, config, f"set vocab_size to {held[0]} there, or use the file that belongs to these weights")


def _framed(run: Run, tokenizer: Tokenizer, where: Path) -> Tokenizer:
    """`tokenizer` with the frame of the model's family; a line on stderr where its own is another."""
    framed = tokenizer.framed_as(run.model.row_frame)
    if framed is not tokenizer:
        ours, theirs = (" ".join(tool.token(index) if index >= 0 else "A" for index, _ in tool.frame(1)) for tool in (framed, tokenizer))
        kind = run.model.kind
        say(where, f"texts are framed as {kind} models read them, {ours}, with their token types; the tokenizer's files have {theirs}")
    return framed


def _fitted(run: Run, tokenizer: Tokenizer, where: Path) -> Run:
    """`run` with the rows of its model that `tokenizer` has no piece for as spare rows. Raises UserError for more pieces than rows, and for
    a tokenizer that would change another field of the run."""
    vocabulary, rows = tokenizer.vocabulary, run.model.vocab_size
    fix = f"name the right one with --tokenizer DIR; {WITHOUT}"
    if vocabulary.size > rows:
        raise UserError(f"the tokenizer has {vocabulary.size:,} tokens and the model {rows:,} embedding rows", where, fix)
    spared = dataclasses.replace(run, model=run.model.with_spare_rows(rows - vocabulary.size))
    actual, fitting = to_dict(spared.model), to_dict(spared.with_vocabulary(vocabulary).model)
    if differ := [f"model.{name} would be {fitting[name]} and is {actual[name]}" for name in actual if actual[name] != fitting[name]]:
        raise UserError(f"the tokenizer has the pad id {vocabulary.pad}, with which {', '.join(differ)}", where, fix)
    return spared
