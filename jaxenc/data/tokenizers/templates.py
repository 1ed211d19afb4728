"""How a tokenizer.json frames a text and a pair of texts by special pieces."""

from collections.abc import Mapping
from typing import Any


def of_section(written: Mapping[str, Any]) -> tuple[str, ...]:
    """(of a text, of a pair): pieces with a blank between them, A and B for the texts, from the section of a TemplateProcessing.

    Two empty strings for a section without templates. Raises KeyError, TypeError or AttributeError for one of another form.
    """
    return tuple(" ".join(part["id"] for item in written.get(name, []) for part in item.values()) for name in ("single", "pair"))
