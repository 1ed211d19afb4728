"""Where the committed runs lie, and how one is resumed."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jaxenc.cli.main import main

HERE = Path(__file__).parent
RUNS, STEPS = HERE / "runs", HERE / "steps"
FACTS = HERE / "facts.json"
RESUMED = ("bert", "electra", "xlnet", "elmo")
# Without a run directory: whose data they read.
BORROWED = MappingProxyType({"roberta": "bert", "replaced_mlm": "electra"})
FIRST_STEPS = (*RESUMED, *BORROWED)
# Whose step is compiled: two networks again, for replaced_mlm, cost more than they would tell.
COMPILED = tuple(name for name in FIRST_STEPS if name != "replaced_mlm")


def config_of(name: str) -> Path:
    """The resolved config.json of a run, or of one that is recorded for its first step alone."""
    return RUNS / name / "run" / "config.json" if name in RESUMED else STEPS / f"{name}.config.json"


def data_of(name: str, folder: Path) -> Path:
    """A copy in `folder` of the data of a run: some sources leave files beside it."""
    shutil.copytree(RUNS / BORROWED.get(name, name) / "data", folder / name / "data")
    return folder / name / "data"


def stopped_at(name: str) -> int:
    """The step of the committed checkpoint."""
    return int(next((RUNS / name / "run" / "checkpoints").iterdir()).name)


def resume(name: str, folder: Path) -> Path:
    """A copy in `folder` of a committed run directory, gone on to its end as `jaxenc pretrain` goes on."""
    shutil.copytree(RUNS / name, folder / name)
    workdir, data = folder.absolute() / name / "run", folder.absolute() / name / "data"
    overrides = [f"--config.data.path={data}", "--config.checkpoint.every=0"]
    assert main(["pretrain", "--config", str(workdir / "config.json"), "--workdir", str(workdir), *overrides]) == 0
    return workdir


def read(path: Path) -> Any:
    """A JSON file of this folder."""
    return json.loads(path.read_text())


def write(path: Path, value: Mapping[str, Any]) -> None:
    """A JSON object with a line for each entry, and for each entry of those that are objects."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def text(item: Any) -> str:
        if not isinstance(item, Mapping):
            return json.dumps(item)
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(inner)}" for key, inner in item.items()) + "\n }"

    path.write_text("{\n" + ",\n".join(f" {json.dumps(key)}: {text(item)}" for key, item in value.items()) + "\n}\n")
