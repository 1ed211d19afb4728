"""The numbers of a run in Weights & Biases (wandb), for people who keep their runs there."""

import importlib.util
import json
import pathlib
import secrets
from collections.abc import Mapping
from typing import Any

from jaxenc.errors import UserError
from jaxenc.files import read_json, user_errors, write_bytes
from jaxenc.training.settings import LogConfig

RECORD = "wandb.json"  # in the work directory: the id of the run, so that a resumed run continues it
FIX = "sign in with `wandb login`, check the network, or set log.wandb=offline"


def check(log: LogConfig) -> None:
    """Raises UserError where wandb is asked for and not installed."""
    if log.wandb and importlib.util.find_spec("wandb") is None:
        fix = "install it with `pip install 'jaxenc[wandb]'`, or leave log.wandb out"
        raise UserError("needs wandb, which is not installed", f"log.wandb={log.wandb}", fix)


class Board:
    """Owner of the run in Weights & Biases. Its numbers are named `train/loss`, `held_out/loss` and so on, over `step`."""

    def __init__(self, workdir: pathlib.Path, log: LogConfig, config: Mapping[str, Any]) -> None:
        """Starts the run, or goes on with it where `workdir` says which one it is. config: the settings to show. Raises UserError."""
        import wandb

        folder = workdir.absolute()
        settings = wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=log.wandb == "offline")
        try:
            self._run = wandb.init(
                project=log.wandb_project or folder.parent.name or "jaxenc",
                name=folder.name,
                id=_identity(folder),
                resume="allow",
                mode=log.wandb,
                dir=str(folder),
                config=dict(config),
                settings=settings,
            )
        except (wandb.Error, OSError) as error:
            raise UserError(f"cannot start ({str(error).splitlines()[0]})", f"log.wandb={log.wandb}", FIX) from error
        # After a restart steps come again; by its own count W&B would drop them.
        self._run.define_metric("*", step_metric="step")

    def row(self, step: int, split: str, numbers: Mapping[str, float]) -> None:
        """The numbers of a row of metrics.jsonl."""
        self._run.log({"step": step, **{f"{split}/{name}": value for name, value in numbers.items()}})

    def close(self) -> None:
        """Ends this part of the run and waits until it is written or sent."""
        self._run.finish()


def _identity(workdir: pathlib.Path) -> str:
    """The id of the run in a work directory, drawn at its first start."""
    path = workdir / RECORD
    with user_errors(path, "free some space and run the same command again"):
        if not path.exists():
            write_bytes(path, json.dumps({"id": secrets.token_hex(6)}).encode())
    return str(read_json(path, "delete it, which begins another run in W&B").get("id", ""))
