"""Follows advice about the fields of a config: what an error says of `part.field` becomes another value of it."""

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.training import run
from jaxenc.training.override import override
from tests import tiny
from tests.advice.following import listed, literal

# {dotted path: value} of the fields that are set; the others have their defaults.
Settings = dict[str, Any]

NAME = r"[a-z_]\w*(?:\.[a-z_]\w*)+"
WORD = r"[\w.'^-]+"
LIST = rf"{WORD}(?:(?:, or|,| or) {WORD})*"


def read(settings: Settings) -> run.Run:
    """The run of these settings, with its plan checked."""
    made = override(run.Run(), settings)
    _ = made.plan
    return made


def build(settings: Settings) -> None:
    """Builds the objective of every phase, for a vocabulary of 200 pieces and a CPU."""
    made = read(settings).with_vocabulary(tiny.VOCABULARY)
    for phase in made.plan:
        made.build(tiny.VOCABULARY, phase, "cpu")


def field(error: UserError) -> str:
    """The path of the field that an error is about: the first that it names."""
    named = re.search(rf"\b(?:config\.)?({NAME})", f"{error.where} {error.what}")
    assert named, f"{error.made}: no field is named: {error}"
    if inner := re.match(rf"config\.({NAME})$", error.where):  # a part of a part: config.model.generator: model.width is 0
        return f"{inner[1]}.{error.what.split()[0].rpartition('.')[2]}"
    single = {"data.length": "phases.length", "train.batch": "phases.batch"} if error.where == "phases" else {}
    return single.get(named[1], named[1])


def value_of(settings: Settings, path: str) -> Any:
    """The value of a field: the one that is set, or its default."""
    if path in settings:
        return settings[path]
    kinds = {name: value for name, value in settings.items() if name.endswith(".kind")}
    return dict(config.flatten(config.to_dict(override(run.Run(), kinds))))[path]


def _renamed(error: UserError, settings: Settings, names: list[str]) -> list[Settings]:
    """The settings with each of `names` instead of the wrong field, or as the value of the wrong kind."""
    path = field(error)
    if path.endswith(".kind"):
        return [{**settings, path: name} for name in names]
    part = path.rpartition(".")[0]
    kept = {name: value for name, value in settings.items() if name != path}
    paths = [name if "." in name else f"{part}.{name}" for name in names]
    return [{**kept, path: value_of(kept, path)} for path in paths]


def multiples(error: UserError, settings: Settings, name: str, of: str) -> list[Settings]:
    size = value_of(settings, of)
    return [{**settings, name: size * n} for n in ((1, 2, 4) if size < 100 else (1,))]


def _sibling(error: UserError, name: str) -> str:
    """The path of another field of the part that an error is about."""
    return f"{field(error).rpartition('.')[0]}.{name.rpartition('.')[2]}"


