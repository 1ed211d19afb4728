"""Follows advice about the fields of a config: what an error says of `part.field` becomes another value of it."""

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.bert.model import BertConfig
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


def _value(settings: Settings, path: str) -> Any:
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
    return [{**kept, path: _value(kept, path)} for path in paths]


def _multiple(error: UserError, settings: Settings, name: str, of: str) -> list[Settings]:
    size = _value(settings, of)
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
    filters, widths = _value(settings, "model.filters"), _value(settings, "model.filter_widths")
    count = min(len(filters), len(widths))
    return [{**settings, "model.filters": filters[:count], "model.filter_widths": widths[:count]}]


SAMPLES = {"int": 2, "float": 0.5, "bool": True, "str": "text"}
Rule = Callable[[re.Match[str], UserError, Settings], list[Settings]]


def _of(*values: Any) -> Rule:
    return lambda match, error, settings: [_with(settings, error, value) for value in values]


def _with(settings: Settings, error: UserError, value: Any) -> Settings:
    """The settings with a value for the field of an error, in every phase where it is one of `phases`."""
    path = field(error)
    one_a_phase = path.startswith("phases.") and not isinstance(value, tuple) and "phases.steps" in settings
    return {**settings, path: (value,) * len(settings["phases.steps"]) if one_a_phase else value}


