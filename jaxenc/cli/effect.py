"""Warnings about overrides of the command line: fields without effect, and recipe values that a new kind replaces."""

import functools
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc.config import differences, to_dict
from jaxenc.data import mixture
from jaxenc.errors import UserError
from jaxenc.training.run import Run


def check(recipe: Run, run: Run, overrides: Sequence[str]) -> None:
    """Warns on stderr about each field in `overrides` that has no effect on `run`, and about each changed kind, with the values of `recipe`
    that the new kind's defaults replace."""
    given = _names(overrides)
    _warn_of_kinds(to_dict(recipe), to_dict(run), given)
    unused = dict(run.unused)
    if run.log.tensorboard and importlib.util.find_spec("tensorboardX") is None:
        unused["log.tensorboard"] = "tensorboardX is not installed: pip install tensorboardX"
    _warn(unused, given)


def check_data(run: Run, overrides: Sequence[str]) -> None:
    """As `check`, for fields that depend on the run's data; reads its manifests. Does nothing without data or without overrides.

    Raises UserError, naming each field, where `overrides` sets a field of the model that the data's tokenizer sets to another value.
    """
    if not (run.data.folders and overrides):
        return
    given, manifests = _names(overrides), mixture.manifests(run.data)
    changed = differences(to_dict(run), to_dict(run.with_vocabulary(manifests[0].tokenizer)))
    parts = [
        f"--config.{path} is {ours} and the tokenizer of the data makes it {theirs}" for path, ours, theirs in changed if path in given
    ]
    if parts:
        raise UserError("; ".join(parts), f"data {run.data.named}", "leave it out, or build the data with another tokenizer")
    if not any(manifest.splits["held_out"].tokens for manifest in manifests):
        _warn(dict.fromkeys(("eval.every", "eval.batch", "eval.rows"), "the data holds no held-out documents"), given)


def check_evaluation(overrides: Sequence[str]) -> None:
    """As `check`, for the evaluation of a checkpoint."""
    given = _names(overrides)
    read = lambda path: path.startswith("mesh.") or path in ("eval.batch", "eval.rows")
    _warn({path: "an evaluation does not read it" for path in given if not read(path)}, given)


def _names(overrides: Sequence[str]) -> list[str]:
    """The dotted paths of the overrides, each once."""
    return list(dict.fromkeys(item.removeprefix("--config.").partition("=")[0] for item in overrides))


def _warn_of_kinds(recipe: Mapping[str, Any], run: Mapping[str, Any], given: Sequence[str]) -> None:
    for part in (path.removesuffix(".kind") for path in given if path.endswith(".kind")):
        before, after = _at(recipe, part), _at(run, part)
        # The tokenizer of the data decides vocab_size, whatever the kind.
        free = [name for name in after if name not in ("kind", "vocab_size") and f"{part}.{name}" not in given]
        lost = [f"{name} {after[name]} (not {before[name]})" for name in free if before.get(name, after[name]) != after[name]]
        if lost and before.get("kind") != after["kind"]:
            print(f"warning: --config.{part}.kind={after['kind']} starts from its own defaults: {', '.join(lost)}", file=sys.stderr)


def _at(whole: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """The branch at a dotted path, {} where there is none."""
    return functools.reduce(lambda branch, name: branch.get(name, {}), part.split("."), whole)


def _warn(unused: dict[str, str], given: Sequence[str]) -> None:
    for name in given:
        if name in unused:
            print(f"warning: --config.{name} has no effect: {unused[name]}", file=sys.stderr)
