"""A model that was loaded, converted or trained in a loop of one's own, as a new run directory: `Model.save`."""

import pathlib

import numpy as np

from jaxenc import tree
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.checkpoint.verify import CHECKPOINTS
from jaxenc.data.folders import must_be_new
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.files import made
from jaxenc.objectives.base import Objective
from jaxenc.tasks import recipe
from jaxenc.tasks.tuning import FineTune
from jaxenc.training.run import Run, to_json
from jaxenc.training.state import parameters
from jaxenc.tree import Tree


def write_run(
    out: pathlib.Path, config: Run, objective: Objective, params: Tree, tokenizer: Tokenizer | None, tune: FineTune | None
) -> None:
    """Writes a new run directory with the parameters alone: checkpoints/0, config.json and, where they are given, tokenizer/ and task.json.

    objective: that of the config, whose parameters `params` must be. Their vocabulary rows must be padded as `data.vocabulary.padded` says.
    The folder appears complete or not at all. Raises UserError as `Model.save`.
    """
    _check(params, objective, out)
    must_be_new(out, "folder")
    with made(out) as folder:
        files: dict[str, bytes | pathlib.Path] = {"config.json": to_json(config)}
        (folder / "config.json").write_bytes(files["config.json"])
        if tokenizer is not None:
            tokenizer.save(folder / "tokenizer")
            files["tokenizer"] = folder / "tokenizer"
        if tune is not None:
            files[recipe.RECORD] = recipe.to_json(tune)
        with Manager(folder / CHECKPOINTS, CheckpointConfig()) as checkpoints:
            checkpoints.save(0, {"params": params}, files)


def _check(params: Tree, objective: Objective, out: pathlib.Path) -> None:
    """Raises UserError for parameters with other names, shapes or dtypes than the objective's, and for those that are not finite."""
    wanted, given = _kinds(parameters(objective)[0]), _kinds(params)
    what = "the parameters are not those of the config"
    for path in sorted(wanted.keys() | given.keys()):
        if wanted.get(path) != given.get(path):
            differs = f"{what}: {path} is {given.get(path, 'missing')}"
            fix = f"give it as {wanted[path]}" if path in wanted else "leave it out"
            raise UserError(differs, out, fix)
    if bad := next((path for path, leaf in tree.leaves(params) if not np.isfinite(leaf).all()), ""):
        raise UserError(f"the parameter {bad} has a number that is not finite", out, "save the parameters of an earlier step")


def _kinds(params: Tree) -> dict[str, str]:
    """{path: dtype and shape}."""
    return {path: f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in tree.leaves(params)}
