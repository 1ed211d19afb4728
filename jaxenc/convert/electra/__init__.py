"""ELECTRA: a network of a folder of transformers in and out, checkpoints of google-research/electra in; `pair.py` joins two networks."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.convert.config import labels_of
from jaxenc.convert.electra import config as configs
from jaxenc.convert.electra import names, pair
from jaxenc.convert.family import Export, Family, Google, Import, Several, check_layers, class_of
from jaxenc.errors import UserError
from jaxenc.families.electra.model import NETWORKS
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """One network of a folder of transformers; its heads are those whose tensors are there."""
    if class_of(config).endswith("ForMultipleChoice"):
        raise UserError(f"{where}: {class_of(config)}: of the models of multiple choice only BERT's can be converted")
    heads, layout = names.heads_of(tensors), names.layout_of(tensors)
    if "mlm" in heads and len(heads) > 1:
        raise UserError(f"{where}: its tensors are heads of a generator and of a discriminator: one folder holds one network")
    labelled = [head for head in heads if head in ("classifier", "tags")]
    labels = labels_of(config, names.classes_of(tensors, labelled[0]), where) if labelled else ()
    run = configs.run_of(configs.model_of(config, where), heads, labels)
    configs.refuse(run, heads, where)
    check_layers(run.model.layers, tensors, where)
    return Import(run, names.entries(run.model, _network(heads), heads, layout), names.skipped(layout))


def read_google(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The pair of a checkpoint of google-research/electra, or its discriminator where the generator was left out.

    Its config is in its shapes. A fine-tuned one is refused: what classifies there reads the first token without a layer between.
    """
    if tasks := [name for name in tensors if name.startswith("task_specific/")]:
        raise UserError(f"{where}: fine-tuned, with {tasks[0]}, which is no head of ours: name the checkpoint that it was tuned from")
    model, networks = configs.google_model(tensors, where)
    run = pair.run_of(model) if len(networks) > 1 else configs.run_of(model, pair.HEADS[networks[0]], ())
    table = {
        entry.ours: entry
        for network in networks
        for entry in names.entries(model, network, pair.HEADS[network], names.google_layout(network, tensors))
    }
    return Import(run, tuple(table.values()))


def write(ours: Model) -> Export:
    """One network as transformers has it, whatever the other of its pair was; without heads as ElectraModel saves itself, names bare."""
    heads, params = [name for name in BUILT_IN if name in ours.params], ours.params
    network = _network(heads)
    model = configs.alone(ours.config.model, network)
    run = dataclasses.replace(ours.config, model=model)
    configs.refuse(run, heads, "this model")
    config, outputs = configs.config_json(run, heads, ours.tokenizer.vocabulary if ours.tokenizer else None)
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.embedding), np.float32)}}})
    base = "electra." if heads else ""
    return Export(config, names.entries(model, network, heads, names.Layout(base, base)), params, outputs)


def _network(heads: tuple[str, ...] | list[str]) -> str:
    return "generator" if "mlm" in heads else "discriminator"


ELECTRA = Family(read, write, Google("electra/", "", read_google), Several(NETWORKS, pair.split, pair.join))
