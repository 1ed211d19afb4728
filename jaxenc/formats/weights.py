"""The weights of a transformers folder, whatever files they are in: one of safetensors or PyTorch, or an index and its shards."""

import os
from collections.abc import Callable
from pathlib import Path

from jaxenc.errors import UserError
from jaxenc.files import read_json, user_errors
from jaxenc.formats import pytorch, safetensors
from jaxenc.formats.tensor import ADVICE, AGAIN, Tensor, refuse_pointer


def open_tensors(folder: Path) -> dict[str, Tensor]:
    """{name: Tensor} of a transformers folder: the first that is there of model.safetensors, its index, pytorch_model.bin, its index.

    Reads headers only. Raises UserError, naming the file or the tensor, for a file that is truncated or lies about itself.
    """
    for name, opened in (("model.safetensors", safetensors.open_tensors), ("pytorch_model.bin", pytorch.open_tensors)):
        if (folder / name).exists():
            return opened(folder / name)
        if (folder / f"{name}.index.json").exists():
            return _sharded(folder / f"{name}.index.json", opened)
    raise UserError("no model.safetensors and no pytorch_model.bin here", folder, ADVICE)


def _sharded(index: Path, opened: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    with user_errors(index, AGAIN):
        refuse_pointer(index)
    table = read_json(index, AGAIN).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(file, str) and Path(file).name == file for file in table.values()):
        raise UserError("holds no weight_map of tensors to files beside it", index, AGAIN)
    out: dict[str, Tensor] = {}
    for file in dict.fromkeys(table.values()):
        shard = index.parent / file
        # Path.is_file raises for a name that is too long (before Python 3.12).
        if not os.path.isfile(shard):
            raise UserError(f"missing, and {index.name} names it", shard, AGAIN)
        found, listed = opened(shard), {name for name, place in table.items() if place == file}
        for name in listed ^ found.keys():
            one, other = (index.name, shard) if name in listed else (shard, index.name)
            raise UserError(f"the tensor {name} is in {one} and not in {other}", index, AGAIN)
        out |= found
    return out
