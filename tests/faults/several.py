"""A nano run that real processes share, and what nobody disturbed of it."""

import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path

from jaxenc.training.run import Run
from tests.faults.gang import PRETRAIN, Gang
from tests.training.test_loop import write_recipe

# Relative: the order of reductions alone differs; measured 3e-7.
CLOSE = 1e-5
# A checkpoint and an evaluation every 10 steps: 20 steps are left behind the first.
STEPS = 30


@dataclasses.dataclass(frozen=True)
class Several:
    """The run of one recipe in any number of processes and devices. folder: where it keeps its recipe and runs."""

    run: Run
    folder: Path
    undisturbed: Callable[[int, int], Path] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        write_recipe(self.run, self.folder / "recipe.json")
        object.__setattr__(self, "undisturbed", functools.cache(self._undisturbed))

    def gang(self, procs: int, devices: int, workdir: Path, *overrides: str, command: tuple = PRETRAIN, **environment: str) -> Gang:
        """Processes of `devices` devices each."""
        arguments = (*command, "--config", self.folder / "recipe.json", "--workdir", workdir, *overrides)
        return Gang(procs, devices, arguments, **environment)

    def finish(self, procs: int, devices: int, workdir: Path) -> str:
        """What a run says that goes on to its end."""
        with self.gang(procs, devices, workdir) as gang:
            assert gang.end() == 0, gang.said
        return gang.said

    def _undisturbed(self, procs: int, devices: int) -> Path:
        """The finished work directory of a run that nobody disturbs; each is made once."""
        workdir = self.folder / f"{procs}x{devices}"
        self.finish(procs, devices, workdir)
        return workdir

    def stopped(self, procs: int, devices: int, step: int, workdir: Path) -> Path:
        """`workdir`, as a run leaves it that dies after its checkpoint of `step`."""
        shutil.copytree(self.undisturbed(procs, devices), workdir)
        for path in (workdir / "checkpoints").iterdir():
            if int(path.name) > step:
                shutil.rmtree(path)
        return workdir
