"""A generator and a discriminator, each a model of its own in transformers, and the run that trains them together."""

import dataclasses
import sys
from collections.abc import Mapping

import numpy as np

from jaxenc import tree
from jaxenc.convert.electra import config as configs
from jaxenc.errors import UserError
from jaxenc.families.electra.model import NETWORKS, ElectraConfig
from jaxenc.inference.load import Model
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run

# The heads that the networks of a pair have.
HEADS = {"generator": ("mlm",), "discriminator": ("rtd",)}
OBJECTIVES = {"generator": MlmConfig(), "discriminator": HeadsConfig(HEADS["discriminator"])}


def run_of(model: ElectraConfig) -> Run:
    """The run that trains both networks; all that a model does not say has its default."""
    return dataclasses.replace(Run(RtdConfig(), model), data=dataclasses.replace(Run().data, length=model.positions))


def split(ours: Model) -> dict[str, Model]:
    """{"generator": ..., "discriminator": ...}, each as a model of its own; {} where it is one network already.

    Raises UserError for two networks with other heads than a pair has.
    """
    if not set(NETWORKS) <= set(ours.params):
        return {}
    if missing := sorted({head for heads in HEADS.values() for head in heads} - set(ours.params)):
        raise UserError(f"objective.kind is {ours.config.objective.kind}, without {missing[0]}: transformers has no such two networks")
    out = {}
    for network in NETWORKS:
        body = dict(ours.params[network])
        tables = body.pop("embeddings", ours.params["embeddings"])
        params = {"embeddings": tables, network: body, **{head: ours.params[head] for head in HEADS[network]}}
        run = dataclasses.replace(ours.config, objective=OBJECTIVES[network], model=configs.alone(ours.config.model, network))
        out[network] = Model(run, params, ours.tokenizer)
    return out


def join(networks: Mapping[str, Model]) -> Model:
    """The pair of a generator and a discriminator: they share the tables where the two files hold the same numbers, and a line on
    stderr says where not.

    Raises UserError for models that are no such two.
    """
    for network, model in networks.items():
        wanted, found = HEADS[network], tuple(model.objective.heads)
        if not isinstance(model.config.model, ElectraConfig) or found != wanted:
            told = f"the folder {network} holds a model of the kind {model.config.model.kind} with {', '.join(found) or 'no heads'}"
            raise UserError(f"{told}: an ELECTRA with {wanted[0]} belongs there")
    generator, discriminator = (networks[network] for network in NETWORKS)
    tokenizers = [model.tokenizer for model in (discriminator, generator) if model.tokenizer]
    if len({tokenizer.vocabulary.fingerprint for tokenizer in tokenizers}) > 1:
        raise UserError("the generator and the discriminator have two tokenizers: name the one of both with --tokenizer DIR")
    one, other = (dict(tree.leaves(model.params["embeddings"])) for model in (generator, discriminator))
    same = one.keys() == other.keys() and all(np.array_equal(one[path], other[path]) for path in one)
    model = model_of(generator.config.model, discriminator.config.model, "embeddings" if same else "none")
    params = {**generator.params, **discriminator.params}
    if not same:
        print("convert: the two networks hold different tables, so each has its own: model.sharing is none", file=sys.stderr)
        params["generator"] = {**params["generator"], "embeddings": generator.params["embeddings"]}
    return Model(run_of(model), params, tokenizers[0] if tokenizers else None)


def model_of(generator: ElectraConfig, discriminator: ElectraConfig, sharing: str) -> ElectraConfig:
    """The model of two networks that were alone. Raises UserError where a number that a pair has once differs."""
    sizes = ("width", "heads", "feed_forward", "layers")
    whole = dataclasses.replace(discriminator, **{f"generator_{name}": getattr(generator, name) for name in sizes}, sharing=sharing)
    expected = configs.alone(whole, "generator")
    for field in dataclasses.fields(expected):
        ours, other = getattr(expected, field.name), getattr(generator, field.name)
        if ours != other:
            raise UserError(f"the generator's model.{field.name} is {other} and the discriminator's {ours}: a pair has one number for both")
    return whole
