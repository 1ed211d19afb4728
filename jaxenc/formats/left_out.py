"""Tensors of a file that a model does not need: those that the user leaves out (`--leave-out PATTERN`), and the patterns to offer."""

import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence

from jaxenc.errors import UserError
from jaxenc.formats.tensor import Tensor

OPTION = "--leave-out"
LISTED = 4  # names of one kind in a message; the others are counted


def split(tensors: Mapping[str, Tensor], patterns: Sequence[str], where: object) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(the tensors that no pattern matches, those that one does). patterns: of `fnmatch`, for whole names, case-sensitive.

    Raises UserError, which names the pattern, for one that matches no tensor, and for patterns that match all.
    """
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in tensors):
            raise UserError(f"no tensor is called {pattern!r}", f"{where}: {OPTION}", f"name one of {listed(list(tensors))}")
    out = {name: tensor for name, tensor in tensors.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
    if patterns and len(out) == len(tensors):
        raise UserError("matches every tensor", f"{where}: {OPTION}", "give a pattern that matches only what the model does not need")
    return {name: tensor for name, tensor in tensors.items() if name not in out}, out


def options(extra: Collection[str], kept: Collection[str]) -> list[str]:
    """The fewest patterns of the form `crf.*` that match all of `extra` and none of `kept`; a name by itself where none of them does.

    Parts of a name end with `.` in files of torch and with `/` in those of TensorFlow.
    """
    out: list[str] = []
    for name in extra:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in out):
            continue
        starts = [name[: found.end()] for found in re.finditer(r"[./]", name)]
        safe = (start for start in starts if not any(other.startswith(start) for other in kept))
        start = next(safe, "")
        # A bracket or a star of the name stands for itself.
        out.append(re.sub(r"([\[?*])", r"[\1]", start or name) + ("*" if start else ""))
    return out


def listed(names: Sequence[str]) -> str:
    """The first LISTED of `names`, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
