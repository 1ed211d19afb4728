"""Which parameters decay and which are trained, by patterns on their paths."""

import re
from collections.abc import Callable, Sequence

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.optim.settings import OptimConfig
from jaxenc.tree import Tree


def decay_mask(config: OptimConfig, params: Tree) -> Tree:
    """A tree of bool like `params`: False where a pattern of `decay_exclude` matches the whole path.

    Raises UserError for a pattern that matches no path, so that a renamed layer cannot start to decay unnoticed.
    """
    _check_used("optim.decay_exclude", config.decay_exclude, params)
    excluded = _matcher(config.decay_exclude)
    return tree.map_with_path(lambda path, _: not excluded(path), params)


def frozen(config: OptimConfig) -> Callable[[str], bool]:
    """Whether the parameter at a path is not trained, for `tree.split`; `trained` raises for a pattern that matches nothing."""
    return _matcher(config.freeze)


def trained(config: OptimConfig, params: Tree) -> Tree:
    """The part of `params` that `freeze` leaves to train.

    Raises UserError for a pattern of `freeze` that matches no path and when nothing is left.
    """
    _check_used("optim.freeze", config.freeze, params)
    _, rest = tree.split(params, frozen(config))
    if not rest:
        raise UserError(f"optim.freeze {config.freeze} freezes every parameter: drop a pattern")
    return rest


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    return lambda path: any(re.fullmatch(pattern, path) for pattern in patterns)


def _check_used(field: str, patterns: Sequence[str], params: Tree) -> None:
    paths = [path for path, _ in tree.leaves(params)]
    for pattern in patterns:
        try:
            used = any(re.fullmatch(pattern, path) for path in paths)
        except re.error as error:
            raise UserError(f"{field}: {pattern!r} is not a pattern of Python's re: {error}") from error
        if not used:
            raise UserError(f"{field}: no parameter's path matches {pattern!r}: mend the pattern or drop it")
