"""Layer-wise decay: the lower a parameter's layer, the smaller its learning rate or its gradient."""

import re
from collections.abc import Iterable, Sequence

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.optim import masks
from jaxenc.tree import Tree

NETWORK = r"(?:(?:generator|discriminator)/)?"
LAYER = re.compile(rf"({NETWORK}encoder|forward|backward)/layer_(\d+)/.*")
# After all layers, such as `encoder/final_norm`.
AFTER = re.compile(rf"{NETWORK}encoder/.*")
EMBEDDINGS = re.compile(rf"{NETWORK}(?:embeddings|project)/.*|(?:token|char_cnn)/.*")


def factors(decay: float, top: int, exclude: Sequence[str], params: Tree) -> Tree:
    """A tree of float like `params`: `decay` to the power of `exponents`, the last three arguments. Raises UserError as they do."""
    return tree.map_with_path(lambda _, exponent: decay**exponent, exponents(top, exclude, params))


def exponents(top: int, exclude: Sequence[str], params: Tree) -> Tree:
    """A tree of int like `params`: how often each parameter is decayed.

    0 for the heads and where a pattern of `exclude` matches the whole path, `top` for the top layer and what comes after it, one more for
    each layer below, and one more than the first layer for the embeddings and their projection. Layers that share parameters are stored
    once, and count once. The rules behind `top` are in `OptimConfig`.

    Raises UserError for a pattern that matches no path, for parameters without layers and for stacks of different depth.
    """
    masks.check_used("optim.layer_decay_exclude", exclude, params)
    excluded = masks.matcher(exclude)
    depths = _depths(path for path, _ in tree.leaves(params) if not excluded(path))
    if not depths:
        raise UserError("no parameter that it applies to is in a layer", "optim.layer_decay", "set it to 1")
    if len(set(depths.values())) > 1:
        found = " and ".join(f"{name} has {count}" for name, count in depths.items())
        lowest = min(depths, key=lambda name: depths[name])
        fix = f"set it to 1, or leave one out with optim.layer_decay_exclude={lowest.partition('/')[0]}/.*"
        raise UserError(f"it needs stacks with as many layers, and {found}", "optim.layer_decay", fix)
    layers = next(iter(depths.values()))
    return tree.map_with_path(lambda path, _: 0 if excluded(path) else _exponent(path, top, layers), params)


def _depths(paths: Iterable[str]) -> dict[str, int]:
    """{name of a stack: its number of layers}."""
    depths: dict[str, int] = {}
    for path in paths:
        if found := LAYER.fullmatch(path):
            depths[found[1]] = max(depths.get(found[1], 0), int(found[2]) + 1)
    return depths


def _exponent(path: str, top: int, layers: int) -> int:
    if found := LAYER.fullmatch(path):
        return top + layers - 1 - int(found[2])
    if AFTER.fullmatch(path):
        return top
    return top + layers if EMBEDDINGS.fullmatch(path) else 0
