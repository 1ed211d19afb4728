"""The advice about fields of a config, followed: of every field by itself, and of fields that do not fit one another."""

import functools
import re
from typing import Any

import numpy as np
import pytest

from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.objectives import OBJECTIVES
from jaxenc.optim import masks
from jaxenc.sharding import mesh
from tests.advice import settings
from tests.advice.following import follow
from tests.advice.settings import Settings, build, read
from tests.advice.together import OF_SEVERAL
from tests.selection import FULL

advised = functools.partial(settings.advised, more=OF_SEVERAL)

WRONG = {
    bool: (3,),
    int: (-1, 7, 2**40),
    float: (-1.0, 1e30, float("nan")),
    str: ("text",),
    tuple: (3, (-1,), (5, 5)),
}
MORE = {
    bool: ("text",),
    int: (0, 2**31 - 1, 1.5, "text", float("nan"), float("inf")),
    float: (0.0, 2.0, "text", float("inf")),
    str: (3,),
    tuple: (("text",), (0,), (2**40,)),
}
KINDS = [{"objective.kind": kind} for kind in OBJECTIVES] + [{"model.kind": kind} for kind in MODELS]


def fields(base: Settings) -> dict[str, Any]:
    """The fields of the part whose kind is set, and of the parts without kinds with the first."""
    leaves = dict(config.flatten(config.to_dict(read(base))))
    (kind,) = base
    parts = (kind.split(".")[0], *(("data", "train", "phases", "optim", "mesh", "checkpoint", "eval", "log") if base == KINDS[0] else ()))
    return {path: value for path, value in leaves.items() if path.split(".")[0] in parts}


@pytest.mark.parametrize("base", KINDS, ids=lambda base: next(iter(base.values())))
def test_of_every_field(base: Settings) -> None:
    """Each value of WRONG of each field is taken, or refused with advice after which it is taken."""
    leaves, met = fields(base), []
    for path, right in leaves.items():
        for wrong in (*WRONG[type(right)], *(MORE[type(right)] if FULL else ())):
            met += follow(read, {**base, path: wrong}, advised)
    assert len(met) >= len(leaves)


TOGETHER: list[Settings] = [
    {"model.kind": "brt"},
    {"optim.warmpu": 3},
    {"optim.lr": 0.1, "phases.steps": (3, 4), "phases.lr": (0.1, 0.2)},
    {"train.steps": 1, "phases.steps": (3, 4)},
    {"optim.l": 3},
    {"optim.nothing_alike": 3},
    {"data.path": "a", "data.mixture": ("b",)},
    {"data.mixture": ("a", "b", "a")},
    {"data.mixture": ("a", "b"), "data.weights": (1.0,)},
    {"data.mixture": ("a", "b"), "data.weights": (0.0, 0.0)},
    {"data.mixture": ("a", "b"), "data.rows": "streams"},
    {"data.mixture": ("a", "b"), "data.rows": "bucketed"},
    {"data.rows": "bucketed", "data.lengths": (64, 128, 256)},
    {"data.rows": "bucketed", "data.lengths": (64,)},
    {"data.rows": "bucketed", "data.lengths": (64, 128), "phases.steps": (1,), "phases.length": (64,)},
    {"data.rows": "streams"},
    {"data.rows": "streams", "data.reuse": 128},
    {"data.rows": "streams", "data.reuse": 64, "train.batch": 3},
    {"data.rows": "sentences", "data.length": 0},
    {"data.rows": "streams", "data.reuse": 64, "phases.steps": (2, 3), "phases.batch": (2, 3)},
    {"train.microbatches": 3},
    {"train.microbatches": 2, "phases.steps": (1,), "phases.batch": (3,)},
    {"phases.steps": (1, 2), "phases.length": (2,)},
    {"model.kind": "pair", "data.length": 1024, "objective.kind": "rtd"},
    {"model.kind": "pair", "model.generator.kind": "elmo", "objective.kind": "rtd"},
    {"objective.kind": "causal"},
    {"objective.kind": "causal", "model.kind": "elmo"},
    {"objective.kind": "causal", "model.kind": "pair"},
    {"objective.kind": "rtd"},
    {"objective.kind": "rtd", "model.kind": "electra", "objective.with_replacement": True, "objective.unit": "words"},
    {"objective.kind": "rtd", "model.kind": "electra", "objective.with_replacement": True, "objective.random_share": 0.1,
     "objective.mask_share": 0.9},
    {"objective.kind": "rtd", "model.kind": "electra", "objective.generator": "uniform", "objective.temperature": 2.0},
    {"objective.kind": "rtd", "model.kind": "pair", "model.generator.spare_rows": 8},
    {"objective.kind": "rtd", "model.kind": "pair", "model.sharing": "embeddings"},
    {"objective.kind": "mlm", "model.kind": "elmo"},
    {"objective.kind": "mlm", "model.kind": "pair"},
    {"objective.kind": "plm"},
    {"objective.kind": "bilm"},
    {"objective.kind": "plm", "model.kind": "xlnet"},
    {"objective.kind": "plm", "model.kind": "xlnet", "data.rows": "streams", "data.length": 512, "data.reuse": 250},
    {"objective.kind": "plm", "model.kind": "xlnet", "data.rows": "streams", "data.length": 64, "data.reuse": 32,
     "objective.permutation": 32},
    {"objective.kind": "plm", "model.kind": "xlnet", "data.rows": "streams", "data.length": 64, "data.reuse": 32,
     "objective.permutation": 32, "phases.steps": (1,), "phases.max_predictions": (85,)},
    {"objective.kind": "plm", "model.kind": "xlnet", "data.rows": "streams", "data.length": 512, "data.reuse": 256,
     "phases.steps": (1,), "phases.max_predictions": (1,)},
    {"objective.kind": "plm", "objective.memory": 2**31 - 1},
    {"objective.kind": "mlm", "objective.unit": "words", "objective.candidates": "all"},
    {"objective.kind": "causal", "model.kind": "gpt", "model.attention": "full"},
    {"objective.kind": "mlm", "model.kind": "gpt"},
    {"objective.kind": "sentence_order", "data.rows": "swapped_pairs"},
    {"objective.kind": "pair", "model.attention": "causal", "data.rows": "pairs"},
    *({"objective.kind": "heads", **rest} for rest in (
        {"objective.heads": ("next",)},
        {"objective.heads": ("mlm", "mlm")},
        {"objective.labels": ("a", "a")},
        {"objective.choices": 1},
        {"objective.heads": ("pooler", "summary")},
        {"objective.heads": ("classifier",), "objective.labels": ("a", "b")},
        {"objective.heads": ("pooler", "classifier")},
        {"objective.heads": ("pooler", "choice")},
        {"objective.heads": ("pooler", "mlm", "classifier"), "objective.choices": 2},
        {"objective.heads": ("mlm", "pooler"), "model.attention": "causal"},
        {"objective.heads": ("mlm", "next_token")},
        {"objective.heads": ("pooler", "regressor"), "objective.weights": (1.0,)},
        {"objective.heads": ("pooler", "regressor"), "objective.weights": (1.0, -1.0)},
        {"objective.heads": ("pooler", "regressor"), "objective.dropout": (0.1,)},
        {"objective.heads": ("pooler", "regressor"), "objective.dropout": (0.1, 1.0)},
        {"objective.heads": ("mlm", "rtd"), "model.kind": "electra"},
        {"objective.heads": ("mlm",), "model.kind": "electra", "model.sharing": "none"},
        {"objective.heads": ("mlm",), "model.kind": "pair"},
    )),
    {"train.attention": "cudnn"},
    {"train.attention": "cudnn", "model.kind": "xlnet", "objective.kind": "heads"},
    {"train.attention": "cudnn", "data.rows": "packed"},
    {"train.attention": "pallas"},
    {"train.precision": "half"},
]  # fmt: skip


