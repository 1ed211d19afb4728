"""Two processes without a shared disk: the files that each uploads are one checkpoint."""

import sys
from pathlib import Path

import jax
import numpy as np

from jaxenc.checkpoint import arrays
from jaxenc.checkpoint.arrays import is_part
from jaxenc.checkpoint.download import downloaded
from jaxenc.checkpoint.verify import entries
from tests import bucket
from tests.checkpoint import unshared
from tests.faults.gang import Gang


def test_what_two_processes_upload_is_one_checkpoint(bucket_url: str, tmp_path: Path) -> None:
    url = f"{bucket_url}/run"
    command = (sys.executable, "-m", "tests.checkpoint.unshared", tmp_path / "bucket", tmp_path / "caches", url)
    with Gang(2, 2, command, RESTARTS="0") as gang:
        assert gang.end() == 0, gang.said
    step = downloaded(url, True, "--init-from")
    assert step.name == "2" and [path.name for path in bucket.at(f"{url}/checkpoints").iterdir()] == ["2"]
    wanted = {path: jax.ShapeDtypeStruct(*kind) for path, kind in arrays.stored(step / "state").items()}
    assert wanted.keys() == {f"params/{name}" for name in unshared.ARRAYS}
    for path, array in arrays.read(step / "state", wanted).items():
        assert (np.asarray(array) == unshared.values(path.removeprefix("params/"), 2)).all(), path
    # Each wrote its own half, and neither has the other's.
    here = [{path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} for copy in copies(tmp_path)]
    parts = [{name for name in names if is_part(name)} for names in here]
    assert len(parts[0]) > len(parts[1]) >= 4 and not parts[0] & parts[1]
    assert parts[0] | parts[1] == {name for name in entries(step) if is_part(name)}


def copies(folder: Path) -> list[Path]:
    """Step 2 as each process keeps it."""
    return [next((folder / "caches" / rank).glob(f"runs/*/{rank}/run/checkpoints/2")) for rank in "01"]
