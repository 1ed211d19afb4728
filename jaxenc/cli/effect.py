"""Settings of the command line that change nothing: what decides in their place is named, and nothing is overruled in silence."""

import importlib.util
import sys
from collections.abc import Sequence

from jaxenc.config import differences, to_dict
from jaxenc.data import manifest as manifests
from jaxenc.errors import UserError
from jaxenc.training.phases import OVERRULES
from jaxenc.training.run import Run


def check(run: Run, overrides: Sequence[str]) -> None:
    """A line on stderr for each field that `overrides` set and that changes nothing in `run`.

    Raises UserError for one in whose place the phases of the recipe have values of their own.
    """
    given = _names(overrides)
    for name, field in {"steps": "train.steps", **OVERRULES}.items():
        values = getattr(run.phases, name)
        if values and field in given:
            raise UserError(f"--config.{field}: phases.{name} is {values} and decides: set --config.phases.{name}=..., one value a phase")
    unused = dict(run.unused)
    if run.log.tensorboard and importlib.util.find_spec("tensorboardX") is None:
        unused["log.tensorboard"] = "tensorboardX is not installed: pip install tensorboardX"
    _say(unused, given)


def check_data(run: Run, overrides: Sequence[str]) -> None:
    """As `check`, for what the data that the run names decides. Raises UserError, which names each field, where `overrides` set a number of
    the model and the data's tokenizer has another. Does nothing where no data is named, or no field is set."""
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
        _say(dict.fromkeys(("eval.every", "eval.batch", "eval.rows"), "the data holds no held-out documents"), given)


def _names(overrides: Sequence[str]) -> list[str]:
    """The dotted paths that are set, each once: the last value of a field counts, as everywhere on a command line."""
    return list(dict.fromkeys(item.removeprefix("--config.").partition("=")[0] for item in overrides))


def _say(unused: dict[str, str], given: Sequence[str]) -> None:
    for name in given:
        if name in unused:
            print(f"warning: --config.{name} changes nothing: {unused[name]}", file=sys.stderr)
