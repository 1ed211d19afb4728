"""Encoder language models, pretrained in JAX. `jaxenc.load(DIR)` opens one; nothing heavy is imported before it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Mapping

    from jaxenc.heads import Head
    from jaxenc.inference.load import Model


def load(path: str | pathlib.Path, step: int | None = None, heads: Mapping[str, Head] | None = None) -> Model:
    """The model of a run directory or of one checkpoint's folder: see `jaxenc.inference.load.load`. heads: the built-in ones where None."""
    from jaxenc.heads import BUILT_IN
    from jaxenc.inference import load

    return load.load(path, step, BUILT_IN if heads is None else heads)
