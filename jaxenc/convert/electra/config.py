"""The config.json of one network of ELECTRA, as transformers writes it, from and to a Run.

transformers keeps a generator and a discriminator as two models. A Run of one of them has an ElectraConfig with the same numbers for
both, and the objective says by its heads which it is (`ElectraConfig.encoder`).
"""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.convert import config as configs
from jaxenc.convert.bert import config as berts
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.electra.model import NETWORKS, ElectraConfig
from jaxenc.formats.tensor import Tensor
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run

# As `convert.bert.config.ENDINGS`.
ENDINGS = (
    (("mlm",), "ForMaskedLM", {"mlm": ("logits",)}),
    (("pooler", "classifier"), "ForSequenceClassification", {"classifier": ("logits",)}),
    (("tags",), "ForTokenClassification", {"tags": ("logits",)}),
    (("spans",), "ForQuestionAnswering", {"spans": ("start_logits", "end_logits")}),
    (("rtd",), "ForPreTraining", {"rtd": ("logits",)}),
    ((), "Model", {}),
)
FIELDS = {**berts.FIELDS, "embedding": "embedding_size"}
# What transformers takes for fields that a config.json does not name: those of ELECTRA-small.
DEFAULTS = {"width": 256, "heads": 4, "feed_forward": 1024, "embedding": 128}


def model_of(data: Mapping[str, Any], where: Path) -> ElectraConfig:
    """The model of a config.json. Raises UserError, which begins with `where`, for what we do not compute."""
    berts.only_encoders(data, where)
    values = DEFAULTS | configs.sizes(data, FIELDS, configs.ACTIVATIONS, where)
    if "max_position_embeddings" in data:
        values["positions"] = data["max_position_embeddings"]
    return alone(configs.built(ElectraConfig, values, where), "discriminator")


def google_model(tensors: Mapping[str, Tensor], where: Path) -> tuple[ElectraConfig, tuple[str, ...]]:
    """The model in a checkpoint of google-research/electra and which of NETWORKS are there: the pair, or the discriminator alone.

    No config lies beside it: the shapes tell all but the heads, each 64 wide (util/training_utils.py, get_bert_config;
    run_pretraining.py, get_generator_config). Raises UserError for shapes that tell no such model.
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
        raise UserError(f"{where}: holds no {error.args[0]}: name a checkpoint of ELECTRA's pretraining") from None
    except ValueError:
        raise UserError(f"{where}: its tables or layers are no matrices: name a checkpoint of ELECTRA's pretraining") from None
    values["sharing"] = "none" if any(name.startswith("generator/embeddings/") for name in tensors) else "embeddings"
    model = configs.built(ElectraConfig, values, where)
    return (model, NETWORKS) if both else (alone(model, "discriminator"), ("discriminator",))


def alone(model: ElectraConfig, network: str) -> ElectraConfig:
    """The model of one network of a pair, with its numbers for both."""
    block, layers = model.block(network), model.depth(network)
    sizes = {"width": block.width, "heads": block.heads, "feed_forward": block.feed_forward, "layers": layers}
    return dataclasses.replace(model, **sizes, **{f"generator_{name}": size for name, size in sizes.items()}, sharing="embeddings")


def run_of(model: ElectraConfig, heads: Collection[str], labels: tuple[str, ...]) -> Run:
    """A Run for one network: its objective is the one that trains these heads, everything else has its default."""
    pooler = "gelu_erf" if "pooler" in heads else HeadsConfig().pooler_activation
    objective = MlmConfig() if tuple(heads) == ("mlm",) else HeadsConfig(tuple(heads), labels, pooler)
    return dataclasses.replace(Run(objective, model), data=dataclasses.replace(Run().data, length=model.positions))


def refuse(run: Run, heads: Collection[str], where: str | Path) -> None:
    """Raises UserError where transformers has no such model, or computes another one from the same numbers."""
    model, objective = run.model, run.objective
    berts.refuse_causal(model, where)
    if "mlm" in heads and model.activation != "gelu_erf":
        raise UserError(f"{where}: model.activation is {model.activation}: transformers' ELECTRA has gelu_erf in the generator's head")
    if "next_sentence" in heads or ("pooler" in heads) != ("classifier" in heads):
        raise UserError(f"{where}: transformers' ELECTRA has no pooler but that of its classifier, and no next-sentence head")
    if "pooler" in heads and objective.pooler_activation != "gelu_erf":
        told = f"objective.pooler_activation is {objective.pooler_activation}"
        raise UserError(f"{where}: {told}: transformers' ELECTRA has gelu_erf in its classifier")


def config_json(run: Run, heads: Collection[str], vocabulary: Vocabulary | None) -> tuple[dict[str, Any], Mapping[str, tuple[str, ...]]]:
    """What transformers' AutoConfig reads of one network, and {our output: attributes} of the class that it names."""
    model = run.model
    ending, outputs = next((ending, outputs) for needed, ending, outputs in ENDINGS if set(needed) <= set(heads))
    data = {
        "architectures": [f"Electra{ending}"],
        "model_type": "electra",
        **{theirs: getattr(model, ours) for ours, theirs in FIELDS.items()},
        "type_vocab_size": max(model.types, 1),
        "hidden_act": configs.HIDDEN_ACT[model.activation],
        "max_position_embeddings": model.positions,
        "pad_token_id": vocabulary.pad if vocabulary else 0,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    }
    labels = run.objective.labels if isinstance(run.objective, HeadsConfig) else ()
    return {**data, **(configs.labels_json(labels) if labels else {})}, outputs