def _both_or_neither(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    return [{**settings, "objective.final_rate": rate, "objective.rate_steps": steps} for rate, steps in ((0.5, 10), (0.0, 0))]


def _shorten_or_raise(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    length, positions = map(int, re.findall(r" is (\d+)", error.what))
    raised = {**settings, **dict.fromkeys(listed(match[1]), length)}
    return [raised, *([{**settings, "data.length": positions}] if positions > 2 else [])]


def _phases(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    name, count = field(error), len(settings.get("phases.steps", ()))
    out = [{**settings, name: (settings[name] * count)[:count]}] if count else []
    return [*out, {**settings, "phases.steps": (1,) * len(settings[name])}, {key: value for key, value in settings.items() if key != name}]


def _filters(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    filters, widths = value_of(settings, "model.filters"), value_of(settings, "model.filter_widths")
    count = min(len(filters), len(widths))
    return [{**settings, "model.filters": filters[:count], "model.filter_widths": widths[:count]}]


SAMPLES = {"int": 2, "float": 0.5, "bool": True, "str": "text"}
Rule = Callable[[re.Match[str], UserError, Settings], list[Settings]]


def each_of(*values: Any) -> Rule:
    return lambda match, error, settings: [setting(settings, error, value) for value in values]


def setting(settings: Settings, error: UserError, value: Any) -> Settings:
    """The settings with a value for the field of an error, in every phase where it is one of `phases`."""
    path = field(error)
    one_a_phase = path.startswith("phases.") and not isinstance(value, tuple) and "phases.steps" in settings
    return {**settings, path: (value,) * len(settings["phases.steps"]) if one_a_phase else value}


def listed_ones(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    if " is not a head of " in error.what:
        return [{**settings, "objective.heads": (name,), "objective.labels": ("good", "bad")} for name in listed(match[1])]
    return [setting(settings, error, value) for value in listed(match[1])]


def set_named(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    return [{**settings, match[1]: value} for value in listed(match[2])]


def _fields(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    """Instead of a value that holds no fields: no such value, since each of its fields has a default."""
    path = field(error) if "." in error.what.partition(" is ")[0].removeprefix("config.") else error.what.split()[0].removeprefix("config.")
    return [{name: value for name, value in settings.items() if name != path}]


# What a fix says -> what to do; the first that fits.
RULES: dict[str, Rule] = {
    rf"^(?:use|it takes|choose|model\.kind \w+ takes) (?:one of )?({LIST})$": listed_ones,
    rf"^use one of the (?:fields|kinds) ({LIST})$": lambda match, error, settings: _renamed(error, settings, listed(match[1])),
    r"^did you mean (.+)\?$": lambda match, error, settings: _renamed(error, settings, listed(match[1])),
    r"^it is at least (\S+)$": listed_ones,
    r"^it is at most (2\^31 - 1|\S+)$": listed_ones,
    r"^it takes 0 to 2\^31 - 1$": each_of(0, 2**31 - 1),
    r"^it takes a rate from 0 up to but not including 1$": each_of(0.0, 0.5, math.nextafter(1, 0)),
    r"^it takes a positive number$": each_of(1e-3, 1.0),
    r"^it takes a number above 0 and up to 1$": each_of(1e-3, 1.0),
    r"^use a number between 0 and 1$": each_of(0.001, 0.999),
    r"^it takes a share from 0 to 1$": each_of(0.0, 0.5, 1.0),
    r"^it takes finite numbers$": each_of(1.0),
    r"^it takes (?:a|an) value of type (\w+)$": lambda match, error, settings: each_of(SAMPLES[match[1]])(match, error, settings),
    r"^it takes a tuple such as (\(.+\))$": lambda match, error, settings: each_of(literal(match[1]))(match, error, settings),
    r"^it takes .* from (\S+) to (\S+)$": lambda match, error, settings: each_of(literal(match[1]), literal(match[2]))(
        match, error, settings
    ),
    r"such as (\S+)$": listed_ones,
    r"^it holds the fields ": _fields,
    r"^an? .* has (\d+) words(?: or tokens)? at most$": listed_ones,
    r"^make it a multiple$": lambda match, error, settings: multiples(
        error, settings, field(error), _sibling(error, re.findall(NAME, error.what)[1])
    ),
    r"^it takes a share of the tokens, such as (\S+)$": listed_ones,
    r"^it takes a share of the tokens, or 0": lambda match, error, settings: [
        {**settings, "objective.final_rate": 0.0, "objective.rate_steps": 0},
        {**settings, "objective.final_rate": 0.3, "objective.rate_steps": 10},
    ],
    r"^set both or neither$": _both_or_neither,
    r"^set it to (\d+), or use (\w+) or (\w+)$": lambda match, error, settings: [
        {**settings, field(error): literal(match[1])},
        *({**settings, "objective.unit": match[i]} for i in (2, 3)),
    ],
    r"^use shares from 0, of 1 together at most$": lambda match, error, settings: [
        {**settings, "objective.mask_share": mask, "objective.random_share": random}
        for mask, random in ((0.0, 1.0), (1.0, 0.0), (0.5, 0.5))
    ],
    r"^leave a row for each piece$": lambda match, error, settings: [
        {**settings, _sibling(error, "spare_rows"): value_of(settings, _sibling(error, "vocab_size")) - 1}
    ],
    r"^shorten the rows, or raise (.+)$": _shorten_or_raise,
    r"^set it to the lengths of bucketed rows, rising, with those of data.length and phases.length$": lambda match, error, settings: [
        {**settings, "data.lengths": lengths}
        for lengths in ((value_of(settings, "data.length"),), (value_of(settings, "data.length") // 2, value_of(settings, "data.length")))
    ],
    r"^give each length once, the shortest first$": lambda match, error, settings: [
        {**settings, "data.lengths": tuple(sorted({length for length in settings["data.lengths"] if length > 2}))}
    ],
    r"^(?:give one a phase|set phases.steps, or leave \S+ out)$": _phases,
    r"^give each width one number$": _filters,
    r"^a word has (\d+) characters, use no more$": lambda match, error, settings: [
        {**settings, "model.filter_widths": tuple(min(int(match[1]), width) for width in settings["model.filter_widths"])}
    ],
    rf"^set ({NAME}) to at least ({NAME})": lambda match, error, settings: [{**settings, match[1]: value_of(settings, match[2])}],
    r"takes a number from (\S+) to (\S+)$": lambda match, error, settings: each_of(literal(match[1]), literal(match[2]))(
        match, error, settings
    ),
    r"^alpha is from beta to (\S+)$": lambda match, error, settings: [
        {**settings, "objective.alpha": alpha, "objective.beta": min(alpha, value_of(settings, "objective.beta"))}
        for alpha in (min(value_of(settings, "objective.beta"), literal(match[1])), literal(match[1]))
    ],
    r"^it takes an even number": lambda match, error, settings: [
        {**settings, field(error): width, _sibling(error, "heads"): 1} for width in (2, 4)
    ],
    r"^use one group for each layer at most$": lambda match, error, settings: [
        {**settings, field(error): value_of(settings, _sibling(error, "layers"))}
    ],
    r"^set (\d+) or more, (\d+) for rows of (\d+)$": lambda match, error, settings: [
        {**settings, field(error): int(match[1])},
        {**settings, field(error): int(match[2]), "data.length": int(match[3])},
    ],
}


def advised(error: UserError, settings: Settings, more: Mapping[str, Rule] = MappingProxyType({})) -> list[Settings]:
    """The settings that an error's advice names."""
    for pattern, rule in {**more, **RULES}.items():
        if match := re.search(pattern, error.fix):
            return rule(match, error, settings)
    raise AssertionError(f"{error.made}: no rule follows the advice of {error}: word it as another message, or add a rule to RULES")
