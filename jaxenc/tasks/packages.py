"""A small labelled task that every machine with jaxenc has: which package a paragraph of a docstring is from.

It is for a first run without a download. Its texts depend on the installed versions, as `data.docstrings` says.
"""

import json
import zlib
from pathlib import Path

import numpy as np

from jaxenc.data import docstrings
from jaxenc.files import user_errors, write_bytes

# Dependencies of jaxenc with thousands of paragraphs each.
PACKAGES = ("jax", "matplotlib", "numpy", "scipy")
TRAIN, DEV = 1000, 150  # paragraphs of each package


def write(folder: Path) -> None:
    """Writes train.jsonl and dev.jsonl with the columns `text` and `label`, in a shuffled order, with the same number of paragraphs of each
    package.

    All paragraphs of a module are in one of the two files, because neighbouring docstrings repeat each other's sentences. Raises UserError
    for a folder that cannot be written.
    """
    found: dict[tuple[str, str], list[str]] = {(split, package): [] for split in ("train", "dev") for package in PACKAGES}
    for source, paragraphs in docstrings.modules(PACKAGES):
        name = source.removeprefix(f"{docstrings.NAME}:")
        split = "dev" if zlib.crc32(name.encode()) % 5 == 0 else "train"
        found[split, name.partition("/")[0]] += paragraphs
    for split, most in (("train", TRAIN), ("dev", DEV)):
        rows = [{"text": text, "label": package} for package in PACKAGES for text in _some(found[split, package], most)]
        order = np.random.default_rng(0).permutation(len(rows))
        with user_errors(folder, "choose a folder that can be written"):
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / f"{split}.jsonl", "".join(json.dumps(rows[i]) + "\n" for i in order).encode())


def _some(texts: list[str], most: int) -> list[str]:
    """At most this many of `texts`, evenly spaced."""
    return [texts[i] for i in np.unique(np.linspace(0, len(texts) - 1, min(most, len(texts))).astype(int))]