@pytest.mark.parametrize("fault", TOGETHER, ids=lambda fault: ",".join(f"{name}={value}" for name, value in fault.items()))
def test_of_fields_together(fault: Settings) -> None:
    assert follow(build, fault, advised)


@pytest.mark.parametrize(
    "fault",
    [
        {"mesh.preset": "tp"},
        {"mesh.tensor": 2},
        {"mesh.preset": "fsdp_tp", "mesh.tensor": 3},
        {"mesh.preset": "fsdp_tp", "mesh.fsdp": 3},
    ],
    ids=str,
)
def test_of_meshes(fault: Settings) -> None:
    assert follow(lambda settings: mesh.sizes(read(settings).mesh, 8), fault, advised)


PARAMS = {"embeddings": {"table": np.zeros(2)}, "pooler": {"bias": np.zeros(2)}}


def masked(settings: Settings) -> None:
    """What `optim.freeze` and `optim.rates` select of two parameters."""
    optim = read(settings).optim
    masks.trained(optim.freeze, PARAMS)
    masks.factors(optim.rates, PARAMS)


def other_patterns(error: UserError, settings: Settings) -> list[Settings]:
    """The patterns with the wrong one dropped or fixed."""
    name = "optim.freeze" if "freeze" in str(error) else "optim.rates"
    wrong = re.search(r"(?:^|matches )'([^']+)'", error.what)
    kept = tuple(item for item in settings[name] if wrong and wrong[1] not in item)
    factors = re.search(r"from (\S+) to (\S+), as in (.+)=(\S+)$", error.fix)
    if factors:
        return [{**settings, name: (*kept, f"{factors[3]}={factors[i]}")} for i in (1, 2, 4)]
    fixed = "pooler/.*" if name == "optim.freeze" else "pooler/.*=0.5"
    return [{**settings, name: kept}, {**settings, name: (fixed,)}] if "pattern" in error.fix else []


@pytest.mark.parametrize(
    "fault",
    [
        {"optim.freeze": ("embeddings/.*", "pooler/.*")},
        {"optim.freeze": ("zebra",)},
        {"optim.freeze": ("(",)},
        {"optim.rates": ("zebra=0.1",)},
        {"optim.rates": ("(=0.1",)},
        {"optim.rates": ("embeddings/.*",)},
        {"optim.rates": ("embeddings/.*=-1",)},
    ],
    ids=str,
)
def test_of_patterns(fault: Settings) -> None:
    assert follow(masked, fault, other_patterns)
