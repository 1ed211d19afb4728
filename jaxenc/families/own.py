"""The check of a model that is defined outside of jaxenc."""

import dataclasses

from jaxenc.errors import UserError
from jaxenc.families.contract import ModelConfig


def check(config: type[ModelConfig]) -> None:
    """Raises UserError, which says what is missing, for all but a frozen dataclass as `ModelConfig` describes it: the class itself, with
    a `kind`, a default for every field, and every method of its contract."""
    if not (isinstance(config, type) and issubclass(config, ModelConfig)):
        raise UserError(f"{config!r} is not a model class", fix="give a subclass of EncoderConfig or ModelConfig, not an instance of it")
    name, kind = config.__name__, getattr(config, "kind", None)
    if not (isinstance(kind, str) and kind.isidentifier()):
        raise UserError(f"model {name}: its kind is {kind!r}", fix="give the class a `kind`, a word that names the model in a recipe")
    if missing := sorted(config.__abstractmethods__):
        raise UserError(f"model {name}: it has no {', '.join(missing)}", fix="define what jaxenc.families.contract asks for")
    # A class with annotations and without the decorator has the fields of its base alone.
    undecorated = bool(vars(config).get("__annotations__")) and "__dataclass_params__" not in vars(config)
    if undecorated or not (dataclasses.is_dataclass(config) and config.__dataclass_params__.frozen):
        raise UserError(f"model {name}: it is not a frozen dataclass", fix="put @dataclasses.dataclass(frozen=True) above the class")
    missing = [f.name for f in dataclasses.fields(config) if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    if missing:
        raise UserError(
            f"model {name}: {', '.join(missing)} has no default, from which a recipe that names the kind starts", fix="give each one"
        )
