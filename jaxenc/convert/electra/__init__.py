"""ELECTRA: folders of transformers in and out, one network each, or both as one pair; checkpoints of google-research/electra in."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc import tree
from jaxenc.convert.bert.config import labels_of
from jaxenc.convert.electra import config as configs
from jaxenc.convert.electra import names
from jaxenc.convert.family import Export, Family, Google, Import, Several, class_of
from jaxenc.convert.tensor import Tensor
from jaxenc.errors import UserError
from jaxenc.models.electra import NETWORKS, ElectraConfig
from jaxenc.objectives.heads import NAMES, HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.pretrained import Model
from jaxenc.run import Run

# The heads that the networks of a pair have.
HEADS = {"generator": ("mlm",), "discriminator": ("rtd",)}


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
    if run.model.layers > len(tensors):
        told = f"its config has {run.model.layers} layers and there are {len(tensors)} tensors"
        raise UserError(f"{where}: {told}: both must belong together")
    return Import(run, names.entries(run.model, _network(heads), heads, layout), names.skipped(layout))


def read_google(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The pair of a checkpoint of google-research/electra, whose config is in its shapes."""
    model = configs.google_model(tensors, where)
    table = {
        entry.ours: entry
        for network in NETWORKS
        for entry in names.entries(model, network, HEADS[network], names.google_layout(network, tensors))
    }
    return Import(_run(model), tuple(table.values()))


def write(ours: Model) -> Export:
    """One network as transformers has it; without heads as ElectraModel saves itself, names bare."""
    heads, model, params = [name for name in NAMES if name in ours.params], ours.config.model, ours.params
    configs.refuse(ours.config, heads, "this model")
    config, outputs = configs.config_json(ours.config, heads, ours.tokenizer.vocabulary if ours.tokenizer else None)
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.embedding), np.float32)}}})
    base = "electra." if heads else ""
    return Export(config, names.entries(model, _network(heads), heads, names.Layout(base, base)), params, outputs)


def split(ours: Model) -> dict[str, Model]:
    """{"generator": ..., "discriminator": ...}, each as a model of its own; {} where it is one network already."""
    if not isinstance(ours.config.objective, RtdConfig):
        return {}
    out, objectives = {}, {"generator": MlmConfig(), "discriminator": HeadsConfig(("rtd",))}
    for network in NETWORKS:
        params = {"embeddings": ours.params["embeddings"], network: dict(ours.params[network])}
        params |= {head: ours.params[head] for head in HEADS[network]}
        if "embeddings" in params[network]:
            params["embeddings"] = params[network].pop("embeddings")
        run = dataclasses.replace(ours.config, objective=objectives[network], model=configs.alone(ours.config.model, network))
        out[network] = Model(run, params, ours.tokenizer)
    return out


def join(networks: Mapping[str, Model]) -> Model:
    """The pair of a generator and a discriminator: they share the tables where the two files hold the same numbers.

    Raises UserError for models that are no such two.
    """
    generator, discriminator = (networks[network] for network in NETWORKS)
    for network in NETWORKS:
        missing = [head for head in HEADS[network] if head not in networks[network].params]
        if missing:
            raise UserError(f"the {network} has no head {missing[0]}, with which it is trained: name two folders of pretrained networks")
    tokenizers = [model.tokenizer for model in (discriminator, generator) if model.tokenizer]
    if len({tokenizer.vocabulary.fingerprint for tokenizer in tokenizers}) > 1:
        raise UserError("the generator and the discriminator have two tokenizers: name two networks that were trained together")
    one, other = (dict(tree.leaves(model.params["embeddings"])) for model in (generator, discriminator))
    same = one.keys() == other.keys() and all(np.array_equal(one[path], other[path]) for path in one)
    model = configs.pair(generator.config.model, discriminator.config.model, "embeddings" if same else "none")
    params = {**generator.params, **discriminator.params}
    if not same:
        params["generator"] = {**params["generator"], "embeddings": generator.params["embeddings"]}
    return Model(_run(model), params, tokenizers[0] if tokenizers else None)


def _run(model: ElectraConfig) -> Run:
    return dataclasses.replace(Run(RtdConfig(), model), data=dataclasses.replace(Run().data, length=model.positions))


def _network(heads: tuple[str, ...] | list[str]) -> str:
    return "generator" if "mlm" in heads else "discriminator"


ELECTRA = Family(read, write, Google("electra/", "", read_google), Several(NETWORKS, split, join))
