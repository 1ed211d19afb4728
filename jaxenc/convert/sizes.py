"""Numbers of a config.json that its tensors contradict: which fields they are, and what the tensors say instead."""

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxenc import tree
from jaxenc.convert import runs
from jaxenc.errors import UserError
from jaxenc.families.foreign import Import
from jaxenc.formats import key_map
from jaxenc.inference.network import objective_of
from jaxenc.training.state import parameters


@contextlib.contextmanager
def named(config: Mapping[str, Any], found: Import, read: Callable[[Mapping[str, Any]], Import], path: Path) -> Iterator[None]:
    """Where the tensors of `found` do not fit in the block, and would with other numbers in the config, UserError names these fields.

    config: the content of the file `path`; read: a config -> the model of the same tensors.
    """
    try:
        yield
    except key_map.Misfit as error:
        right = corrected(config, found, read)
        if not right:
            raise
        wrong = " and ".join(f"{name} is {config[name]}" for name in right)
        set_to = ", ".join(f"{name} to {value}" for name, value in right.items())
        fix = f"set {set_to} there, or use the file that belongs to these weights"
        raise UserError(f"{wrong}, which the shapes of the tensors contradict", path, fix) from error


def corrected(config: Mapping[str, Any], found: Import, read: Callable[[Mapping[str, Any]], Import]) -> dict[str, int]:
    """{field: the number with which the tensors fit}, {} where no numbers do. One field after another is set to a size that a tensor has in
    its place, always the one after which the fewest tensors are wrong."""
    changed: dict[str, int] = {}
    wrong, options = _misfits(found, config)
    while wrong:
        tried = []
        for name, value in sorted(options):
            with contextlib.suppress(UserError):
                other = {**config, **changed, name: value}
                tried.append((*_misfits(read(other), other), name, value))
        best = min(tried, key=lambda one: one[0], default=None)
        if best is None or best[0] >= wrong:
            return {}
        wrong, options, name, value = best
        changed[name] = value
    return changed


def _misfits(found: Import, config: Mapping[str, Any]) -> tuple[int, set[tuple[str, int]]]:
    """(how many tensors are missing, of another shape or of a further layer; the (field, number) that may be the reason)."""
    abstract, _ = parameters(objective_of(runs.run_of(found), None))
    shapes = {path: leaf.shape for path, leaf in tree.leaves(abstract)}
    wanted = {name: entry.their_shape(shapes[entry.ours]) for entry in found.entries for name in entry.names}
    missing = key_map.missing(found.entries, found.tensors)
    others = [(wanted[name], t.shape) for name, t in found.tensors.items() if name in wanted and t.shape != wanted[name]]
    further = key_map.further_layers(wanted, found.tensors)
    pairs = {(size, held) for ours, theirs in others if len(ours) == len(theirs) for size, held in zip(ours, theirs, strict=True)}
    if missing or further:
        layers = key_map.counted(wanted)
        pairs.add((_layers(wanted, layers), _layers(found.tensors, layers)))
    numbers = {(name, held) for name, value in config.items() for size, held in pairs if type(value) is int and value == size != held}
    return len(missing) + len(others) + len(further), numbers


def _layers(names: Collection[str], counted: Collection[str]) -> int:
    """How many layers `names` have, of those that are `counted` (`key_map.counted`)."""
    return max((int(re.search(r"\d+", name)[0]) + 1 for name in names if key_map.without_numbers(name) in counted), default=0)
