"""Datasets that Hugging Face's `datasets` saved with `save_to_disk`, read without that package."""

import os
from pathlib import Path

from jaxenc.errors import UserError
from jaxenc.files import inside, read_json

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_ADVICE = "save the data set again with save_to_disk"


def is_saved(name: str) -> bool:
    """Whether `name` is DIR or DIR:SPLIT of a saved data set; SPLIT may be one that it does not have."""
    folder, _ = _parts(name)
    return any(os.path.isfile(os.path.join(folder, file)) for file in (_SPLITS, _STATE))


def files(name: str) -> list[str]:
    """Its Arrow files, in order. A dataset with one split needs no SPLIT. Raises UserError for a missing split or file, and for rows that
    are selected by a list of indices."""
    folder, split = _parts(name)
    if os.path.isfile(os.path.join(folder, _SPLITS)):
        splits = read_json(Path(folder, _SPLITS), _ADVICE).get("splits")
        if not isinstance(splits, list) or not splits:
            raise UserError("names no split", f"{folder}/{_SPLITS}", _ADVICE)
        known = [split for split in splits if isinstance(split, str) and inside(split)]
        if (not split and len(known) > 1) or (split and split not in known):
            wrong = f"has no split {split}" if split else "has several splits"
            raise UserError(wrong, folder, f"name one: {', '.join(f'{folder}:{split}' for split in known)}")
        folder = os.path.join(folder, split or known[0])
    elif split:
        raise UserError(f"was saved without splits, so it has no {split}", folder, f"name it without one: {folder}")
    state = read_json(Path(folder, _STATE), _ADVICE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise UserError("its rows are chosen by a list of indices", folder, f"{_ADVICE}, after flatten_indices()")
    names = [entry.get("filename") for entry in state.get("_data_files") or () if isinstance(entry, dict)]
    if not names or not all(isinstance(file, str) and inside(file) for file in names):
        raise UserError("names no files", f"{folder}/{_STATE}", _ADVICE)
    paths = [os.path.join(folder, file) for file in names]
    if missing := [path for path in paths if not os.path.isfile(path)]:
        raise UserError(f"no such file, though {_STATE} names it", missing[0], _ADVICE)
    return paths


def _parts(name: str) -> tuple[str, str]:
    """(folder, split); a folder may have a colon in its own name."""
    folder, mark, split = name.rpartition(":")
    return (folder, split) if mark and not os.path.isdir(name) else (name.rstrip("/") or name, "")
