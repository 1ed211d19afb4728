"""Reads what a test wrote."""

from pathlib import Path

from jaxenc.data import readers
from jaxenc.data.readers import Counts, Document, Reading


def found(*names: str | Path, **how: str) -> tuple[list[Document], Counts]:
    """(documents, counts) of inputs. how: fields of Reading."""
    counts, reading = Counts(), Reading(**how)
    sources = readers.inputs([str(name) for name in names], reading, counts)
    return list(readers.documents(sources, reading, counts)), counts


def lines(*names: str | Path, **how: str) -> list[tuple[str, ...]]:
    """The lines of each document of inputs."""
    return [document.lines for document in found(*names, **how)[0]]
