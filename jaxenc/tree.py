"""Parameter trees as nested plain dicts: paths, selection by path, sizes."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax

Tree = Any  # nested dicts of arrays, or of shapes, shardings or axis names in their place; or a dataclass of such dicts


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(path, leaf) of a nested dict in sorted order; a path joins the keys with '/', as in `encoder/layer_03/attention/query/kernel`."""
    for key in sorted(tree):
        path = f"{prefix}{key}"
        if isinstance(tree[key], Mapping):
            yield from leaves(tree[key], f"{path}/")
        else:
            yield path, tree[key]


def from_leaves(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The nested dict of (path, leaf) pairs; inverts `leaves`."""
    out: dict[str, Any] = {}
    for path, leaf in pairs:
        *parents, name = path.split("/")
        node = out
        for key in parents:
            node = node.setdefault(key, {})
        node[name] = leaf
    return out


def map_with_path(function: Callable[[str, Any], Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """A tree of `function(path, leaf)`."""
    return from_leaves((path, function(path, leaf)) for path, leaf in leaves(tree))


def split(tree: Mapping[str, Any], chosen: Callable[[str], bool]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(leaves whose path is chosen, the others), each a nested dict without empty branches; `merge` inverts it."""
    pairs = list(leaves(tree))
    return from_leaves(p for p in pairs if chosen(p[0])), from_leaves(p for p in pairs if not chosen(p[0]))


def merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """The union of two trees that share no leaf."""
    return from_leaves([*leaves(left), *leaves(right)])


def nbytes(tree: Any) -> int:
    """The bytes of all arrays of any pytree; a leaf needs only a shape and a dtype."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
