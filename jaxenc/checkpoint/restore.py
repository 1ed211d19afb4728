"""Where a run starts from, and its arrays."""

import dataclasses
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jax

from jaxenc import files, tree
from jaxenc.checkpoint import arrays, migrate
from jaxenc.checkpoint import moved as moves
from jaxenc.checkpoint.download import downloaded
from jaxenc.checkpoint.moved import Moved
from jaxenc.checkpoint.verify import CHECKPOINTS, CHECKSUMS, STATE, newest_valid, none_is_whole, verify
from jaxenc.data.folders import must_be_named
from jaxenc.errors import UserError
from jaxenc.storage import AS_TEXT, is_url, must_be_local

# How many of the parameters that do not fit a message names: another width concerns hundreds.
SHOWN = 6


@dataclasses.dataclass(frozen=True)
class Start:
    """kind: `resume` (this work directory, everything), `continue` (another run's full state), `init` (its parameters only) or `fresh`.

    path: the step's folder, None for `fresh`. step: the number of batches consumed, 0 for `init` and `fresh`. moved: for `init`, which
    parameters start from others.
    """

    kind: str
    path: Path | None
    step: int
    moved: Moved = ()

    def to_json(self) -> list[Any]:
        """As a JSON value, for other processes."""
        return [self.kind, str(self.path or ""), self.step, self.moved]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Self:
        """Inverts `to_json`."""
        kind, path, step, moved = value
        return cls(kind, Path(path) if path else None, step, tuple((new, old) for new, old in moved))


def choose(directory: Path, continue_from: str, init_from: str, check: bool, init_map: Sequence[str] = ()) -> Start:
    """The first that applies: resume the newest valid step in `directory`, continue_from, init_from, fresh. '' means not asked for.

    The two paths name a run directory or a step's folder. check: compare every byte with its checksum. Damaged steps of `directory` are
    set aside; another run's are left where they are. init_map: `NEW=OLD` prefixes of paths, for parameters of `init_from`.
    Raises UserError where every step of `directory` is damaged, for a missing path, one without a valid step, where a whole state is wanted
    and only parameters are there, and for an init_map that `moved.parse` refuses or that comes without init_from.
    """
    moved = moves.parse(init_map)
    if moved and not init_from:
        raise UserError("it needs a run whose parameters it names", "--init-map", "name that run with --init-from")
    step = newest_valid(directory, check, set_aside=True)
    if step is not None:
        return Start("resume", _whole(directory / str(step), "this work directory"), step)
    if aside := sorted(path.name for path in directory.glob("*.bad-*")):
        raise none_is_whole(aside, directory)
    if continue_from:
        path = _whole(find(continue_from, check, "--continue-from"), "--continue-from")
        return Start("continue", path, int(path.name))
    if init_from:
        return Start("init", find(init_from, check, "--init-from"), 0, moved)
    return Start("fresh", None, 0)


def on_this_machine(start: Start, directory: Path, given: str, check: bool) -> Start:
    """`start`, which process 0 chose, with its path in this process: below `directory` for a run that resumes, in this process's copy of
    `given` if that is a URL, and `given` itself if that is a checkpoint."""
    if start.kind == "resume":
        return dataclasses.replace(start, path=directory / str(start.step))
    if start.path is not None and is_url(given):
        return dataclasses.replace(start, path=downloaded(given, check, f"--{start.kind}-from", int(start.path.name)))
    if start.path is not None and (Path(given) / CHECKSUMS).is_file():
        return dataclasses.replace(start, path=Path(given).absolute())
    return start


def _whole(step_dir: Path, what: str) -> Path:
    """`step_dir`. Raises UserError if it holds parameters only, without the rest of a state."""
    if all(path.startswith("params/") for path in _stored(step_dir)):
        raise UserError("holds parameters only", f"{what} {step_dir}", "use --init-from with it, in a new work directory")
    return step_dir


