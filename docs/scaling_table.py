"""The table of docs/scaling.md: compiles every case with `jaxenc compile` and prints the table.

    python docs/scaling_table.py RESULTS.jsonl [--only WORD] [--table]

A case takes 20 s to 15 minutes. Its result is appended to RESULTS.jsonl, and a case that is there is not compiled again: end the script at
any time and run it again. --only: cases whose name holds the word. --table: compile nothing, print what is there.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCAN = ("train.scan=true", "train.remat=block")


@dataclasses.dataclass(frozen=True)
class Case:
    """rows: of each chip. phase: which one of the recipe. fields: overrides."""

    recipe: str
    topology: str
    chips: int
    preset: str
    slices: int = 1
    rows: int = 32
    phase: int = 1
    fields: tuple[str, ...] = SCAN

    @property
    def name(self) -> str:
        """As the results name it."""
        slices = f" x {self.slices}" if self.slices > 1 else ""
        return " ".join([self.recipe, self.topology + slices, self.preset, f"{self.rows} rows", *self.fields])

    @property
    def command(self) -> list[str]:
        """`jaxenc compile` and what it is given, but for --out."""
        batch = f"train.batch={self.rows * self.chips * self.slices}"
        fields = [f"--config.{item}" for item in (f"mesh.preset={self.preset}", batch, *self.fields)]
        where = ["--topology", self.topology, "--slices", str(self.slices), "--phase", str(self.phase)]
        return ["compile", "--config", self.recipe, *where, *fields]


def cases() -> Iterator[Case]:
    """The smallest first: whether all is well shows in a minute."""
    yield Case("bert/tiny", "v5e:2x2", 4, "dp", fields=())
    pods = (("v5e:16x16", 256), ("v5p:4x4x4", 64), ("v6e:16x16", 256))
    for preset in ("dp", "fsdp"):
        yield Case("bert/base", "v5e:16x16", 256, preset, phase=2)
    for preset in ("dp", "fsdp", "fsdp_tp"):
        yield from (Case("bert/large", *pod, preset, phase=2) for pod in pods)
    for preset in ("dp", "fsdp"):
        yield from (Case("bert/large", *pod, preset, slices=2, phase=2) for pod in pods)
        yield Case("electra/large", "v5e:16x16", 256, preset)
        yield Case("xlnet/large", "v5e:16x16", 256, preset, rows=8, fields=(*SCAN, "train.microbatches=1"))
        yield Case("elmo/original", "v5e:16x16", 256, preset, fields=())
        yield from (Case(recipe, "v5e:16x16", 256, preset) for recipe in ("albert/base", "gpt/base"))
        # TEACHER in the working directory: any converted or saved bert/base.
        yield Case("distilbert/base", "v5e:16x16", 256, preset, fields=(*SCAN, "objective.teacher=TEACHER"))


def compiled(case: Case) -> dict:
    """The result of a case: what `jaxenc compile` wrote, or its last line where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "jaxenc.cli.main", *case.command, "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
            return {"case": case.name, "error": f"exit {done.returncode}: {said[-1]}"}
        return {"case": case.name, **json.loads(out.read_text())}


def row(result: dict) -> str:
    """A line of the table."""
    shown = result["case"].replace(f" {' '.join(SCAN)}", ", scan, remat")
    if "error" in result:
        return f"| {shown} | {result['error']} ||||||"
    phase = result["phases"][0]
    held, room = phase["memory"]["total"] / 1e9, phase["memory"]["room"] / 1e9
    of_all = lambda one: f"{one['count']} {one['kind']} {one['dtype']} {one['bytes'] / 1e6:,.1f}"
    sent = ", ".join(map(of_all, phase["collectives"])) or "not compiled"
    state = sum(phase["memory"][part] for part in ("parameters", "moments", "carry")) / 1e9
    fits = "yes" if phase["fits"] else "no"
    bound = f"{phase['bound_s']['step'] * 1e3:,.0f}" if phase["flops"] else ""
    ratio = f"{phase['flops'] / 1e12:,.2f} / {phase['model_flops'] / 1e12:,.2f}"
    return f"| {shown} | {state:.2f} | {held:.1f} of {room:.1f}, {fits} | {ratio} | {sent} | {phase['attention']} | {bound} |"


def main() -> None:
    """Compiles what is missing, and prints the table of what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    read = lambda: [json.loads(line) for line in args.results.read_text().splitlines()] if args.results.exists() else []
    done = {result["case"] for result in read()}
    for case in cases():
        if case.name not in done and args.only in case.name and not args.table:
            print(case.name, file=sys.stderr, flush=True)
            line = json.dumps(compiled(case))
            with open(args.results, "a") as file:
                file.write(line + "\n")
    titles = "case | state, GB | step, GB of each chip | TFLOP of each chip: compiled / model | collectives, MB | attention | at least, ms"
    print(f"| {titles} |\n|{'---|' * 7}")
    print("\n".join(map(row, read())))


if __name__ == "__main__":
    main()
