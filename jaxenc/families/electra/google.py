"""Reads ELECTRA from TensorFlow checkpoints of google-research/electra."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.errors import UserError
from jaxenc.families import config_json, fine_tuned
from jaxenc.families.electra import names, two_models
from jaxenc.families.electra.model import NETWORKS, ElectraConfig
from jaxenc.families.foreign import Google, Import, Structure
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN

# The task of google-research/electra whose head tags tokens.
TAGGING = "chunk"


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The pair in a checkpoint of google-research/electra, or the discriminator where the checkpoint has no generator or is fine-tuned.

    There is no config file, so `config` is not read. Raises UserError as `model_of` and `tuned`.
    """
    if own := sorted(name for name in tensors if name.startswith("task_specific/")):
        return tuned(own, tensors, where)
    model, networks = model_of(tensors, where)
    table = {
        entry.ours: entry
        for network in networks
        for entry in names.entries(model, network, two_models.HEADS[network], names.google_file(network, tensors))
    }
    heads = tuple(head for network in networks for head in two_models.HEADS[network])
    return Import(Structure(model, heads), tensors, tuple(table.values()))


def tuned(own: list[str], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The discriminator of a checkpoint fine-tuned for one task, with the head of that task. own: the names of the head's tensors.

    A dense layer on the first token is a `classifier`, or with one output a `regressor`; that of the tagging task `chunk` reads every token
    (finetune/task_builder.py). Classes have no names: LABEL_0, LABEL_1 ... Raises UserError for any other head, such as that of squad.
    """
    task = own[0].split("/")[1]
    scope = names.TASK.format(task=task)
    if own != [f"{scope}/bias", f"{scope}/kernel"]:
        raise UserError(f"fine-tuned, with {own[-1]}, which no head here matches", where, "name the checkpoint that it was tuned from")
    held = ("tags",) if task == TAGGING else ("classifier", "first_token")
    heads, labels = fine_tuned.read({}, held, lambda head: math.prod(tensors[own[0]].shape), where)
    heads = tuple(head for head in BUILT_IN if head in heads)
    model = two_models.alone(model_of(tensors, where)[0], "discriminator")
    file = dataclasses.replace(names.google_file("discriminator", tensors), task=task)
    return Import(Structure(model, heads, labels.names), tensors, names.entries(model, "discriminator", heads, file))


def model_of(tensors: Mapping[str, Tensor], where: Path) -> tuple[ElectraConfig, tuple[str, ...]]:
    """(the model in a checkpoint of google-research/electra, its networks: both of NETWORKS or the discriminator alone).

    The sizes are read off the shapes of the tensors; attention heads are 64 wide (util/training_utils.py, get_bert_config;
    run_pretraining.py, get_generator_config). Raises UserError for shapes that fit no such model.
    """
    values: dict[str, Any] = {}
    both = any(name.startswith(("generator/", "generator_predictions/")) for name in tensors)
    try:
        for name, field in (("word", "vocab_size"), ("position", "positions"), ("token_type", "types")):
            values[field], values["embedding"] = tensors[f"electra/embeddings/{name}_embeddings"].shape
        for base, ours in (("electra/", ""), ("generator/", "generator_"))[: 1 + both]:
            width, inner = tensors[f"{base}encoder/layer_0/intermediate/dense/kernel"].shape
            layers = sum(name.startswith(base) and name.endswith("/intermediate/dense/kernel") for name in tensors)
            heads = max(1, width // 64)
            values |= {f"{ours}width": width, f"{ours}feed_forward": inner, f"{ours}heads": heads, f"{ours}layers": layers}
    except KeyError as error:
        raise UserError(f"holds no {error.args[0]}", where, "name a checkpoint of ELECTRA's pretraining") from None
    except ValueError:
        raise UserError("its tables or layers are not matrices", where, "name a checkpoint of ELECTRA's pretraining") from None
    values["sharing"] = "none" if any(name.startswith("generator/embeddings/") for name in tensors) else "embeddings"
    model = config_json.built(ElectraConfig, values, where, {})
    return (model, NETWORKS) if both else (two_models.alone(model, "discriminator"), ("discriminator",))


GOOGLE = Google("electra/", "", read)