def find(path: str | Path, check: bool, what: str) -> Path:
    """The step's folder that `path` names: itself, or the newest valid step of a run directory or its `checkpoints/`; of a URL, its copy on
    this machine (`download.downloaded`)."""
    if is_url(path):
        return downloaded(str(path), check, what)
    path = must_be_named(path, what)
    if source := convert_source(path):
        fix = f"make one of it with `jaxenc convert --from {shlex.quote(source)} --to DIR`"
        raise UserError("not a run directory", f"{what} {path}", fix)
    must_be_local(path, what, AS_TEXT)
    if not path.is_dir():
        raise UserError("not a folder", f"{what} {path}", "name a run directory or one of its checkpoints")
    path = path.absolute()
    if (path / CHECKSUMS).exists():
        problems = verify(path, contents=check)
        if problems:
            raise UserError(problems[0], f"{what} {path}", "name another step")
        return path
    directory = path / CHECKPOINTS if (path / CHECKPOINTS).is_dir() else path
    step = newest_valid(directory, check, set_aside=False)
    if step is None:
        raise UserError("holds no valid checkpoint", f"{what} {path}", "name a run directory or one of its checkpoints")
    return directory / str(step)


def convert_source(path: Path) -> str:
    """The argument of `jaxenc convert --from` that converts the model of another project at `path`, '' for anything else.

    Such a model is a folder that transformers wrote, a folder with the options and weights of AllenNLP, or such an argument already, as
    hf:DIR.
    """
    if str(path).startswith(("hf:", "tf:", "allennlp:", "fairseq:")):
        return str(path)
    weights = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
    published = (path / "config.json").is_file() and any((path / name).is_file() for name in weights)
    if published:
        return f"hf:{path}"
    return f"allennlp:{path}" if path.is_dir() and all(any(path.glob(name)) for name in ("*options.json", "*weights.hdf5")) else ""


def restore_state(step_dir: Path, abstract: Any) -> Any:
    """The whole saved state in the structure of `abstract`, a pytree of jax.ShapeDtypeStruct whose shardings say where each array goes.

    Any number of devices, whatever the number at saving. Raises one UserError that names every path, shape and dtype that disagrees.
    """
    check_state(step_dir, abstract)
    wanted = arrays.by_path(abstract)
    found = _read(step_dir, wanted)
    return jax.tree.unflatten(jax.tree.structure(abstract), [found[path] for path in wanted])


def check_state(step_dir: Path, abstract: Any) -> None:
    """Raises UserError where `restore_state` would find another structure, shape or dtype; reads no array."""
    wanted, saved = arrays.by_path(abstract), _stored(step_dir)
    _compare(step_dir, wanted, saved, [f"{path} is only in the checkpoint" for path in saved if path not in wanted])


def check_params(step_dir: Path, abstract: Mapping[str, Any]) -> None:
    """Raises UserError where the checkpoint lacks one of these parameters or has it in another shape or dtype; reads no array."""
    saved = _stored(step_dir)
    home, wanted = _home(saved), dict(tree.leaves(abstract))
    _compare(step_dir, wanted, {path: saved[home[path]] for path in wanted if path in home}, [])


def restore_params(step_dir: Path, abstract: Mapping[str, Any], moved: Moved = ()) -> dict[str, Any]:
    """The parameters named by `abstract`, a nested dict of jax.ShapeDtypeStruct, wherever the saved run kept them: trained or frozen.

    Reads only those. A parameter that the checkpoint has and `abstract` does not (a head) is not read. moved: which are read from other
    paths; two that are read from one path get an array each. Raises UserError as restore_state, and as `moved.check`.
    """
    saved = _stored(step_dir)
    home, wanted = _home(saved), dict(tree.leaves(abstract))
    moves.check(moved, wanted, home, f"checkpoint {step_dir}")
    origin = {path: moves.origin(path, moved) for path in wanted}
    label = {path: path if there == path else f"{path} (there {there})" for path, there in origin.items()}
    there = {label[path]: saved[home[origin[path]]] for path in wanted if origin[path] in home}
    _compare(step_dir, {label[path]: leaf for path, leaf in wanted.items()}, there, [])
    # The training step donates its arrays, so two parameters that start from one saved array need a copy each.
    found: dict[str, jax.Array] = {}
    while left := [path for path in wanted if path not in found]:
        once = {home[origin[path]]: path for path in left}
        found |= {once[full]: leaf for full, leaf in _read(step_dir, {full: wanted[path] for full, path in once.items()}).items()}
    return tree.from_leaves((path, found[path]) for path in wanted)


