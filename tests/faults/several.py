"""A nano run that real processes share, and what nobody disturbed of it."""

import dataclasses
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from jaxenc.training.run import Run
from tests.faults.gang import PRETRAIN, Gang
from tests.training.test_loop import write_recipe

# Relative: the order of reductions alone differs; measured 3e-7.
CLOSE = 1e-5
COMMANDS = (sys.executable, "-m", "tests.faults.commands")
# Steps of a run, and between two checkpoints and two evaluations.
STEPS, EVERY = 30, 10
# (name, a function that fills a folder) -> the folder, as the fixture `made_once` makes it.
MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@dataclasses.dataclass(frozen=True)
class Several:
    """The run of one recipe in any number of processes and devices. folder: where its data is; its name is that of its runs."""

    run: Run
    folder: Path
    made_once: MadeOnce

    def gang(self, procs: int, devices: int, workdir: Path, *overrides: str, command: tuple = PRETRAIN, **environment: str) -> Gang:
        """Processes of `devices` devices each."""
        recipe = write_recipe(self.run, workdir.with_name(f"{workdir.name}.json"))
        arguments = (*command, "--config", recipe, "--workdir", workdir, *overrides)
        return Gang(procs, devices, arguments, **environment)

    def finish(self, procs: int, devices: int, workdir: Path) -> str:
        """What a run says that goes on to its end."""
        with self.gang(procs, devices, workdir) as gang:
            assert gang.end() == 0, gang.said
        return gang.said

    def undisturbed(self, procs: int, devices: int, preset: str = "dp") -> Path:
        """The finished work directory of a run that nobody disturbs, made once, and beside it `after`, which tests.faults.commands makes of
        it."""

        def fill(folder: Path) -> None:
            task = ("--task", self.folder / "task") if (self.folder / "task").exists() else ()
            more = (*task, f"--config.mesh.preset={preset}")
            with self.gang(procs, devices, folder / "run", *more, command=(*COMMANDS, folder / "after")) as gang:
                assert gang.end(300) == 0, gang.said

        return self.made_once(f"{self.folder.name}-{procs}x{devices}-{preset}", fill) / "run"

    def stopped(self, procs: int, devices: int, step: int, workdir: Path) -> Path:
        """`workdir`, as a run leaves it that dies after its checkpoint of `step`."""
        shutil.copytree(self.undisturbed(procs, devices), workdir)
        for path in (workdir / "checkpoints").iterdir():
            if int(path.name) > step:
                shutil.rmtree(path)
        return workdir
