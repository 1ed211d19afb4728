"""What a checkpoint of torch holds beside tensors: settings, schedules, meters. Nothing of it is run.

torch's reader of weights (`torch.load(weights_only=True)`) refuses a file that names a class or function it does not know, such as
`argparse.Namespace`. Each such name is therefore bound to an inert class, `Unread`, which keeps the values that belong to it and does
nothing else; the class or function that the file names is never imported.
"""

import contextlib
import pickletools
import zipfile
from _compat_pickle import IMPORT_MAPPING
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PICKLES = 4  # before 2020: a number, a version, facts of the machine, the object
PLAIN = (str, int, float, bool, type(None))
DEEPEST = 20  # levels of nesting that `plain` follows


class Unread:
    """An object of a class or function that a file names. state: the values that the file gives it."""

    state: Any = None

    def __new__(cls, *arguments: Any) -> "Unread":
        """A call of it, or a new instance: the arguments are kept as its state."""
        out = object.__new__(cls)
        out.state = arguments
        return out

    def __init__(self, *arguments: Any) -> None:
        """Does nothing."""

    def __setstate__(self, state: Any) -> None:
        """Keeps the attributes as its state."""
        self.state = state


def not_run(path: Path) -> contextlib.AbstractContextManager:
    """While it is open, `torch.load(path, weights_only=True)` reads each class and function that the file names as an `Unread`, except
    those that torch knows itself. A torch before 2.5 refuses the file instead."""
    import torch

    if not hasattr(torch.serialization, "safe_globals"):
        return contextlib.nullcontext()
    # Each keeps the name of its class, for messages.
    return torch.serialization.safe_globals([(type(name.rpartition(".")[2], (Unread,), {}), name) for name in sorted(set(_named(path)))])


def _named(path: Path) -> Iterator[str]:
    """The names in the pickles of a file, read without running them."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith("/data.pkl") or name == "data.pkl":
                        with archive.open(name) as file:
                            yield from _globals(file)
            return
        with path.open("rb") as file:
            for _ in range(PICKLES):
                yield from _globals(file)
    except Exception:
        # pickletools and zipfile raise nearly anything over a damaged file; torch says what is wrong with it.
        return


def _globals(file: Any) -> Iterator[str]:
    for code, argument, _ in pickletools.genops(file):
        if code.name == "GLOBAL":
            module, _, name = argument.partition(" ")
            yield f"{module}.{name}"
            # Python 2's name of the module, which pickle writes in protocol 2.
            yield f"{IMPORT_MAPPING.get(module, module)}.{name}"


def plain(value: Any, depth: int = 0) -> Any:
    """`value` with the attributes of objects as dicts, and without what is not text, number, list or dict; None in its place.

    The values of omegaconf's configs are objects that hold the value under `_val` or their items under `_content`.
    """
    if isinstance(value, PLAIN) or depth > DEEPEST:
        return value if isinstance(value, PLAIN) else None
    if isinstance(value, Unread):
        return plain(value.state, depth + 1)
    if isinstance(value, Mapping):
        if "_val" in value or "_content" in value:
            return plain(value.get("_val", value.get("_content")), depth + 1)
        return {str(name): plain(one, depth + 1) for name, one in value.items()}
    return [plain(one, depth + 1) for one in value] if isinstance(value, list | tuple) else None
