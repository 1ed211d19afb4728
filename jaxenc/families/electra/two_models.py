"""Splits a pair into a generator and a discriminator, which are separate models in transformers, and joins them."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.families.electra.model import NETWORKS, ElectraConfig
from jaxenc.families.foreign import Structure, Weights

# The heads of each network of a pair.
HEADS = {"generator": ("mlm",), "discriminator": ("rtd",)}


def alone(model: ElectraConfig, network: str) -> ElectraConfig:
    """The config of one network of a pair: an ElectraConfig with its sizes for both networks."""
    block, layers = model.block(network), model.depth(network)
    sizes = {"width": block.width, "heads": block.heads, "feed_forward": block.feed_forward, "layers": layers}
    return dataclasses.replace(model, **sizes, **{f"generator_{name}": size for name, size in sizes.items()}, sharing="embeddings")


def split(ours: Weights) -> dict[str, Weights]:
    """{"generator": ..., "discriminator": ...}, two separate models; {} for a model that is one network already.

    Raises UserError for two networks without the heads that a pair has.
    """
    if not set(NETWORKS) <= set(ours.params):
        return {}
    if missing := sorted({head for heads in HEADS.values() for head in heads} - set(ours.params)):
        raise UserError(f"this model is two networks without the head {missing[0]}", fix="transformers has no such two networks")
    out = {}
    for network in NETWORKS:
        body = dict(ours.params[network])
        tables = body.pop("embeddings", ours.params["embeddings"])
        params = {"embeddings": tables, network: body, **{head: ours.params[head] for head in HEADS[network]}}
        structure = Structure(alone(ours.structure.model, network), HEADS[network])
        out[network] = Weights(structure, ours.vocabulary, params)
    return out


def join(networks: Mapping[str, Weights]) -> tuple[Weights, str]:
    """(the pair of a generator and a discriminator, a message for the user or ''). They share their tables where both models hold equal
    ones; otherwise the message says that each keeps its own.

    Raises UserError for models that are not a generator and its discriminator.
    """
    for network, one in networks.items():
        wanted, found = HEADS[network], one.structure.heads
        if not isinstance(one.structure.model, ElectraConfig) or found != wanted:
            content = f"a model of the kind {one.structure.model.kind} with {', '.join(found) or 'no heads'}"
            raise UserError(f"the folder {network} holds {content}", fix=f"an ELECTRA with {wanted[0]} belongs there")
    generator, discriminator = (networks[network] for network in NETWORKS)
    vocabularies = [one.vocabulary for one in (discriminator, generator) if one.vocabulary]
    if len({vocabulary.fingerprint for vocabulary in vocabularies}) > 1:
        raise UserError("the generator and the discriminator have different tokenizers", fix="name one for both with --tokenizer DIR")
    one, other = (dict(tree.leaves(network.params["embeddings"])) for network in (generator, discriminator))
    same = one.keys() == other.keys() and all(np.array_equal(one[path], other[path]) for path in one)
    model = model_of(generator.structure.model, discriminator.structure.model, "embeddings" if same else "none")
    params, note = {**generator.params, **discriminator.params}, ""
    if not same:
        note = "the two networks hold different tables, so each has its own: model.sharing is none"
        params["generator"] = {**params["generator"], "embeddings": generator.params["embeddings"]}
    heads = tuple(head for network in NETWORKS for head in HEADS[network])
    return Weights(Structure(model, heads), vocabularies[0] if vocabularies else None, params), note


def model_of(generator: ElectraConfig, discriminator: ElectraConfig, sharing: str) -> ElectraConfig:
    """The config of the pair of two separate networks. Raises UserError where they differ in a field that a pair has only once."""
    sizes = ("width", "heads", "feed_forward", "layers")
    whole = dataclasses.replace(discriminator, **{f"generator_{name}": getattr(generator, name) for name in sizes}, sharing=sharing)
    expected = alone(whole, "generator")
    for field in dataclasses.fields(expected):
        ours, other = getattr(expected, field.name), getattr(generator, field.name)
        if ours != other:
            raise UserError(
                f"the generator's model.{field.name} is {other} and the discriminator's {ours}", fix="a pair has one number for both"
            )
    return whole
