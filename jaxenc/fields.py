"""What the fields of a config dataclass mean, read from its docstring: the only place that says so.

A docstring lists its fields as `name: meaning` or `name, name: meaning`, each entry on a line of its own, with its further lines indented.
The first sentence is the short form. What a class does not list, its base classes do.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

ENTRY = re.compile(r"([a-z]\w*(?:, [a-z]\w*)*): (.+)")
# A period that ends a sentence: the next word starts in upper case or is code. That of "et al. 2019" or of "model.py" does not.
END = re.compile(r"\.\s+(?=[A-Z`])|\.$")


def listing(value: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(dotted path, value, meaning) of every field of a frozen dataclass and of those in it, in the order of `config.to_dict`.

    The meaning of a `kind` is the first sentence of its class.
    """
    known = meanings(type(value))
    if hasattr(value, "kind"):
        yield f"{prefix}kind", value.kind, first_sentence(inspect.getdoc(type(value)) or "")
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if dataclasses.is_dataclass(item):
            yield from listing(item, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", item, known.get(field.name, "")


def meanings(cls: type) -> dict[str, str]:
    """{name: first sentence} of every entry in the docstrings of `cls` and its bases; the entry nearest to `cls` counts."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= entries(inspect.cleandoc(vars(base).get("__doc__") or ""))
    return found


def entries(doc: str) -> dict[str, str]:
    """{name: first sentence} of the entries of one docstring without common indentation."""
    found: dict[str, str] = {}
    for block in re.split(r"\n(?! )", doc):
        if match := ENTRY.match(" ".join(block.split())):
            found |= dict.fromkeys(match[1].split(", "), first_sentence(match[2]))
    return found


def first_sentence(text: str) -> str:
    """`text` up to the end of its first sentence or paragraph, in one line, without the period."""
    return END.split(" ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]
