"""BERT and RoBERTa: folders of transformers in and out, checkpoints of google-research/bert in."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.convert.bert import config as configs
from jaxenc.convert.bert import names
from jaxenc.convert.bert.names import GOOGLE, Layout
from jaxenc.convert.config import labels_of
from jaxenc.convert.family import Export, Family, Google, Import, check_layers, class_of
from jaxenc.errors import UserError
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model
from jaxenc.training.run import Run


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a folder of transformers; its heads are those whose tensors are there."""
    column = configs.column_of(config, where)
    layout = names.layout_of(column, tensors)
    heads = names.heads_of(tensors, layout, class_of(config))
    if "tags" in heads and class_of(config).endswith("ForMultipleChoice"):
        raise UserError(f"{where}: {class_of(config)}: of the models of multiple choice only BERT's can be converted")
    labelled = [head for head in heads if head in ("classifier", "tags")]
    labels = labels_of(config, names.classes_of(tensors, labelled[0], layout), where) if labelled else ()
    run = configs.run_of(configs.model_of(config, column, where), heads, labels)
    configs.refuse(run, heads, column, where)
    return _import(run, heads, layout, tensors, where)


def read_google(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of google-research/bert.

    `hidden_act: gelu` is the tanh form here (modeling.py), and LayerNorm's epsilon 1e-12. Classes have no names: LABEL_0, LABEL_1 ...
    """
    heads = names.heads_of(tensors, GOOGLE, "")
    labels = labels_of({}, names.classes_of(tensors, "classifier", GOOGLE), where) if "classifier" in heads else ()
    run = configs.run_of(configs.model_of(config, "google", where), heads, labels)
    return _import(run, heads, GOOGLE, tensors, where)


def write(ours: Model) -> Export:
    """The model as transformers has it; an encoder without heads as BertModel or RobertaModel saves itself, names bare."""
    heads = [name for name in BUILT_IN if name in ours.params]
    config, outputs = configs.config_json(ours.config, heads, ours.tokenizer.vocabulary if ours.tokenizer else None)
    column, model, params = config["model_type"], ours.config.model, ours.params
    configs.refuse(ours.config, heads, column, "this model")
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.width), np.float32)}}})
    layout = Layout(column, f"{column}." if set(heads) - {"pooler"} else "")
    return Export(config, names.entries(model, heads, layout), params, outputs)


def _import(run: Run, heads: Collection[str], layout: Layout, tensors: Mapping[str, Tensor], where: Path) -> Import:
    check_layers(run.model.layers, tensors, where)
    return Import(run, names.entries(run.model, heads, layout), names.skipped(layout, heads))


BERT = Family(read, write, Google("bert/", "bert_config.json", read_google))
