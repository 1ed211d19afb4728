"""Encoder language models, pretrained in JAX.

    jaxenc.load(DIR)                a trained model: encode, fill_mask, apply
    jaxenc.override(run, values)    a run with fields set by name, as `--config.FIELD=VALUE` sets them
    jaxenc.pretrain(run, workdir)   what `jaxenc pretrain` does
    jaxenc.evaluate(workdir)        what `jaxenc evaluate` does

Nothing heavy is imported before one of them is used.
"""

import importlib
from typing import Any

_HOMES = {
    "load": "jaxenc.inference.load",
    "override": "jaxenc.training.override",
    "pretrain": "jaxenc.training.pretrain",
    "evaluate": "jaxenc.training.held_out",
}
__all__ = ["evaluate", "load", "override", "pretrain"]


def __getattr__(name: str) -> Any:
    """The functions above, imported when they are first asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
