"""Where the committed runs lie, and how one is resumed."""

import json
import shutil
from pathlib import Path
from typing import Any

from jaxenc.cli.main import main

HERE = Path(__file__).parent
RUNS, STEPS = HERE / "runs", HERE / "steps"
FACTS = HERE / "facts.json"
RESUMED = ("bert", "electra", "xlnet", "elmo")
FIRST_STEPS = (*RESUMED, "roberta", "replaced_mlm")


def config_of(name: str) -> Path:
    """The resolved config.json of a run, or of one that is recorded for its first step alone."""
    return RUNS / name / "run" / "config.json" if name in RESUMED else STEPS / f"{name}.config.json"


def data_of(name: str, folder: Path) -> Path:
    """A copy in `folder` of the data of a run: some sources leave files beside it."""
    shutil.copytree(RUNS / json.loads((STEPS / f"{name}.json").read_text())["data"] / "data", folder / name / "data")
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


def write(path: Path, value: Any) -> None:
    """A JSON file with a line for each entry of its first two levels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = lambda item: json.dumps(item) if not isinstance(item, dict) else None
    lines = []
    for key, item in value.items():
        inner = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in item.items()] if isinstance(item, dict) else []
        lines.append(f" {json.dumps(key)}: " + ("{\n" + ",\n".join(inner) + "\n }" if inner else (line(item) or "{}")))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