def _listed(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    if " is no head for " in error.what:
        return [{**settings, "objective.heads": (name,), "objective.labels": ("good", "bad")} for name in listed(match[1])]
    return [_with(settings, error, value) for value in listed(match[1])]


def _set(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    return [{**settings, match[1]: value} for value in listed(match[2])]


def _fields(match: re.Match[str], error: UserError, settings: Settings) -> list[Settings]:
    """Instead of a value that holds no fields: no such value, since each of its fields has a default."""
    path = field(error) if "." in error.what.partition(" is ")[0].removeprefix("config.") else error.what.split()[0].removeprefix("config.")
    return [{name: value for name, value in settings.items() if name != path}]


# What a fix says -> what to do; the first that fits.
RULES: dict[str, Rule] = {
    rf"^(?:use|it takes|choose|model\.kind \w+ takes) (?:one of )?({LIST})$": _listed,
    rf"^use one of the (?:fields|kinds) ({LIST})$": lambda match, error, settings: _renamed(error, settings, listed(match[1])),
    r"^did you mean (.+)\?$": lambda match, error, settings: _renamed(error, settings, listed(match[1])),
    r"^it is at least (\S+)$": _listed,
    r"^it is at most (2\^31 - 1|\S+)$": _listed,
    r"^it takes 0 to 2\^31 - 1$": _of(0, 2**31 - 1),
    r"^it takes a rate from 0 up to but not including 1$": _of(0.0, 0.5, math.nextafter(1, 0)),
    r"^it takes a positive number$": _of(1e-3, 1.0),
    r"^use a number between 0 and 1$": _of(0.001, 0.999),
    r"^it takes a share from 0 to 1$": _of(0.0, 0.5, 1.0),
    r"^it takes finite numbers$": _of(1.0),
    r"^it takes (?:a|an) value of type (\w+)$": lambda match, error, settings: _of(SAMPLES[match[1]])(match, error, settings),
    r"^it takes a tuple such as (\(.+\))$": lambda match, error, settings: _of(literal(match[1]))(match, error, settings),
    r"^it takes .* from (\S+) to (\S+)$": lambda match, error, settings: _of(literal(match[1]), literal(match[2]))(match, error, settings),
    r"such as (\S+)$": _listed,
    r"^it holds the fields ": _fields,
    r"^an? .* has (\d+) words(?: or tokens)? at most$": _listed,
    r"^make it a multiple$": lambda match, error, settings: _multiple(
        error, settings, field(error), _sibling(error, re.findall(NAME, error.what)[1])
    ),
    r"^it takes a share of the tokens, such as (\S+)$": _listed,
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
        {**settings, _sibling(error, "spare_rows"): _value(settings, _sibling(error, "vocab_size")) - 1}
    ],
    r"^shorten the rows, or raise (.+)$": _shorten_or_raise,
    r"^set it to the lengths of bucketed rows, rising, the last (\d+)$": lambda match, error, settings: [
        {**settings, "data.lengths": lengths} for lengths in ((int(match[1]),), (int(match[1]) // 2, int(match[1])))
    ],
    r"^give each length once, the shortest first$": lambda match, error, settings: [
        {**settings, "data.lengths": tuple(sorted({length for length in settings["data.lengths"] if length > 2}))}
    ],
    r"^(?:give one a phase|set phases.steps, or leave \S+ out)$": _phases,
    r"^give each width one number$": _filters,
    r"^a word has (\d+) characters, use no more$": lambda match, error, settings: [
        {**settings, "model.filter_widths": tuple(min(int(match[1]), width) for width in settings["model.filter_widths"])}
    ],
    rf"^set ({NAME}) to at least ({NAME})": lambda match, error, settings: [{**settings, match[1]: _value(settings, match[2])}],
    r"takes a number from (\S+) to (\S+)$": lambda match, error, settings: _of(literal(match[1]), literal(match[2]))(
        match, error, settings
    ),
    r"^alpha is from beta to (\S+)$": lambda match, error, settings: [
        {**settings, "objective.alpha": alpha, "objective.beta": min(alpha, _value(settings, "objective.beta"))}
        for alpha in (min(_value(settings, "objective.beta"), literal(match[1])), literal(match[1]))
    ],
    r"^it takes an even number": lambda match, error, settings: [
        {**settings, field(error): width, _sibling(error, "heads"): 1} for width in (2, 4)
    ],
    r"^use one group for each layer at most$": lambda match, error, settings: [
        {**settings, field(error): _value(settings, _sibling(error, "layers"))}
    ],
    r"^set (\d+) or more, (\d+) for rows of (\d+)$": lambda match, error, settings: [
        {**settings, field(error): int(match[1])},
        {**settings, field(error): int(match[2]), "data.length": int(match[3])},
    ],
    r"^name each head once$": lambda match, error, settings: [_with(settings, error, tuple(dict.fromkeys(settings[field(error)])))],
    r"^give every class a name of its own$": _of(("good", "bad")),
    r"^name the classes of": lambda match, error, settings: [{**settings, "objective.labels": ("good", "bad")}],
    r"^set it to (\d+) for rows of one text, or to (\d+) or more$": lambda match, error, settings: [
        _with(settings, error, int(match[i])) for i in (1, 2)
    ],
    r"^set it to the number of texts of a row": _of(2),
    r"^it takes (.+), or a head of your own": lambda match, error, settings: [
        _with(settings, error, (name,)) for name in listed(match[1]) if name in BertConfig.head_names
    ],
    r"^keep one of them$": lambda match, error, settings: [_with(settings, error, (name,)) for name in settings[field(error)]],
    r"^add the one that the model has$": lambda match, error, settings: [
        _with(settings, error, (*settings[field(error)], name))
        for name in listed(re.search(r" without (.+), whose", error.what)[1])
        if name in MODELS[settings.get("model.kind", "bert")].head_names
    ],
    r"^set objective.choices to 0, or leave the head out$": lambda match, error, settings: [
        {**settings, "objective.choices": 0},
        {**settings, "objective.heads": tuple(name for name in settings["objective.heads"] if name not in error.what)},
    ],
    r"^set model.attention to full, or choose an objective or heads without it$": lambda match, error, settings: [
        {**settings, "model.attention": "full"},
        {**settings, "objective.heads": tuple(name for name in settings["objective.heads"] if name not in error.what)}
        if "objective.heads" in settings
        else {"model.attention": "causal", "objective.kind": "mlm"},
    ],
    r"^name heads of one of the two$": lambda match, error, settings: [
        {**settings, "objective.heads": heads} for heads in (("mlm",), tuple(set(settings["objective.heads"]) - {"mlm"}))
    ],
    rf"^use ({LIST})$": _listed,
    rf"^objective.kind \w+ needs ({NAME})=(\w+)$": _set,
    rf"^leave ({NAME}) and ({NAME}) at (\S+)$": lambda match, error, settings: [
        {**settings, match[1]: literal(match[3]), match[2]: literal(match[3])}
    ],
    rf"^set ({NAME}) to ({LIST}), or ({NAME}) to ({LIST})$": lambda match, error, settings: [
        {**settings, match[i]: literal(match[i + 1])} for i in (1, 3)
    ],
    rf"^set ({NAME}) to (\w+), not \w+$": _set,
    r"^use text with objective.unit=": lambda match, error, settings: [{**settings, "objective.candidates": "text"}],
    r"^make data.reuse a part of data.length, such as (\d+) of (\d+)$": lambda match, error, settings: [
        {**settings, "data.reuse": int(match[1]), "data.length": int(match[2])}
    ],
    r"^use a divisor of both$": lambda match, error, settings: [_with(settings, error, size) for size in (1, 2)],
    rf"^lower ({NAME}), or lengthen data.length and data.reuse$": lambda match, error, settings: [
        {**settings, match[1]: 2 if match[1] == "objective.predictions" else (2,) * len(settings["phases.steps"])},
        {**settings, "data.length": 4 * settings["data.length"], "data.reuse": 4 * settings["data.reuse"]},
    ],
    r"^use (\d+) or more$": lambda match, error, settings: [_with(settings, error, int(match[1]))],
    r"^set them equal$": lambda match, error, settings: [
        {**settings, name: value} for name, other in [re.findall(NAME, error.what)[:2]] for value in [_value(settings, other)]
    ],
    r"^a pair takes two encoders, such as (\w+)$": _listed,
    r"^set it to embeddings, or": lambda match, error, settings: [{**settings, "model.sharing": "embeddings"}],
    r"^make the embeddings equal, or set ({NAME}) to none$".replace("{NAME}", NAME): lambda match, error, settings: [
        {**settings, match[1]: "none"}
    ],
    r"^set objective.kind to one that trains both networks, such as (\w+), or leave the head out$": lambda match, error, settings: [
        {"model.kind": settings["model.kind"], "objective.kind": match[1]},
        {**settings, "objective.heads": tuple(name for name in settings["objective.heads"] if name != "mlm")},
    ],
    r"^make it even$": lambda match, error, settings: [_with(settings, error, 2)],
    r"^make data.length (\d+) or more": lambda match, error, settings: [{**settings, "data.length": int(match[1])}],
    r"^set data.path to (?:one folder|it)(?:, or use data.rows=(\w+), which may be mixed)?$": lambda match, error, settings: [
        {**{name: value for name, value in settings.items() if name != "data.mixture"}, "data.path": "a"},
        *([{**settings, "data.rows": match[1]}] if match[1] else []),
    ],
    r"^name one folder with data.path, or several with data.mixture$": lambda match, error, settings: [
        {name: value for name, value in settings.items() if name != left} for left in ("data.path", "data.mixture")
    ],
    r"^name it once, and set data.weights$": lambda match, error, settings: [
        {**settings, "data.mixture": ("a", "b"), "data.weights": (2.0, 1.0)}
    ],
    r"^give each its weight$": lambda match, error, settings: [{**settings, "data.weights": (1.0,) * len(settings["data.mixture"])}],
    r"^it takes positive numbers$": lambda match, error, settings: [_with(settings, error, (1.0,) * len(settings[field(error)]))],
    r"^leave out what is beyond (\d+), or lengthen the rows with data.length$": lambda match, error, settings: [
        {**settings, "data.lengths": tuple(one for one in settings["data.lengths"] if one <= int(match[1]))},
    ],
    r"^set train.batch or phases.batch to a multiple of it$": lambda match, error, settings: [
        {**settings, "phases.batch": (_value(settings, "train.microbatches"),) * len(settings["phases.batch"])}
    ],
    r"^use '(\w+)' or '(\w+)'": lambda match, error, settings: [{**settings, "train.attention": match[i]} for i in (1, 2)],
    r"^set (mesh.\w+) to a divisor of (\d+)$": lambda match, error, settings: [
        {**settings, match[1]: size} for size in range(1, int(match[2]) + 1) if int(match[2]) % size == 0
    ],
    r"^leave one of the two out$": lambda match, error, settings: [
        {key: value for key, value in settings.items() if key != name} for name in re.findall(rf"config\.({NAME})", error.what)
    ],
    r"^leave (\S+) out$": lambda match, error, settings: [{name: value for name, value in settings.items() if name != match[1]}],
    r"^set (\S+\.\S+) to a multiple of it$": lambda match, error, settings: _multiple(
        error, settings, match[1], re.findall(NAME, error.what)[1]
    ),
    rf"^set ({NAME}) to ({LIST})(?:,? not \w+)?$": _set,
    rf"^set ({NAME})=({WORD})$": _set,
    r"^rows of .* need (\d+) or more": _listed,
}


def advised(error: UserError, settings: Settings, more: Mapping[str, Rule] = MappingProxyType({})) -> list[Settings]:
    """The settings that an error's advice names."""
    for pattern, rule in {**more, **RULES}.items():
        if match := re.search(pattern, error.fix):
            return rule(match, error, settings)
    raise AssertionError(f"{error.made}: no rule follows the advice of {error}")
