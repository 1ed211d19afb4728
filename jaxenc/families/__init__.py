"""Every model that a recipe can name: an entry here, a folder beside this file."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig

DEFAULT = BertConfig()
Models = Mapping[str, type[ModelConfig]]
MODELS: Models = MappingProxyType({cls.kind: cls for cls in (BertConfig, ElectraConfig, XlnetConfig, ElmoConfig, NetworkPairConfig)})

C = TypeVar("C")


def with_built_in(*own: type[ModelConfig]) -> Models:
    """The built-in kinds of model and `own`, for what takes `models`. Raises UserError for two of one kind."""
    models = dict(MODELS)
    for config in own:
        if config.kind in models:
            raise UserError(f"model {config.__name__}: the kind {config.kind!r} is taken: give it another `kind`")
        models[config.kind] = config
    return MappingProxyType(models)


def able(model: ModelConfig, capability: type[C], needs: str) -> C:
    """`model` itself, as one that has a capability: `networks.Pair`, `two_stream.TwoStream`, `both_directions.BothDirections`.

    needs: how a message begins. Raises UserError, which names the kinds of model that have it, for a model that has it not.
    """
    if isinstance(model, capability):
        return model
    kinds = [kind for kind, cls in MODELS.items() if isinstance(cls(), capability)]
    raise UserError(f"{needs}: set model.kind to {' or '.join(kinds)}, not {model.kind}")
