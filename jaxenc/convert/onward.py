"""The commands that train a converted or resized model further, as a hint to print."""

import dataclasses
import shlex
from pathlib import Path

from jaxenc import tree
from jaxenc.errors import UserError
from jaxenc.families.contract import Encodes
from jaxenc.inference import inputs
from jaxenc.inference.load import Model, objective_of
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.state import parameters


def commands(out: Path, model: Model) -> str:
    """Lines to print: how to train `model`, saved in the run directory `out`, further on one's own text.

    A model whose objective needs more than text, such as a classifier, continues with masked tokens, and one of the objective `features`
    with a new softmax. One with a teacher needs a teacher with the model's new tokenizer.
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
        if not _can_learn_mlm(model):
            return f"next, in Python: jaxenc.load({str(out)!r}).encode([...])"
        kind = " --config.objective.kind=mlm"
    return (
        f"next: jaxenc data --input FILES --tokenizer {tokenizer} --out DATA\n"
        f"      jaxenc pretrain --config {config}{kind} --init-from {run} --config.data.path=DATA --workdir RUN{taught}"
    )


def _learns_from_text(model: Model) -> bool:
    """Whether its objective trains on text alone: the heads of fine-tuned models need labels, or have no loss."""
    return bool(model.objective.coef) and not isinstance(model.config.objective, HeadsConfig)


def _can_learn_mlm(model: Model) -> bool:
    """Whether `mlm` can take every parameter from this model but the head's, which starts fresh. It cannot for one network of a pair with
    separate tables, nor for a model without an encoder."""
    if not isinstance(model.config.model, Encodes):
        return False
    try:
        objective = objective_of(dataclasses.replace(model.config, objective=MlmConfig()), model.tokenizer)
    except UserError:
        return False
    needed = {path for path, _ in tree.leaves(parameters(objective)[0]) if path.split("/")[0] not in objective.heads}
    return needed <= {path for path, _ in tree.leaves(model.params)}
