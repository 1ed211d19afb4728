"""Encoder language models, pretrained in JAX. `jaxenc.load(DIR)` opens one; nothing heavy is imported before it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib

    from jaxenc.inference.load import Model


def load(path: str | pathlib.Path, step: int | None = None) -> Model:
    """The model of a run directory or of one checkpoint's folder: see `jaxenc.inference.load.load`."""
    from jaxenc.inference import load

    return load.load(path, step)
