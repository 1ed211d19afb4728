"""A family of models as it is registered: its config and the layouts of other projects that it is read from and written to."""

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from jaxenc.families.contract import ModelConfig
from jaxenc.families.foreign import AllenNlp, Google, Transformers


@dataclasses.dataclass(frozen=True)
class Family:
    """One family. config: its class, whose `kind` is the family's name; transformers, google, allennlp: None where there is no such
    layout of it."""

    config: type[ModelConfig]
    transformers: Transformers | None = None
    google: Google | None = None
    allennlp: AllenNlp | None = None


def registry(families: Iterable[Family]) -> Mapping[str, Family]:
    """{kind: family}, in their order. Raises ValueError for two families of one kind or with one model_type of transformers."""
    families = tuple(families)
    for names in (
        [family.config.kind for family in families],
        [name for family in families if family.transformers for name in family.transformers.model_types],
    ):
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two families are called {min(twice)}: every one needs names of its own")
    return MappingProxyType({family.config.kind: family for family in families})
