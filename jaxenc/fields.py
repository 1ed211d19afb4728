"""The meaning of each field of a config dataclass, parsed from the docstring of its class.

A docstring lists fields as `name: meaning` or `name, name: meaning`, each entry on a new line, with its continuation lines indented. The
first sentence is the short form. A field that a class does not list is looked up in its base classes.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

ENTRY = re.compile(r"([a-z]\w*(?:, [a-z]\w*)*): (.+)")
# A period that ends a sentence, unlike those in "et al. 2019" and "model.py": the next word is capitalised or is code.
END = re.compile(r"\.\s+(?=[A-Z`])|\.$")


def listing(value: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(dotted path, value, meaning) of every field of a frozen dataclass and of the dataclasses in it, in the order of `config.to_dict`.

    The meaning of a `kind` is the first sentence of the docstring of its class.
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
    """{field: first sentence} of the entries in the docstrings of `cls` and its bases; an entry of `cls` overrides those of its bases."""
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
