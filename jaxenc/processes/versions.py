"""Which software a process runs: what has to be the same in all processes of a run."""

import hashlib
import pathlib
from importlib import metadata

import jaxenc


def installed() -> dict[str, str]:
    """{"jaxenc": version (checksum of its source), "jax", "jaxlib": version}. Two checkouts of one version can differ, hence the
    checksum. jaxenc's version is `not installed` where it is found on the path only."""
    own = version("jaxenc") or "not installed"
    return {"jaxenc": f"{own} (source {source()})", **{name: metadata.version(name) for name in ("jax", "jaxlib")}}


def version(package: str) -> str:
    """The version of an installed package, '' where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def source() -> str:
    """The first 12 digits of a sha256 over the names and contents of the package's modules."""
    found, folder = hashlib.sha256(), pathlib.Path(jaxenc.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        found.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return found.hexdigest()[:12]
