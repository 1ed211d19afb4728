"""Checks of the contract that the tests of every objective call."""

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.data.batch import Batch, empty
from jaxenc.errors import UserError
from jaxenc.families.count import has_vocabulary
from jaxenc.objectives.base import Objective
from jaxenc.training import read
from jaxenc.training.state import parameters


@dataclasses.dataclass(frozen=True)
class Held:
    """One batch, in the place of what `Job.batches` opens."""

    rows: Batch

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.rows)

    def __len__(self) -> int:
        return 1

    def batch_at(self, number: int, slots: slice) -> Batch:
        return {name: array[slots] for name, array in self.rows.items()}


def _reading(objective: Objective, monkeypatch: pytest.MonkeyPatch, field: str, value: int) -> Batch:
    """The batch that training reads if one value of a field is `value`. Out of range, training also compares the files of the data with
    their checksums."""
    rows = empty(objective.reads, 2, 4, objective.fields)
    rows[field].flat[-1] = value
    job = SimpleNamespace(batches=lambda *_: Held(rows), run=SimpleNamespace(data=SimpleNamespace(folders=("data",))))
    verified = []
    monkeypatch.setattr(read, "open_split", lambda path, split, verify: verified.append((path, split, verify)))
    try:
        return read.reader(job, "train", None, 2, objective)[0](0)
    finally:
        assert verified in ([], [("data", "train", True)])


def assert_reads(objective: Objective, bounds: Mapping[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The objective reads the fields of `bounds`, {field: bound, 0 for none}. The largest value of each goes in; the one after it and the
    one below the field's lowest are refused with the field's name."""
    assert dict(objective.reads) == bounds
    for field, bound in bounds.items():
        if not bound:
            continue
        batch = _reading(objective, monkeypatch, field, bound - 1)
        assert batch[field].max() == bound - 1
        known = objective.fields[field]
        below = [known.least - 1] if np.dtype(known.dtype).kind == "i" else []
        for value in (bound, *below):
            with pytest.raises(UserError, match=f"the rows hold {field} from .* to {bound - 1}"):
                _reading(objective, monkeypatch, field, value)


def assert_vocabulary(objective: Objective) -> None:
    """What `resize-vocab` grows and counts leave unpadded are the leaves whose first logical axis is `vocab`."""
    _, names = parameters(objective)
    assert all(("vocab" in axes) == has_vocabulary(path, objective.vocabulary) for path, axes in tree.leaves(names))
    assert all(axes[0] == "vocab" for _, axes in tree.leaves(names) if "vocab" in axes)
