"""Rules that follow advice about fields of a config that do not fit one another."""

import re
from types import MappingProxyType

from jaxenc.families import MODELS
from jaxenc.families.bert.model import BertConfig
from tests.advice.following import listed, literal
from tests.advice.settings import LIST, NAME, WORD, Rule, each_of, field, listed_ones, multiples, set_named, setting, value_of

# What a fix says -> what to do; the first that fits.
OF_SEVERAL: MappingProxyType[str, Rule] = MappingProxyType(
    {
        r"^name each head once$": lambda match, error, settings: [setting(settings, error, tuple(dict.fromkeys(settings[field(error)])))],
        r"^give every class a name of its own$": each_of(("good", "bad")),
        r"^name the classes of": lambda match, error, settings: [{**settings, "objective.labels": ("good", "bad")}],
        r"^set it to (\d+) for rows of one text, or to (\d+) or more$": lambda match, error, settings: [
            setting(settings, error, int(match[i])) for i in (1, 2)
        ],
        r"^set it to the number of texts of a row": each_of(2),
        r"^it takes (.+), or a head of your own": lambda match, error, settings: [
            setting(settings, error, (name,)) for name in listed(match[1]) if name in BertConfig.head_names
        ],
        r"^keep one of them$": lambda match, error, settings: [setting(settings, error, (name,)) for name in settings[field(error)]],
        r"^add the one that the model has$": lambda match, error, settings: [
            setting(settings, error, (*settings[field(error)], name))
            for name in listed(re.search(r" without (.+), whose", error.what)[1])
            if name in MODELS[settings.get("model.kind", "bert")].head_names
        ],
        r"^set objective.choices to 0, or leave the head out$": lambda match, error, settings: [
            {**settings, "objective.choices": 0},
            {**settings, "objective.heads": tuple(name for name in settings["objective.heads"] if name not in error.what)},
        ],
        r"^give a number for each head, in the order of objective.heads, or none: \(\)$": lambda match, error, settings: [
            {**settings, field(error): values} for values in ((0.5,) * len(settings.get("objective.heads", ())), ())
        ],
        r"^use finite numbers that are not negative$": each_of((0.5, 0.0)),
        r"^use rates from 0 up to but not including 1$": each_of((0.0, 0.5)),
        r"^set model.attention to causal, or leave the head out$": lambda match, error, settings: [
            {**settings, "model.attention": "causal"},
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
        rf"^use ({LIST})$": listed_ones,
        rf"^objective.kind \w+ needs ({NAME})=(\w+)$": set_named,
        rf"^leave ({NAME}) and ({NAME}) at (\S+)$": lambda match, error, settings: [
            {**settings, match[1]: literal(match[3]), match[2]: literal(match[3])}
        ],
        rf"^set ({NAME}) to ({LIST}), or ({NAME}) to ({LIST})$": lambda match, error, settings: [
            {**settings, match[i]: literal(match[i + 1])} for i in (1, 3)
        ],
        rf"^set ({NAME}) to (\w+), not \w+$": set_named,
        r"^use text with objective.unit=": lambda match, error, settings: [{**settings, "objective.candidates": "text"}],
        r"^make data.reuse a part of data.length, such as (\d+) of (\d+)$": lambda match, error, settings: [
            {**settings, "data.reuse": int(match[1]), "data.length": int(match[2])}
        ],
        r"^use a divisor of both$": lambda match, error, settings: [setting(settings, error, size) for size in (1, 2)],
        rf"^lower ({NAME}), or lengthen data.length and data.reuse$": lambda match, error, settings: [
            {**settings, match[1]: 2 if match[1] == "objective.predictions" else (2,) * len(settings["phases.steps"])},
            {**settings, "data.length": 4 * settings["data.length"], "data.reuse": 4 * settings["data.reuse"]},
        ],
        r"^use (\d+) or more$": lambda match, error, settings: [setting(settings, error, int(match[1]))],
        r"^set them equal$": lambda match, error, settings: [
            {**settings, name: value} for name, other in [re.findall(NAME, error.what)[:2]] for value in [value_of(settings, other)]
        ],
        r"^a pair takes two encoders, such as (\w+)$": listed_ones,
        r"^set it to embeddings, or": lambda match, error, settings: [{**settings, "model.sharing": "embeddings"}],
        r"^make the embeddings equal, or set ({NAME}) to none$".replace("{NAME}", NAME): lambda match, error, settings: [
            {**settings, match[1]: "none"}
        ],
        r"^set objective.kind to one that trains both networks, such as (\w+), or leave the head out$": lambda match, error, settings: [
            {"model.kind": settings["model.kind"], "objective.kind": match[1]},
            {**settings, "objective.heads": tuple(name for name in settings["objective.heads"] if name != "mlm")},
        ],
        r"^make it even$": lambda match, error, settings: [setting(settings, error, 2)],
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
        r"^it takes positive numbers$": lambda match, error, settings: [setting(settings, error, (1.0,) * len(settings[field(error)]))],
        r"^leave out what is beyond (\d+), or lengthen the rows with data.length$": lambda match, error, settings: [
            {**settings, "data.lengths": tuple(one for one in settings["data.lengths"] if one <= int(match[1]))},
        ],
        r"^set train.batch or phases.batch to a multiple of it$": lambda match, error, settings: [
            {**settings, "phases.batch": (value_of(settings, "train.microbatches"),) * len(settings["phases.batch"])}
        ],
        r"^use '(\w+)' or '(\w+)'": lambda match, error, settings: [{**settings, "train.attention": match[i]} for i in (1, 2)],
        r"^set (mesh.\w+) to a divisor of (\d+)$": lambda match, error, settings: [
            {**settings, match[1]: size} for size in range(1, int(match[2]) + 1) if int(match[2]) % size == 0
        ],
        r"^leave one of the two out$": lambda match, error, settings: [
            {key: value for key, value in settings.items() if key != name} for name in re.findall(rf"config\.({NAME})", error.what)
        ],
        r"^leave (\S+) out$": lambda match, error, settings: [{name: value for name, value in settings.items() if name != match[1]}],
        r"^set (\S+\.\S+) to a multiple of it$": lambda match, error, settings: multiples(
            error, settings, match[1], re.findall(NAME, error.what)[1]
        ),
        rf"^set ({NAME}) to ({LIST})(?:,? not \w+)?$": set_named,
        rf"^set ({NAME})=({WORD})$": set_named,
        r"^rows of .* need (\d+) or more": listed_ones,
    }
)
