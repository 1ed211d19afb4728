"""PyTorch's own files of tensors, pytorch_model.bin, through torch and never otherwise: they are pickles."""

import functools
import operator
import sys
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.formats import pickled
from jaxenc.formats.safetensors import NAMED
from jaxenc.formats.tensor import ADVICE, BFLOAT16, Tensor, refuse_pointer

# Under which a checkpoint of a training loop may hold the weights, the first that is there: torch's own examples, Lightning, fairseq and
# others, DeepSpeed.
WRAPPERS = ("model_state_dict", "state_dict", "model", "module", "model_state", "net", "weights")
SAVE = "save the state dict of the model alone: torch.save(model.state_dict(), PATH)"
RENEWED = 1 << 28  # bytes read from a mapping until it is made anew


def open_tensors(path: Path) -> dict[str, Tensor]:
    """{name: Tensor} of a file that torch.save wrote, without running anything that is in it.

    Of a checkpoint that holds more than tensors by name, the weights are read: the entry of WRAPPERS, or the only one that holds tensors
    and nothing else, also where it is an entry of another one of WRAPPERS; a line on stderr says which. Raises UserError where torch is not
    installed, does not accept the file as weights, or does not find such an entry.
    """
    file = _File(path)
    if file.entry:
        entry = "/".join(file.entry)
        print(f"convert: {path}: a checkpoint of a training run: its weights are read from {entry!r}", file=sys.stderr)
    return file.tensors()


def open_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """({name: Tensor} of the weights in a checkpoint, its other entries as `pickled.plain` gives them). Raises UserError as
    `open_tensors`."""
    file = _File(path)
    return file.tensors(), file.others


class _File:
    """Owner of the tensors that torch maps. Pages once read stay in memory as long as the mapping, so it is renewed now and then.

    A file from before 2020 cannot be mapped and is held whole. entry: of the file, under which the weights are, and of that entry where
    they are wrapped twice, () for all of it; others: the file's other entries.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with user_errors(path, ADVICE):
            refuse_pointer(path)
            self._mapped = zipfile.is_zipfile(path)
        self._read = 0
        found = self._load()
        self.entry = self._entry(found)
        self.values: Mapping[str, Any] = functools.reduce(operator.getitem, self.entry, found)
        self.others = {str(name): pickled.plain(value) for name, value in found.items() if name != self.entry[0]} if self.entry else {}

    def _load(self) -> Mapping[str, Any]:
        try:
            import torch
        except ImportError as error:
            raise UserError("needs torch to be opened", self._path, "pip install torch, or save the model as safetensors") from error
        try:
            with warnings.catch_warnings(), pickled.not_run(self._path):
                warnings.simplefilter("ignore")
                found = torch.load(self._path, map_location="cpu", weights_only=True, mmap=self._mapped)
        except Exception as error:
            why = type(error).__name__
            raise UserError(f"torch does not open it as weights ({why})", self._path, "save it as safetensors") from error
        if not isinstance(found, Mapping):
            raise UserError(f"holds a {type(found).__name__} and not tensors by name", self._path, SAVE)
        return found

    def _entry(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """The path of entries that leads to the weights in `found`, () where it holds nothing but tensors by name."""
        wrong = next((name for name, value in found.items() if not isinstance(name, str) or not _is_plain(value)), None)
        if wrong is None:
            return ()
        weights = [name for name, value in found.items() if isinstance(value, Mapping) and value and all(map(_is_plain, value.values()))]
        known = [name for name in WRAPPERS if name in weights] or weights
        outer = next((name for name in WRAPPERS if isinstance(found.get(name), Mapping)), None)
        if not weights and outer:
            return (outer, *self._entry(found[outer]))
        if not known or (len(known) > 1 and known[0] not in WRAPPERS):
            holds = f"of which {' and '.join(map(str, weights))} hold tensors" if weights else f"and {wrong} is not a plain tensor"
            what = f"holds {len(found)} entries, {holds}"
            raise UserError(what, self._path, SAVE)
        return (known[0],)

    def tensors(self) -> dict[str, Tensor]:
        """{name: Tensor} of the weights."""
        return {name: self._tensor(name, value) for name, value in self.values.items()}

    def _tensor(self, name: str, value: Any) -> Tensor:
        """The entry of one tensor, which does not hold on to its values."""
        code = str(value.dtype).removeprefix("torch.")
        if code not in NAMED:
            raise UserError(f"the tensor {name} is {code}, which is not supported", self._path, "save it as float32")
        return Tensor(name, tuple(value.shape), NAMED[code], lambda: self._array(name, NAMED[code]))

    def _array(self, name: str, dtype: np.dtype) -> np.ndarray:
        if self._mapped and self._read > RENEWED:
            self.values, self._read = {}, 0
            found = self._load()
            self.values = functools.reduce(operator.getitem, self.entry, found)
        value = self.values[name].detach()
        self._read += value.nbytes
        # NumPy knows bfloat16 only through its bits.
        if dtype == BFLOAT16:
            import torch

            value = value.view(torch.int16)
        return np.array(value.numpy().view(dtype))


def _is_plain(value: Any) -> bool:
    """Whether it is a dense tensor whose values are in the file."""
    import torch

    return isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu"
