"""The registry entry of a model family: its config and the formats of other projects that it is converted from and to."""

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from jaxenc.families.contract import ModelConfig
from jaxenc.families.foreign import AllenNlp, Google, Reader, Transformers


@dataclasses.dataclass(frozen=True)
class Family:
    """One family. config: its config class, whose `kind` is the name of the family; transformers, google, allennlp, fairseq: how to convert
    each format, None where the family does not exist in it. `fairseq` is given the settings of a checkpoint's training."""

    config: type[ModelConfig]
    transformers: Transformers | None = None
    google: Google | None = None
    allennlp: AllenNlp | None = None
    fairseq: Reader | None = None


def registry(families: Iterable[Family]) -> Mapping[str, Family]:
    """{kind: family}, in the given order. Raises ValueError for two families with the same kind or the same model_type of transformers."""
    families = tuple(families)
    for names in (
        [family.config.kind for family in families],
        [name for family in families if family.transformers for name in family.transformers.model_types],
    ):
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two families are called {min(twice)}: each needs its own names")
    return MappingProxyType({family.config.kind: family for family in families})
