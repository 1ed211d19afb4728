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
    _check_used("optim.decay_exclude", exclude, params)
    excluded = _matcher(exclude)
    return tree.map_with_path(lambda path, _: not excluded(path), params)


def frozen(freeze: Sequence[str]) -> Callable[[str], bool]:
    """Whether the parameter at a path is not trained, for `tree.split`; `trained` raises for a pattern that matches nothing."""
    return _matcher(freeze)


def trained(freeze: Sequence[str], params: Tree) -> Tree:
    """The part of `params` that `freeze` (`optim.freeze`) leaves to train.

    Raises UserError for a pattern that matches no path and when nothing is left.
    """
    _check_used("optim.freeze", freeze, params)
    _, rest = tree.split(params, frozen(freeze))
    if not rest:
        raise UserError(f"optim.freeze {tuple(freeze)} freezes every parameter", fix="drop a pattern")
    return rest


def factors(rates: Sequence[str], params: Tree) -> Tree:
    """A tree of float like `params`: the FACTOR of the first item `PATTERN=FACTOR` of `rates` whose PATTERN matches the whole path, else 1.

    Raises UserError for an item without a factor of 0 or more, and for a pattern that matches no path.
    """
    pairs = []
    for item in rates:
        pattern, _, factor = item.rpartition("=")
        try:
            pairs.append((pattern, float(factor)))
        except ValueError:
            pairs.append((pattern, -1.0))
        if not 0 <= pairs[-1][1] <= LARGEST:
            raise UserError(
                f"{item!r} is not PATTERN=FACTOR", "optim.rates", f"give a factor from 0 to {LARGEST:g}, as in embeddings/.*=0.1"
            )
    _check_used("optim.rates", [pattern for pattern, _ in pairs], params)
    factor_of = lambda path: next((factor for pattern, factor in pairs if re.fullmatch(pattern, path)), 1.0)
    return tree.map_with_path(lambda path, _: factor_of(path), params)


def select(part: Tree, whole: Tree) -> Tree:
    """The leaves of `whole` at the paths of `part`."""
    values = dict(tree.leaves(whole))
    return tree.map_with_path(lambda path, _: values[path], part)


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    return lambda path: any(re.fullmatch(pattern, path) for pattern in patterns)


def _check_used(field: str, patterns: Sequence[str], params: Tree) -> None:
    paths = [path for path, _ in tree.leaves(params)]
    for pattern in patterns:
        try:
            used = any(re.fullmatch(pattern, path) for path in paths)
        except re.error as error:
            raise UserError(f"{pattern!r} is not a pattern of Python's re ({error})", field, "fix the pattern") from error
        if not used:
            raise UserError(f"no parameter's path matches {pattern!r}", field, "fix the pattern or drop it")
