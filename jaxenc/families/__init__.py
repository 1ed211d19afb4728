"""Every family that a recipe can name and a command can convert: an entry here, a folder beside this file.

The first is the oldest one of transformers, which a folder without any name of a model means.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from jaxenc.errors import UserError
from jaxenc.families.albert import ALBERT
from jaxenc.families.bert import BERT
from jaxenc.families.contract import ModelConfig
from jaxenc.families.electra import ELECTRA
from jaxenc.families.elmo import ELMO
from jaxenc.families.family import registry
from jaxenc.families.network_pair import NETWORK_PAIR
from jaxenc.families.xlnet import XLNET

BUILT_IN = registry((BERT, ELECTRA, XLNET, ELMO, ALBERT, NETWORK_PAIR))
# {kind: class of the config}: what a config.json may name.
Models = Mapping[str, type[ModelConfig]]
MODELS: Models = MappingProxyType({kind: family.config for kind, family in BUILT_IN.items()})
DEFAULT = BERT.config()

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
