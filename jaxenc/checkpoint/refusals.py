"""What may differ between a checkpoint and the run that restores it: everything else is named and refused."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from jaxenc.config import differences
from jaxenc.errors import UserError

MAY_CHANGE = ("mesh.*", "train.microbatches", "checkpoint.*", "eval.*", "log.*")


def changed_fields(saved: Mapping[str, Any], config: Mapping[str, Any], may_change: Sequence[str] = MAY_CHANGE) -> list[str]:
    """The dotted paths that differ and that no pattern of `may_change` covers; a '*' stands for any rest.

    A caller whose schedule does not use `train.steps` adds that name to MAY_CHANGE.
    """
    return [path for path, _, _ in _refused(saved, config, may_change)]


def refuse(saved: Mapping[str, Any], config: Mapping[str, Any], may_change: Sequence[str] = MAY_CHANGE) -> None:
    """Raises UserError that names each field of `changed_fields` with both values."""
    parts = [f"checkpoint {path} {_shown(old)}, this run's {_shown(new)}" for path, old, new in _refused(saved, config, may_change)]
    if parts:
        raise UserError(f"{'; '.join(parts)}: set them back, or start in a new work directory with --init-from")


def _refused(saved: Mapping[str, Any], config: Mapping[str, Any], may_change: Sequence[str]) -> list[tuple[str, Any, Any]]:
    return [item for item in differences(saved, config) if not any(fnmatch.fnmatchcase(item[0], pattern) for pattern in may_change)]


def _shown(value: Any) -> str:
    return "(not set)" if value == "" else str(value)
