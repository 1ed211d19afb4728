"""What earlier versions wrote, made from what this one writes."""

import dataclasses
import shutil
from pathlib import Path

from jaxenc.data import manifest


def version_1(data: Path, out: Path) -> Path:
    """A copy of a data folder as the first version made it: no .words files, and a manifest that does not name them."""
    shutil.copytree(data, out, ignore=shutil.ignore_patterns("*.words", "*.npy"))
    facts = manifest.read(out)
    files = {name: file for name, file in facts.files.items() if not name.endswith(".words")}
    manifest.write(dataclasses.replace(facts, version=1, files=files), out)
    return out
