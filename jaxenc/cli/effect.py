"""Settings of the command line that have no effect: the user is told of each and of what decides instead."""

import importlib.util
import sys
from collections.abc import Sequence

from jaxenc.config import differences, to_dict
from jaxenc.data import manifest as manifests
from jaxenc.errors import UserError
from jaxenc.training.phases import OVERRULES
from jaxenc.training.run import Run


def check(run: Run, overrides: Sequence[str]) -> None:
    """Warns on stderr of each field that `overrides` sets without an effect on `run`.

    Raises UserError for a field whose value the phases of the recipe replace by their own.
    """
    given = _names(overrides)
    for name, field in {"steps": "train.steps", **OVERRULES}.items():
        values = getattr(run.phases, name)
        if values and field in given:
            raise UserError(f"--config.{field}: phases.{name} is {values} and decides: set --config.phases.{name}=..., one value a phase")
    unused = dict(run.unused)
    if run.log.tensorboard and importlib.util.find_spec("tensorboardX") is None:
        unused["log.tensorboard"] = "tensorboardX is not installed: pip install tensorboardX"
    _warn(unused, given)


def check_data(run: Run, overrides: Sequence[str]) -> None:
    """As `check`, for the fields that the run's data decides; reads its manifest. Does nothing where no data is named or no field is set.

    Raises UserError, naming each field, where `overrides` sets a number of the model and the data's tokenizer has another."""
    if not (run.data.path and overrides):
        return
    given, manifest = _names(overrides), manifests.read(run.data.path)
    changed = differences(to_dict(run), to_dict(run.with_vocabulary(manifest.tokenizer)))
    parts = [
        f"--config.{path} is {ours} and the tokenizer of the data makes it {theirs}" for path, ours, theirs in changed if path in given
    ]
    if parts:
        raise UserError(f"data {run.data.path}: {'; '.join(parts)}: leave it out, or build the data with another tokenizer")
    if not manifest.splits["held_out"].tokens:
        _warn(dict.fromkeys(("eval.every", "eval.batch", "eval.rows"), "the data holds no held-out documents"), given)


def _names(overrides: Sequence[str]) -> list[str]:
    """The dotted paths that are set, each once."""
    return list(dict.fromkeys(item.removeprefix("--config.").partition("=")[0] for item in overrides))


def _warn(unused: dict[str, str], given: Sequence[str]) -> None:
    for name in given:
        if name in unused:
            print(f"warning: --config.{name} has no effect: {unused[name]}", file=sys.stderr)
