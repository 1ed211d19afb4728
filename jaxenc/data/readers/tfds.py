"""Datasets that tensorflow_datasets prepared as ArrayRecord, read without TensorFlow and without the network."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxenc.data.readers.document import Counts, Document, Reading, documents_of
from jaxenc.data.readers.fields import text_of
from jaxenc.errors import UserError

PREFIX = "tfds:"
BATCH = 256  # examples that are read at once
_NAME = re.compile(r"tfds:(?P<name>[\w/.-]+)(:(?P<version>\d+\.\d+\.\d+))?(:(?P<split>\w+(\[[^\]]*\])?(\+\w+(\[[^\]]*\])?)*))?")


def examples(name: str, folder: str = "") -> Iterator[dict[str, Any]]:
    """The examples of tfds:NAME[/CONFIG][:VERSION][:SPLIT], in order: {feature: value}.

    A text is a str and a label its name; numbers and arrays are of NumPy. Sequences of texts or labels are lists, and features inside of
    another one are in a dict. folder: where tensorflow_datasets keeps prepared data; "" for its own default (TFDS_DATA_DIR, or
    ~/tensorflow_datasets). Raises UserError for a dataset that is missing or not prepared as ArrayRecord, with what to do.
    """
    builder, split = _opened(name, folder)
    features = builder.info.features
    try:
        rows = builder.as_data_source(split=split)
    except NotImplementedError as error:
        kind = getattr(builder.info.file_format, "value", "another format")
        raise UserError(f"is prepared as {kind}, which only TensorFlow reads", name, _prepare(name, folder)) from error
    for start in range(0, len(rows), BATCH):
        for row in rows.__getitems__(list(range(start, min(start + BATCH, len(rows))))):
            yield _value(row, features)


def documents(name: str, folder: str, reading: Reading, counts: Counts) -> Iterator[Document]:
    """A document for each example: the feature that `reading.field` names. The source of each is `name` and its number, from 1."""
    for number, example in enumerate(examples(name, folder), 1):
        where = f"{name}:{number}"
        yield from documents_of(text_of(example, reading.field, where, counts), where, counts)


def size(name: str, folder: str) -> int:
    """Bytes of the split. Raises UserError as `examples`."""
    builder, split = _opened(name, folder)
    return int(builder.info.splits[split].num_bytes)


def identity(name: str, folder: str) -> str:
    """sha256 of the dataset's full name and version, the split, its number of examples, and the names and sizes of its files."""
    builder, split = _opened(name, folder)
    info = builder.info.splits[split]
    files = [[path.name, path.stat().length] for path in map(_path, info.filepaths)]
    return hashlib.sha256(json.dumps([builder.info.full_name, split, info.num_examples, files]).encode()).hexdigest()


def _path(path: Any) -> Any:
    from etils import epath

    return epath.Path(path)


def _opened(name: str, folder: str) -> tuple[Any, str]:
    """(builder of the prepared files, split). It does not need the code of the dataset."""
    parts = _NAME.fullmatch(name)
    if not parts:
        raise UserError("not tfds:NAME[/CONFIG][:VERSION][:SPLIT]", name, "write it so, as in tfds:wikipedia/20230601.en:train")
    try:
        import tensorflow_datasets
        from tensorflow_datasets.core import read_only_builder, registered
    except ImportError as error:
        raise UserError(f"needs tensorflow-datasets (no {error.name})", name, "install it with `pip install 'jaxenc[data]'`") from error
    title, _, config = parts["name"].partition("/")
    wanted = {"config": config or None, "version": parts["version"], "data_dir": folder or None}
    try:
        builder = read_only_builder.builder_from_files(title, **{key: value for key, value in wanted.items() if value})
    except (registered.DatasetNotFoundError, FileNotFoundError, ValueError) as error:
        place = folder or str(tensorflow_datasets.core.constants.DATA_DIR)
        raise UserError(f"is not prepared in {place}", name, f"name another folder with --tfds-dir, or {_prepare(name, folder)}") from error
    split = parts["split"] or "train"
    known = list(builder.info.splits)
    if unknown := [part for part in re.findall(r"(?:^|\+)(\w+)", split) if part not in known]:
        raise UserError(f"has no split {unknown[0]}, but {', '.join(known)}", name, "name one after a colon")
    return builder, split


def _prepare(name: str, folder: str) -> str:
    parts = _NAME.fullmatch(name)
    title = parts["name"] + (f":{parts['version']}" if parts["version"] else "")
    place = f", data_dir={folder!r}" if folder else ""
    call = f"tensorflow_datasets.builder({title!r}, file_format='array_record'{place}).download_and_prepare()"
    return f"prepare it in Python: {call}; import a builder of your own before"


def _value(value: Any, feature: Any) -> Any:
    """A value with str for bytes and the names of labels."""
    if isinstance(value, dict):
        inner = getattr(feature, "feature", feature)
        return {key: _value(part, inner[key]) for key, part in value.items()}
    feature = getattr(feature, "feature", feature)
    if hasattr(feature, "int2str") and np.ndim(value) == 0:
        return feature.int2str(int(value)) if int(value) >= 0 else ""  # -1: a split without labels
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, np.ndarray)) and (hasattr(feature, "int2str") or np.asarray(value).dtype.kind in "OS"):
        return [_value(part, feature) for part in value]
    return value
