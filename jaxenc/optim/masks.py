"""Which parameters decay, which are trained and at what share of the rate, by patterns on their paths."""

import re
from collections.abc import Callable, Sequence

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.tree import Tree

LARGEST = 1e6  # of the factors of a learning rate


def decay_mask(exclude: Sequence[str], params: Tree) -> Tree:
    """A tree of bool like `params`: False where a pattern of `exclude` (`optim.decay_exclude`) matches the whole path.

    Raises UserError for a pattern that matches no path, so that a renamed layer cannot start to decay unnoticed.
    """
    check_used("optim.decay_exclude", exclude, params)
    excluded = matcher(exclude)
    return tree.map_with_path(lambda path, _: not excluded(path), params)


def frozen(freeze: Sequence[str]) -> Callable[[str], bool]:
    """Whether the parameter at a path is not trained, for `tree.split`; `trained` raises for a pattern that matches nothing."""
    return matcher(freeze)


def trained(freeze: Sequence[str], params: Tree) -> Tree:
    """The part of `params` that `freeze` (`optim.freeze`) leaves to train.

    Raises UserError for a pattern that matches no path and when nothing is left.
    """
    check_used("optim.freeze", freeze, params)
    _, rest = tree.split(params, frozen(freeze))
    if not rest:
        raise UserError(f"optim.freeze {tuple(freeze)} freezes every parameter", fix="drop a pattern")
    return rest


def factors(rates: Sequence[str], params: Tree) -> Tree:
    """A tree of float like `params`: the FACTOR of the first item `PATTERN=FACTOR` of `rates` whose PATTERN matches the whole path, else 1.

    Raises UserError for an item without a factor of 0 or more, and for a pattern that matches no path.
    """
    return by_first_match(numbered("optim.rates", rates, "FACTOR", float, LARGEST, "embeddings/.*=0.1", params), 1.0, params)


def numbered(
    field: str, items: Sequence[str], name: str, read: Callable[[str], float], largest: float, example: str, params: Tree
) -> list[tuple[str, float]]:
    """(PATTERN, number) of each item `PATTERN=NUMBER` of a field of the config.

    name: what the field calls the number, such as FACTOR; read: `int` or `float`; example: an item, for the message. Raises UserError for
    an item without a number from 0 to `largest`, and for a pattern that matches no path of `params`.
    """
    pairs = []
    for item in items:
        pattern, _, number = item.rpartition("=")
        try:
            pairs.append((pattern, read(number)))
        except ValueError:
            pairs.append((pattern, -1))
        if not 0 <= pairs[-1][1] <= largest:
            top = f"{largest:g}" if read is float else f"{largest}"
            raise UserError(f"{item!r} is not PATTERN={name}", field, f"give a {name.lower()} from 0 to {top}, as in {example}")
    check_used(field, [pattern for pattern, _ in pairs], params)
    return pairs


def by_first_match(pairs: Sequence[tuple[str, float]], other: float, params: Tree) -> Tree:
    """A tree of numbers like `params`: that of the first of `pairs` (pattern, number) that matches the whole path, else `other`."""
    number_of = lambda path: next((number for pattern, number in pairs if re.fullmatch(pattern, path)), other)
    return tree.map_with_path(lambda path, _: number_of(path), params)


def select(part: Tree, whole: Tree) -> Tree:
    """The leaves of `whole` at the paths of `part`."""
    values = dict(tree.leaves(whole))
    return tree.map_with_path(lambda path, _: values[path], part)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether one of `patterns` matches the whole of a path."""
    return lambda path: any(re.fullmatch(pattern, path) for pattern in patterns)


def check_used(field: str, patterns: Sequence[str], params: Tree) -> None:
    """Raises UserError, which names the field, for a pattern that is not one of `re` and for one that matches no path of `params`."""
    paths = [path for path, _ in tree.leaves(params)]
    for pattern in patterns:
        try:
            used = any(re.fullmatch(pattern, path) for path in paths)
        except re.error as error:
            raise UserError(f"{pattern!r} is not a pattern of Python's re ({error})", field, "fix the pattern") from error
        if not used:
            raise UserError(f"no parameter's path matches {pattern!r}", field, "fix the pattern or drop it")
