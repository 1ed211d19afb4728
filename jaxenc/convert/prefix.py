"""Prefixes of tensor names that a model does not have by itself: `module.` of DataParallel, `_orig_mod.` of torch.compile, the attribute
of a user's own class."""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from jaxenc.errors import UserError
from jaxenc.families.foreign import Import
from jaxenc.formats.tensor import Tensor

SHARE = 0.25  # of the names that begin with a prefix: the encoder has most of a file's tensors, and one layer of many fewer


@dataclasses.dataclass(frozen=True)
class Prefix:
    """outer: of every part of the model; inner: of its encoder, which begins with `outer` and is longer where the encoder is an attribute
    of its own. Names that begin with neither are as they are."""

    outer: str = ""
    inner: str = ""

    def taken_off(self, name: str) -> str:
        """`name` without the longer of the two that it begins with."""
        return name.removeprefix(self.inner) if name.startswith(self.inner) else name.removeprefix(self.outer)

    def __str__(self) -> str:
        """Both, for a message."""
        return " and ".join(dict.fromkeys(repr(one) for one in (self.outer, self.inner) if one))


def read(reader: Callable[[Mapping[str, Tensor]], Import], tensors: Mapping[str, Tensor]) -> tuple[Import, Prefix]:
    """(what `reader` makes of the tensors without the prefix of their names, the prefix): the one with which it knows most of the names.

    Raises the UserError of `reader` for the names as they are where it reads them with no prefix.
    """
    plain, refusal = None, None
    try:
        plain = reader(tensors)
        if _known(plain) == len(plain.tensors):
            return plain, Prefix()
    except UserError as error:
        refusal = error
    found = [(plain, Prefix())] if plain else []
    for prefix in _candidates(tensors):
        renamed = {prefix.taken_off(name): tensor for name, tensor in tensors.items()}
        if len(renamed) < len(tensors):
            continue
        try:
            found.append((reader(renamed), prefix))
        except UserError:
            continue
    if not found:
        raise refusal
    # The first of the best: the simplest.
    return max(found, key=lambda one: _known(one[0]))


def _known(found: Import) -> int:
    names = {name for entry in found.entries for name in entry.names}
    return sum(name in names or any(re.fullmatch(pattern, name) for pattern in found.skipped) for name in found.tensors)


def _candidates(names: Collection[str]) -> list[Prefix]:
    """Prefixes that end with a part of the name and that SHARE of the names have: one for all names first, then two."""
    counts = Counter(name[: found.end()] for name in names for found in re.finditer(r"[./]", name))
    shared = sorted((one for one, count in counts.items() if count >= SHARE * len(names)), key=len)
    nested = [Prefix(outer, inner) for outer in shared for inner in shared if inner.startswith(outer) and inner != outer]
    return [Prefix(one, one) for one in shared] + nested
