"""Checkpoints of other projects, leaf by leaf: a table of (their name, our path, transform) that runs in both directions.

A family's table is plain data, made for one config. Before any tensor is read the table is compared with the headers: every name,
shape and dtype that disagrees is told at once. After that each tensor is read, checked, turned and placed by itself, so that an import
never holds the file and the result side by side.
"""

import dataclasses
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

import jax
import numpy as np

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.formats import left_out
from jaxenc.formats.left_out import listed
from jaxenc.formats.tensor import Tensor, as_dtype, contiguous
from jaxenc.tree import Tree

Shape = tuple[int, ...]


class Misfit(UserError):
    """The tensors of a file are not those that its config describes."""


READABLE = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Transform:
    """A pair of inverse functions on one array; views where possible."""

    to_ours: Callable[[np.ndarray], np.ndarray]
    to_theirs: Callable[[np.ndarray], np.ndarray]

    def then(self, other: "Transform") -> "Transform":
        """On the way in this one first, then `other`; on the way out the reverse."""
        return Transform(lambda a: other.to_ours(self.to_ours(a)), lambda a: self.to_theirs(other.to_theirs(a)))

    def their_shape(self, ours: Shape) -> Shape:
        """The shape that a leaf of shape `ours` has in their file."""
        return self.to_theirs(np.broadcast_to(np.int8(0), ours)).shape


IDENTITY = Transform(lambda a: a, lambda a: a)
TRANSPOSE = Transform(np.transpose, np.transpose)


def rows(size: int) -> Transform:
    """Their `size` rows of a vocabulary are ours with rows of zeros up to `data.vocabulary.padded`."""

    def pad(array: np.ndarray) -> np.ndarray:
        out = np.zeros((padded(size), *array.shape[1:]), array.dtype)
        out[:size] = array
        return out

    return Transform(pad, lambda a: a[:size])


@dataclasses.dataclass(frozen=True)
class Part:
    """One of `count` equal parts of a tensor that holds several leaves side by side along `axis`, such as the kernels of query, key and
    value; index: its place, from 0."""

    index: int
    count: int
    axis: int = -1


