"""The commands that train a converted or resized model further, as a hint to print."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.families.contract import Encodes
from jaxenc.inference import inputs
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.training.state import parameters

# The objectives that train any model on text alone, the most general first.
NEXT = (MlmConfig(), CausalConfig(), PlmConfig())


def commands(out: Path, model: Model) -> str:
    """Lines to print: how to train `model`, saved in the run directory `out`, further on one's own text.

    A model whose objective needs more than text, such as a classifier, continues with the first of NEXT that it has the parameters for, and
    one of the objective `features` with a new softmax. One with a teacher needs a teacher with the model's new tokenizer.
    """
    if model.tokenizer is None:
        given = inputs.without_tokenizer(model.config.model)
        return f"next, in Python: jaxenc.load({str(out)!r}).encode({given}); training it further needs a tokenizer"
    run, tokenizer, config = (shlex.quote(str(path)) for path in (out, out / "tokenizer", out / "config.json"))
    kind = taught = ""
    if model.config.objective.has_teacher:
        kind = " --config.objective.teacher=TEACHER"
        taught = "\n      where TEACHER is the teacher of before with the same pieces: `jaxenc resize-vocab` adds them to it too"
    elif isinstance(model.config.objective, FeaturesConfig):
        kind = " --config.objective.kind=bilm"
    elif not _learns_from_text(model):
        objective = next((one for one in NEXT if _can_learn(model, one)), None)
        if objective is None:
            return f"next, in Python: jaxenc.load({str(out)!r}).encode([...])"
        kind = "".join(f" --config.{item}" for item in _fields(model, objective))
    return (
        f"next: jaxenc data --input FILES --tokenizer {tokenizer} --out DATA\n"
        f"      jaxenc pretrain --config {config}{kind} --init-from {run} --config.data.path=DATA --workdir RUN{taught}"
    )


def _learns_from_text(model: Model) -> bool:
    """Whether its objective trains on text alone: the heads of fine-tuned models need labels, or have no loss."""
    return bool(model.objective.coef) and not isinstance(model.config.objective, HeadsConfig)


def _can_learn(model: Model, config: ObjectiveConfig) -> bool:
    """Whether an objective can take every parameter from this model but the heads', which start fresh. `mlm` cannot for one network of a
    pair with separate tables, and nothing for a model without an encoder."""
    if not isinstance(model.config.model, Encodes):
        return False
    data = dataclasses.replace(model.config.data, **_rows(model, config))
    try:
        objective = objective_of(dataclasses.replace(model.config, objective=config, data=data), model.tokenizer)
    except UserError:
        return False
    needed = {path for path, _ in tree.leaves(parameters(objective)[0]) if path.split("/")[0] not in objective.heads}
    return needed <= {path for path, _ in tree.leaves(model.params)}


def _rows(model: Model, config: ObjectiveConfig) -> dict[str, Any]:
    """{field: value} of `data` where an objective needs other rows than the model's run has."""
    rows = config.rows
    return {} if rows.rows == model.config.data.rows else {name: getattr(rows, name) for name in ("rows", "length", "reuse")}


def _fields(model: Model, config: ObjectiveConfig) -> list[str]:
    """`path=value` of the fields that make the model's run one of this objective, with its rows."""
    return [f"objective.kind={config.kind}", *(f"data.{name}={value}" for name, value in _rows(model, config).items())]
