"""Encoder language models, pretrained in JAX.

    jaxenc.load(DIR)                            a trained model: encode, fill_mask, complete, predict, apply, save
    jaxenc.train_tokenizer(inputs, out)         a vocabulary, as `jaxenc tokenizer` trains it
    jaxenc.build_data(inputs, tokenizer, out)   token shards, as `jaxenc data` writes them
    jaxenc.override(run, values)                a run with fields set by name, as `--config.FIELD=VALUE` sets them
    jaxenc.pretrain(run, workdir)               trains, as `jaxenc pretrain` does
    jaxenc.finetune(tune, ...)                  trains a model on a task, as `jaxenc finetune` does
    jaxenc.probe(model, ...)                    linear probes of every layer, as `jaxenc probe` trains them
    jaxenc.evaluate(workdir)                    held-out numbers, as `jaxenc evaluate` prints them
    jaxenc.report(workdir)                      curves and tables of a run, as `jaxenc report` draws them

jax and the rest are imported when one of them is first used.
"""

import importlib
from typing import Any

_HOMES = {
    "load": "jaxenc.inference.load.load",
    "train_tokenizer": "jaxenc.data.tokenizers.from_text.train_tokenizer",
    "build_data": "jaxenc.data.build.build",
    "override": "jaxenc.training.override.override",
    "pretrain": "jaxenc.training.pretrain.pretrain",
    "evaluate": "jaxenc.tasks.evaluate.evaluate",
    "finetune": "jaxenc.tasks.finetune.finetune",
    "probe": "jaxenc.inference.probe.probe",
    "report": "jaxenc.reports.report.report",
}
__all__ = ["build_data", "evaluate", "finetune", "load", "override", "pretrain", "probe", "report", "train_tokenizer"]


def __getattr__(name: str) -> Any:
    """Imports one of the functions above when it is first used."""
    if name in _HOMES:
        module, _, own = _HOMES[name].rpartition(".")
        return getattr(importlib.import_module(module), own)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