@dataclasses.dataclass(frozen=True)
class Entry:
    """One leaf. theirs: a tensor's name; ours: a parameter's path; copies: names under which a file may hold the same values again, or
    hold them alone (a decoder tied to the token table); part: the part of their tensor that is this leaf, None for all of it. `transform`
    applies to that part."""

    theirs: str
    ours: str
    transform: Transform = IDENTITY
    copies: tuple[str, ...] = ()
    part: Part | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Their name and its copies."""
        return (self.theirs, *self.copies)

    def their_shape(self, ours: Shape) -> Shape:
        """The shape of their tensor for a leaf of shape `ours`."""
        shape = list(self.transform.their_shape(ours))
        if self.part:
            shape[self.part.axis] *= self.part.count
        return tuple(shape)


def to_ours(
    entries: Sequence[Entry], tensors: Mapping[str, Tensor], shapes: Mapping[str, Shape], where: str, skipped: Sequence[str] = ()
) -> Tree:
    """The parameters of a file: a nested dict of float32 jax.Arrays in the host's memory, if jax may use it.

    tensors: {their name: Tensor}; shapes: {our path: shape} of the model that the file is for; where: what messages call the file;
    skipped: patterns (`re.fullmatch`) of their names that hold no parameter.
    Raises one UserError for all names, shapes and dtypes that disagree, before anything is read; one for copies that differ; ValueError
    for a table that does not name each leaf of `shapes` exactly once.
    """
    check_table(entries, shapes)
    held = {name: tensor for name, tensor in tensors.items() if not any(re.fullmatch(pattern, name) for pattern in skipped)}
    _compare(entries, held, shapes, where)
    # Arrays of jax and not of NumPy: Orbax copies the latter once more before it writes them.
    place = _host()
    return tree.from_leaves((entry.ours, jax.device_put(_read(entry, held, where), place)) for entry in entries)


def to_theirs(entries: Sequence[Entry], params: Tree) -> dict[str, np.ndarray]:
    """{their name: float32 array} of the parameters, in the table's order, without copies; views of `params` where the transform allows.

    Raises ValueError for a table that does not name each leaf of `params` exactly once.
    """
    leaves = dict(tree.leaves(params))
    check_table(entries, {path: leaf.shape for path, leaf in leaves.items()})
    turned = {entry.ours: entry.transform.to_theirs(np.asarray(leaves[entry.ours])) for entry in entries}
    packed = _in_parts(entries).items()
    joined = {name: np.concatenate([turned[entry.ours] for entry in some], some[0].part.axis) for name, some in packed}
    return {entry.theirs: joined[entry.theirs] if entry.part else turned[entry.ours] for entry in entries}


def _in_parts(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """{their name: its entries in the order of their parts} of the tensors that hold several leaves."""
    out: dict[str, list[Entry]] = {}
    for entry in sorted((entry for entry in entries if entry.part), key=lambda entry: entry.part.index):
        out.setdefault(entry.theirs, []).append(entry)
    return out


def _host() -> jax.Device:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        # JAX_PLATFORMS leaves out the CPU.
        return jax.local_devices()[0]


def check_table(entries: Sequence[Entry], shapes: Mapping[str, Shape]) -> None:
    """ValueError unless each of our paths and of their names occurs once, or a name once for each part of its tensor, and the paths are
    those of `shapes`."""
    packed = _in_parts(entries)
    whole = lambda some: [entry.part for entry in some] == [Part(i, len(some), some[0].part.axis) for i in range(len(some))]
    ours, theirs = [entry.ours for entry in entries], [name for entry in entries if not entry.part for name in entry.names]
    theirs += packed
    faults = {
        "not all of a tensor": sorted(name for name, some in packed.items() if not whole(some)),
        "named twice": sorted({name for names in (ours, theirs) for name in names if names.count(name) > 1}),
        "named by no entry": sorted(set(shapes) - set(ours)),
        "not a leaf of the model": sorted(set(ours) - set(shapes)),
    }
    if any(faults.values()):
        raise ValueError("key map: " + "; ".join(f"{fault}: {', '.join(names)}" for fault, names in faults.items() if names))


def _compare(entries: Sequence[Entry], held: Mapping[str, Tensor], shapes: Mapping[str, Shape], where: str) -> None:
    known = {name: entry for entry in entries for name in entry.names}
    wanted = {name: entry.their_shape(shapes[entry.ours]) for name, entry in known.items()}
    both = [(name, held[name]) for name in known if name in held]
    faults = {
        "missing": missing(entries, held),
        "not known": [tensor.name for name, tensor in held.items() if name not in known],
        "of another shape": [f"{t.name} {t.shape}, expected {wanted[name]}" for name, t in both if t.shape != wanted[name]],
        "of another dtype": [f"{t.name} {t.dtype}" for _, t in both if t.dtype.name not in READABLE],
    }
    kinds = [fault for fault, names in faults.items() if names]
    if kinds == ["of another dtype"]:
        what = f"tensors of another dtype: {listed(faults['of another dtype'])}"
        raise UserError(what, where, f"save the model in {' or '.join(READABLE)}; quantized weights must be dequantized first")
    if kinds == ["not known"] and not further_layers(known, held):
        extra = faults["not known"]
        patterns = left_out.options(extra, [tensor.name for _, tensor in both])
        advice = f"`{' '.join(f'{left_out.OPTION} {shlex.quote(pattern)}' for pattern in patterns)}` converts without"
        raise UserError(f"the model needs no {listed(extra)}", where, f"{advice} {'it' if len(extra) == 1 else 'them'}")
    if any(faults.values()):
        shown = "; ".join(f"{fault}: {listed(names)}" for fault, names in faults.items() if names)
        raise Misfit(f"the tensors are not those that its config describes: {shown}", where, "name a folder whose files belong together")


def missing(entries: Sequence[Entry], held: Collection[str]) -> list[str]:
    """Their names of the leaves that a file lacks: neither the tensor nor a copy of it is among `held`, the names in the file."""
    return list(dict.fromkeys(entry.theirs for entry in entries if not any(name in held for name in entry.names)))


def without_numbers(name: str) -> str:
    """A name with 0 in place of its numbers, which is the same for all layers."""
    return re.sub(r"\d+", "0", name)


def counted(names: Collection[str]) -> set[str]:
    """`without_numbers` of the names that have numbers."""
    return {without_numbers(name) for name in names if re.search(r"\d", name)}


def further_layers(known: Collection[str], held: Collection[str]) -> list[str]:
    """The names of a file that are the model's apart from their numbers, so that its config has too few layers."""
    layers = counted(known)
    return [name for name in held if name not in known and without_numbers(name) in layers]


def _read(entry: Entry, held: Mapping[str, Tensor], where: str) -> np.ndarray:
    first, *others = (held[name] for name in entry.names if name in held)
    values = as_dtype(first.read(), np.dtype(np.float32), f"{where}: {first.name}")
    for other in others:
        if not np.array_equal(values, as_dtype(other.read(), values.dtype, f"{where}: {other.name}")):
            raise UserError(f"{other.name} differs from {first.name}: untied heads are not supported", where, "tie them and save again")
    if entry.part:
        values = np.split(values, entry.part.count, entry.part.axis)[entry.part.index]
    return contiguous(entry.transform.to_ours(values))
