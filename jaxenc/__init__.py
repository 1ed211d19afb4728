"""Encoder language models, pretrained in JAX.

    jaxenc.load(DIR)                a trained model: encode, fill_mask, complete, predict, apply, save
    jaxenc.override(run, values)    a run with fields set by name, as `--config.FIELD=VALUE` sets them
    jaxenc.pretrain(run, workdir)   trains, as `jaxenc pretrain` does
    jaxenc.finetune(tune, ...)      trains a model on a task, as `jaxenc finetune` does
    jaxenc.probe(model, ...)        linear probes of every layer, as `jaxenc probe` trains them
    jaxenc.evaluate(workdir)        held-out numbers, as `jaxenc evaluate` prints them

jax and the rest are imported when one of them is first used.
"""

import importlib
from typing import Any

_HOMES = {
    "load": "jaxenc.inference.load",
    "override": "jaxenc.training.override",
    "pretrain": "jaxenc.training.pretrain",
    "evaluate": "jaxenc.tasks.evaluate",
    "finetune": "jaxenc.tasks.finetune",
    "probe": "jaxenc.inference.probe",
}
__all__ = ["evaluate", "finetune", "load", "override", "pretrain", "probe"]


def __getattr__(name: str) -> Any:
    """Imports one of the functions above when it is first used."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
