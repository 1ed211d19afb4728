"""PyTorch's own files of tensors, pytorch_model.bin, through torch and never otherwise: they are pickles."""

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.errors import UserError
from jaxenc.files import user_errors
from jaxenc.formats.safetensors import NAMED
from jaxenc.formats.tensor import ADVICE, BFLOAT16, Tensor

RENEWED = 1 << 28  # bytes read from a mapping until it is made anew


def open_tensors(path: Path) -> dict[str, Tensor]:
    """{name: Tensor} of a file that torch.save wrote: tensors by name and nothing else, without running anything that is in it.

    Raises UserError where torch is not installed, does not accept the file as weights, or finds anything but tensors in it.
    """
    file = _File(path)
    return {name: file.tensor(name, value) for name, value in file.values.items()}


class _File:
    """Owner of the tensors that torch maps. Pages once read stay in memory as long as the mapping, so it is renewed now and then.

    A file from before 2020 cannot be mapped and is held whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with user_errors(path, ADVICE):
            self._mapped = zipfile.is_zipfile(path)
        self._read = 0
        self.values = self._load()

    def _load(self) -> Mapping[str, Any]:
        try:
            import torch
        except ImportError as error:
            raise UserError(f"{self._path}: needs torch to be opened: install it, or save the model as safetensors") from error
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = torch.load(self._path, map_location="cpu", weights_only=True, mmap=self._mapped)
        except Exception as error:
            why = type(error).__name__
            raise UserError(f"{self._path}: torch does not open it as weights ({why}): save it as safetensors") from error
        if not isinstance(found, Mapping):
            raise UserError(f"{self._path}: holds {type(found).__name__} and not tensors by name: save it as safetensors")
        for name, value in found.items():
            plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu"
            if not isinstance(name, str) or not plain:
                raise UserError(f"{self._path}: {name} is no plain tensor: save the model as safetensors")
        return found

    def tensor(self, name: str, value: Any) -> Tensor:
        """The entry of one tensor, which does not hold on to its values."""
        code = str(value.dtype).removeprefix("torch.")
        if code not in NAMED:
            raise UserError(f"{self._path}: the tensor {name} is {code}, which is not supported: save it as float32")
        return Tensor(name, tuple(value.shape), NAMED[code], lambda: self._array(name, NAMED[code]))

    def _array(self, name: str, dtype: np.dtype) -> np.ndarray:
        if self._mapped and self._read > RENEWED:
            self.values, self._read = {}, 0
            self.values = self._load()
        value = self.values[name].detach()
        self._read += value.nbytes
        # NumPy knows bfloat16 only through its bits.
        if dtype == BFLOAT16:
            import torch

            value = value.view(torch.int16)
        return np.array(value.numpy().view(dtype))
