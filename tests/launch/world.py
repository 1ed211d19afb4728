"""A PATH with fake programs of clouds and clusters, and a `jaxenc` that records its arguments."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.launch import fakes

ROOT = Path(__file__).parents[2]
LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.rglob("*.sh"), *LAUNCH.rglob("*.sbatch")])
# What a shell on the way might change: blanks, quotes, dollars, stars, backslashes, nothing at all.
AWKWARD = (
    "jaxenc",
    "pretrain",
    "--config.data.path=a b",
    "it's",
    'say "hi"',
    "$HOME",
    "$(id)",
    "`id`",
    "$(NAME)",
    "$$",
    "*",
    "\\n",
    "",
    "!x;&|",
    "naïve 日本 😀",
)
# Notes its arguments, and ends with the next code of $FAKES/codes, or 0.
STUB = """
"$PYTHON_OF_TESTS" -c 'import json, os, sys; print(json.dumps(sys.argv[1:]), file=open(os.environ["FAKES"] + "/given", "a"))' jaxenc "$@"
read -r code < "$FAKES/codes" || code=0
sed -i 1d "$FAKES/codes"
case $code in
  lost) echo SUSPENDED > "$FAKES/state"; kill -KILL 0 ;;
  *) exit "$code" ;;
esac
"""


class World:
    """A folder with the fake programs, their calls, and the arguments of `jaxenc`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "bin"
        self.path.mkdir()
        fake = f"import sys\nsys.path.append({str(Path(fakes.__file__).parent)!r})\nimport fakes\nsys.exit(fakes.main())\n"
        for name in fakes.PROGRAMS:
            self.program(name, f"#!{sys.executable} -ES\n{fake}")
        self.program("sudo", '#!/bin/bash\nexec "$@"\n')
        self.program("jaxenc", f'#!/bin/bash\nexec bash {folder}/stub.sh "$@"\n')
        (folder / "stub.sh").write_text(STUB)
        self.codes()
        self.environment = {
            "PATH": f"{self.path}:{os.environ['PATH']}", "FAKES": str(folder), "HOME": str(folder), "TMPDIR": str(folder),
            "PYTHON": sys.executable, "PYTHON_OF_TESTS": sys.executable,
        }  # fmt: skip

    def program(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)
        (self.path / name).chmod(stat.S_IRWXU)

    def codes(self, *codes: int | str) -> None:
        """What `jaxenc` ends with, one start after the other; `lost`: the machine goes away. After the last one it is 0."""
        (self.folder / "codes").write_text("".join(f"{code}\n" for code in codes))

    def run(self, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return self.bash(str(LAUNCH / script), *map(str, arguments))

    def bash(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=300)

    def calls(self, *names: str) -> list[list[str]]:
        """The calls of the programs of these names, of all where none is given, in order."""
        path = self.folder / "calls"
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in found if not names or call[0] in names]

    def given(self) -> list[list[str]]:
        """What each start of `jaxenc` was given."""
        path = self.folder / "given"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def forget(self) -> None:
        for name in ("calls", "given"):
            (self.folder / name).unlink(missing_ok=True)


def verbs(calls: Sequence[Sequence[str]]) -> list[str]:
    """The verbs of calls of `gcloud compute tpus queued-resources`; for ssh with what it is for."""
    said = []
    for call in calls:
        words = [word for word in call if word not in ("gcloud", "alpha")]
        command = next((word for word in words if word.startswith("--command=")), "")
        what = next((word for word in ("setup", "start", "state", "stop", "logs", "follow") if f"worker.sh {word}" in command), "")
        said.append(what or words[3])
    return said
