"""Sets fields of a recipe by name, with aliases and kinds, for `--config.FIELD=VALUE` and `jaxenc.override`."""

import dataclasses
import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.families import MODELS, Models
from jaxenc.training import phases
from jaxenc.training.phases import OVERRULES, SINGLE
from jaxenc.training.run import Run, from_dict, tables

Part = TypeVar("Part")


def override(recipe: Run | Mapping[str, Any], values: Mapping[str, Any], models: Models = MODELS) -> Run:
    """`recipe` with the fields at the dotted paths of `values` set, such as {"train.steps": 10, "data.length": 64}.

    recipe: a Run, or the dict of one (`get_config().to_dict()`). A changed `kind` starts from that kind's own defaults (`of_kinds`).
    On a recipe with phases, `train.steps` scales all phases to that many steps in all, and their warm-ups in proportion, unless `values`
    sets them too; `train.batch`, `data.length`, `optim.lr`, `optim.warmup` and `objective.max_predictions` set every phase. With another
    `data.length`, each phase predicts as many tokens as the objective chooses for that length, unless `values` says how many.
    Without phases these are plain fields, and a change of `train.steps` does not change `optim.warmup`. models: the kinds that a model may
    have (`jaxenc.families.with_built_in` adds your own).

    Raises UserError for an unknown field, an invalid value, a field set together with the field of `phases` that it replaces, and fewer
    steps than phases.
    """
    recipe = recipe if isinstance(recipe, Run) else from_dict(recipe, models=models)
    data = with_values(recipe, values, tables(models))
    data["phases"] |= dict.fromkeys(_replaced(data["phases"], values), ())
    run = from_dict(data, models=models)
    return _scaled(run, values) if "train.steps" in values and run.phases.steps else run


def with_values(recipe: Any, values: Mapping[str, Any], kinds: config.Tables) -> dict[str, Any]:
    """The dict of `recipe`, a dataclass of settings, with the fields at the dotted paths of `values` set. kinds: as in `of_kinds`. Raises
    UserError as `check_names`."""
    recipe = of_kinds(recipe, values, kinds)
    check_names(recipe, values)
    data = config.to_dict(recipe)
    for path, value in values.items():
        *parts, name = path.split(".")
        branch = data
        for part in parts:
            branch = branch[part]
        branch[name] = value
    return data


def of_kinds(part: Part, values: Mapping[str, Any], kinds: config.Tables, prefix: str = "") -> Part:
    """`part`, a Run or one of its parts, with the defaults of the new kind wherever `values` sets a `kind`, as {"objective.kind": "rtd"}
    does.

    No value of the old kind is kept, not even of a field that both have. An unknown kind is ignored; `override` refuses it. kinds: the
    tables of `config.from_dict`. prefix: of the dotted paths of `part`.
    """
    changed = {}
    for field in dataclasses.fields(part):
        item, path = getattr(part, field.name), f"{prefix}{field.name}"
        table, kind = kinds.get(field.metadata.get("kinds"), {}), values.get(f"{path}.kind")
        if isinstance(kind, str) and kind in table and kind != item.kind:
            item = table[kind]()
        if dataclasses.is_dataclass(item):
            changed[field.name] = of_kinds(item, values, kinds, f"{path}.")
    return dataclasses.replace(part, **changed)


def check_names(recipe: Any, paths: Iterable[str]) -> None:
    """Raises UserError, with the nearest field names, for the first of `paths` that is not a field of `recipe`."""
    known = dict(config.flatten(config.to_dict(recipe)))
    for path in map(str, paths):
        if path not in known:
            close = nearest(path, known)
            hint = f"did you mean {', '.join(close)}?" if close else "`jaxenc inspect --config NAME --fields` prints the fields"
            raise UserError(f"config.{path} is not a field", fix=hint)


def nearest(path: str, known: Collection[str]) -> list[str]:
    """Up to three of the dotted paths `known` that `path` may stand for: those with its last name, in whatever group, or else those with a
    last name that is spelled like it, of its own group if there are any, or else those that are spelled like it."""
    own = f"{path.rpartition('.')[0]}."
    last = lambda one: one.rpartition(".")[2]
    like = lambda one: difflib.SequenceMatcher(None, path, one).ratio()
    for cutoff in (1.0, 0.6):
        names = difflib.get_close_matches(last(path), {last(one) for one in known}, n=3, cutoff=cutoff)
        if found := sorted((one for one in known if last(one) in names), key=like, reverse=True)[:3]:
            return [one for one in found if one.startswith(own)] or found
    return difflib.get_close_matches(path, known, n=3, cutoff=0.5)


def _replaced(of_phases: Mapping[str, Any], given: Collection[str]) -> list[str]:
    """The fields of `phases` that a single value in `given` replaces. Raises UserError where `given` sets both."""
    for name, single in SINGLE.items():
        if single in given and f"phases.{name}" in given and of_phases[name]:
            raise UserError(f"config.{single} sets every phase, and config.phases.{name} is set too", fix="leave one of the two out")
    names = [name for name, single in OVERRULES.items() if single in given]
    return [*names, "max_predictions"] if "length" in names and "phases.max_predictions" not in given else names


def _scaled(run: Run, given: Collection[str]) -> Run:
    """`run` with its phases scaled to `train.steps` in all, and with its warm-ups scaled too unless `given` sets them."""
    before, after, count = sum(run.phases.steps), run.train.steps, len(run.phases.steps)
    if after < count:
        raise UserError(f"config.train.steps is {after} and phases.steps has {count} phases", fix=f"use {count} or more")
    changed, optim = dataclasses.replace(run.phases, steps=phases.apportion(run.phases.steps, after)), run.optim
    if not {"optim.warmup", "phases.warmup"} & set(given):
        scaled = [phases.in_proportion(warmup, before, after) for warmup in (optim.warmup, *changed.warmup)]
        changed, optim = dataclasses.replace(changed, warmup=tuple(scaled[1:])), dataclasses.replace(optim, warmup=scaled[0])
    return dataclasses.replace(run, phases=changed, optim=optim)
