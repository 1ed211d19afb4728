"""The registry of model families, one folder each.

BERT comes first: a folder of transformers that names no model, as the oldest ones, is a BERT.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from jaxenc.errors import UserError
from jaxenc.families.albert import ALBERT
from jaxenc.families.bert import BERT
from jaxenc.families.contract import ModelConfig
from jaxenc.families.distilbert import DISTILBERT
from jaxenc.families.electra import ELECTRA
from jaxenc.families.elmo import ELMO
from jaxenc.families.family import registry
from jaxenc.families.gpt import GPT
from jaxenc.families.network_pair import NETWORK_PAIR
from jaxenc.families.own import check
from jaxenc.families.xlnet import XLNET

BUILT_IN = registry((BERT, ELECTRA, XLNET, ELMO, ALBERT, GPT, DISTILBERT, NETWORK_PAIR))
# {kind: class of the config}: what a config.json may name.
Models = Mapping[str, type[ModelConfig]]
MODELS: Models = MappingProxyType({kind: family.config for kind, family in BUILT_IN.items()})
DEFAULT = BERT.config()

C = TypeVar("C")


def with_built_in(*own: type[ModelConfig]) -> Models:
    """The built-in kinds of model and `own`, for the argument `models` of `load`, `pretrain` and others. Raises UserError for a kind that
    is taken, and as `own.check`."""
    models = dict(MODELS)
    for config in own:
        check(config)
        if config.kind in models:
            raise UserError(f"model {config.__name__}: the kind {config.kind!r} is taken", fix="give it another `kind`")
        models[config.kind] = config
    return MappingProxyType(models)


def able(model: ModelConfig, capability: type[C], needs: str) -> C:
    """`model`, checked to have a capability: `networks.NetworkPair`, `two_stream.TwoStream`, `both_directions.BothDirections`,
    `incremental.Incremental`, `contract.Encodes`.

    needs: the start of the message. Raises UserError, which lists the kinds of model with the capability, for a model without it.
    """
    if isinstance(model, capability):
        return model
    kinds = [kind for kind, cls in MODELS.items() if isinstance(cls(), capability)]
    raise UserError(needs, fix=f"set model.kind to {' or '.join(kinds)}, not {model.kind}")