def lacking(step_dir: Path, branches: Iterable[str]) -> tuple[str, ...]:
    """Those of `branches`, top-level names of a parameter tree, that have no leaf in the checkpoint, trained or frozen."""
    there = {path.split("/")[0] for path in _home(_stored(step_dir))}
    return tuple(name for name in branches if name not in there)


def size(step_dir: Path) -> tuple[int, int]:
    """(arrays, numbers in all of them) of a checkpoint; reads no array. Raises UserError when its list of arrays cannot be read."""
    shapes = [shape for shape, _ in _stored(step_dir).values()]
    return len(shapes), sum(map(math.prod, shapes))


def _home(saved: Iterable[str]) -> dict[str, str]:
    """{path of a parameter: its path in the checkpoint}, wherever the saved run kept it."""
    return {path.split("/", 1)[1]: path for path in saved if path.startswith(("params/", "frozen/"))}


def _compare(step_dir: Path, wanted: Mapping[str, Any], saved: Mapping[str, tuple[tuple[int, ...], str]], problems: list[str]) -> None:
    """Orbax casts to another dtype silently, so everything is compared before anything is read."""
    problems = problems + [f"{path} is not in the checkpoint" for path in wanted if path not in saved]
    for path, leaf in wanted.items():
        now = (tuple(leaf.shape), str(leaf.dtype))
        if path in saved and saved[path] != now:
            problems.append(f"{path} is {_kind(saved[path])} in the checkpoint, {_kind(now)} in this run")
    if problems:
        shown = "; ".join(problems[:SHOWN]) + (f"; and {len(problems) - SHOWN:,} more" if len(problems) > SHOWN else "")
        raise UserError(f"does not fit this run: {shown}", f"checkpoint {step_dir}", "use the configuration it was saved with")


def _kind(leaf: tuple[tuple[int, ...], str]) -> str:
    return f"{leaf[1]}{list(leaf[0])}"


def _stored(step_dir: Path) -> dict[str, tuple[tuple[int, ...], str]]:
    """{path as this version names it: (shape, dtype)} of the arrays of a checkpoint."""
    return {name: kind for name, (_, kind) in _contents(step_dir).items()}


def _read(step_dir: Path, wanted: Mapping[str, Any]) -> dict[str, jax.Array]:
    contents = _contents(step_dir)
    names = {path: contents[path][0] for path in wanted}
    try:
        found = arrays.read(Path(step_dir).absolute() / STATE, {names[path]: leaf for path, leaf in wanted.items()})
    except Exception as error:
        raise _unreadable(step_dir, error) from error
    return {path: found[name] for path, name in names.items()}


def _contents(step_dir: Path) -> dict[str, tuple[str, tuple[tuple[int, ...], str]]]:
    """{path as this version names it: (path in the checkpoint, (shape, dtype))}."""
    try:
        saved = arrays.stored(Path(step_dir).absolute() / STATE)
    except Exception as error:
        raise _unreadable(step_dir, error) from error
    number = migrate.format_of(read_json(step_dir, "config.json"), str(step_dir / "config.json"))
    return {migrate.path(name, number): (name, kind) for name, kind in saved.items()}


def _unreadable(step_dir: Path, error: Exception) -> UserError:
    why = arrays.reason(error)
    return UserError(f"cannot be read ({why})", f"checkpoint {step_dir}", "set checkpoint.verify=true, which falls back to an older step")


def read_json(step_dir: Path, name: str) -> dict[str, Any]:
    """The JSON object in a file of a step's folder, such as `config.json`; UserError when it is missing or holds none."""
    return files.read_json(Path(step_dir) / name, "name another step")
