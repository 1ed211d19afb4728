"""Checkpoints of torch whose weights are sound and whose other entries would run something, were they unpickled."""

from pathlib import Path

import pytest
import torch

from jaxenc.errors import UserError
from jaxenc.formats import pytorch
from tests.safety.test_pickles import Trap


class Call:
    """Unpickling it evaluates a text."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return eval, (f"open({str(self.mark)!r}, 'w').close()",)


class Hook:
    """An object of a class of one's own, whose state is a trap."""

    def __init__(self, mark: Path) -> None:
        self.call = Call(mark)


def save(path: Path, beside: object, new: bool) -> None:
    torch.save({"model": {"weight": torch.arange(3.0)}, "beside": [beside]}, path, _use_new_zipfile_serialization=new)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("trap", [Call, Hook])
def test_the_weights_are_read_and_nothing_is_run(trap: type, new: bool, tmp_path: Path) -> None:
    mark, path = tmp_path / "ran", tmp_path / "model.pt"
    save(path, trap(mark), new)
    tensors, others = pytorch.open_checkpoint(path)
    assert tensors["weight"].read().tolist() == [0, 1, 2] and others.keys() == {"beside"}
    assert not mark.exists()
    # The trap is one: with everything allowed, it springs.
    torch.load(path, weights_only=False)
    assert mark.exists()


@pytest.mark.parametrize("new", [True, False])
def test_what_calls_the_result_of_a_call_is_refused(new: bool, tmp_path: Path) -> None:
    mark, path = tmp_path / "ran", tmp_path / "model.pt"
    save(path, Trap(mark), new)
    with pytest.raises(UserError, match="torch does not open it as weights"):
        pytorch.open_checkpoint(path)
    assert not mark.exists()
