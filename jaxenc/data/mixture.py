"""The data folders that a run names: one, or several that are mixed."""

import dataclasses
import json

from jaxenc.config import fingerprint
from jaxenc.data import manifest as manifest_files
from jaxenc.data import staging, store, tokenizers
from jaxenc.data.frames import Frame
from jaxenc.data.manifest import Manifest
from jaxenc.data.sources.mixture import check_tokenizers
from jaxenc.data.sources.source import DataConfig

TOKENIZER = "tokenizer"  # a folder of data, and of checkpoints


def manifests(config: DataConfig) -> tuple[Manifest, ...]:
    """The manifest of each folder that `config` names, in its order.

    Raises UserError for a folder that is missing or damaged, and for two that were not made with the same tokenizer.
    """
    found = tuple(manifest_files.read(staging.facts(folder)) for folder in config.folders)
    check_tokenizers(config.folders, found)
    return found


def checkpoint_files(config: DataConfig, frame: Frame) -> dict[str, bytes]:
    """{name: content} of the files that every checkpoint keeps of the data: the manifest and the files of the tokenizer.

    frame: that of the model. The files of a tokenizer that frames texts in another way get this one (`Tokenizer.framed_as`); those of any
    other are copied. One folder has its own manifest. That of a mixture holds those of its parts, and a fingerprint of parts and shares.
    Raises UserError as `manifests` and `store.checkpoint_files`.
    """
    files, parts = store.checkpoint_files(config.folders[0]), manifests(config)
    # A list of words, which takes long to open, has CLS first.
    if not parts[0].tokenizer.words or frame.ends_in_cls:
        tool = tokenizers.load(staging.staged(config.folders[0]) / TOKENIZER).framed_as(frame)
        if tool.reframed:
            files = {name: content for name, content in files.items() if not name.startswith(f"{TOKENIZER}/")}
            files |= {f"{TOKENIZER}/{name}": content for name, content in tool.files.items()}
    if not config.mixture:
        return files
    shape = [config.weights or (), 1.0 if config.weights else config.exponent]
    facts = {
        "fingerprint": fingerprint([[part.fingerprint for part in parts], *shape]),
        "tokenizer": dataclasses.asdict(parts[0].tokenizer),
        "parts": [{"folder": folder, **json.loads(store.checkpoint_files(folder)[manifest_files.NAME])} for folder in config.folders],
    }
    return files | {manifest_files.NAME: (json.dumps(facts, indent=1) + "\n").encode()}
