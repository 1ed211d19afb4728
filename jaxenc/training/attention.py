"""Which implementation of attention a run uses, recorded in its directory and in each checkpoint, so that a resume and an evaluation of a
checkpoint stay with it.

Implementations round differently. `train.attention=auto` may choose another one on another machine or in a later version of jaxenc, and a
run should not change its numbers unreported.
"""

import contextlib
import dataclasses
import json
import pathlib
from collections.abc import Mapping

from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.layers import attend
from jaxenc.training.run import Run

RECORD = "attention.json"


@dataclasses.dataclass(frozen=True)
class Attention:
    """platform: the answer of `sharding.mesh.platform`. backends: {length of rows: backend}. recorded: those in the
    attention.json of the run directory, {} for a new run."""

    platform: str
    backends: Mapping[int, str]
    recorded: Mapping[int, str]

    @property
    def line(self) -> str:
        """The choice in a few words."""
        if len(set(self.backends.values())) == 1:
            one = next(iter(self.backends.values()))
            return f"attention {one} ({attend.DESCRIBED[one]})"
        return "attention " + ", ".join(f"{backend} for rows of {length}" for length, backend in sorted(self.backends.items()))

    def warnings(self, resumed: bool) -> list[str]:
        """One line for each length whose backend is not the recorded one. resumed: whether steps were made before."""
        if resumed and not self.recorded and "pallas" in self.backends.values():
            # Versions without a record had no pallas, and chose as now where they could.
            return [f"warning: {self.line} from here on: until now this run used another implementation"]
        moved = [(length, self.backends[length], old) for length, old in sorted(self.recorded.items()) if self.backends[length] != old]
        return [f"warning: attention {new} from here on for rows of {length}: until now it was {old}" for length, new, old in moved]

    def to_json(self) -> bytes:
        """The content of the record."""
        rows = {str(length): backend for length, backend in sorted(self.backends.items())}
        return json.dumps({"platform": self.platform, "rows": rows}, indent=1).encode()


def choose(run: Run, platform: str, workdir: pathlib.Path) -> Attention:
    """The backend for each length of rows; workdir: the run's directory or one of its checkpoints. `auto` stays with the recorded one where
    the run goes on on the same platform and the backend can run; otherwise it is what `layers.attend.resolve` says.

    Raises UserError for a setting that cannot run on `platform` and for a damaged record.
    """
    where, before = _read(workdir / RECORD)
    lengths = sorted({one.length for phase in run.plan for one in run.in_lengths(phase)})
    stays = before if where == platform and run.train.attention == "auto" else {}
    backends = {length: _one(run, platform, length, stays.get(length, "auto")) for length in lengths}
    return Attention(platform, backends, {length: before[length] for length in lengths if length in before})


def with_backend(run: Run, backend: str) -> Run:
    """The run with this `train.attention`."""
    return dataclasses.replace(run, train=dataclasses.replace(run.train, attention=backend))


def _one(run: Run, platform: str, length: int, recorded: str) -> str:
    if recorded != "auto":
        with contextlib.suppress(UserError):  # it cannot run with the fields of now: choose again, and `warnings` reports it
            return with_backend(run, recorded).execution(platform, length).attention
    return run.execution(platform, length).attention


def _read(path: pathlib.Path) -> tuple[str, dict[int, str]]:
    """(platform, {length: backend}) of a record; ("", {}) where there is none."""
    if not path.exists():
        return "", {}
    advice = "delete it, and the choice is made again"
    held = read_json(path, advice)
    platform, rows = held.get("platform"), held.get("rows")
    if not (isinstance(platform, str) and isinstance(rows, dict) and all(map(_sound, rows, rows.values()))):
        raise UserError(f"it does not hold a platform and a backend ({', '.join(attend.BACKENDS)}) by length of row", path, advice)
    return platform, {int(length): backend for length, backend in rows.items()}


def _sound(length: str, backend: object) -> bool:
    return length.isascii() and length.isdecimal() and len(length) < 10 and backend in attend.BACKENDS
