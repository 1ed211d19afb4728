"""T1 and T4 on the accelerator of this machine: a recipe that is killed and signalled, beside the same run that nobody touched.

    python -m tests.faults.device --config electra/small --data DATA --work DIR --settings --deterministic --kills 10 --signals 3

With --settings it first says in which settings two runs are one bit for bit, and what each costs; then come the faults, in XLA's
deterministic setting or, without --deterministic, as XLA comes. Prints lines of Markdown. A later call goes on in the same work directory:
with another --seed, and with --settings and --signals once each.
"""

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import jax

from tests.faults.alone import newest
from tests.faults.same import assert_same_run
from tests.group import Process

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


@dataclass(frozen=True)
class Setting:
    """flags: XLA's. cache: the folder of compiled programs that all processes share, or None: each compiles, and tunes, for itself."""

    name: str
    flags: str
    cache: Path | None


@dataclass(frozen=True)
class Recipe:
    """config, data: as `jaxenc pretrain` takes them. steps: of a run. every: steps between checkpoints; evaluations come half as often."""

    config: str
    data: str
    steps: int
    every: int

    def start(self, setting: Setting, workdir: Path) -> Process:
        """A process of the run."""
        values = {
            "data.path": self.data, "train.steps": self.steps, "checkpoint.every": self.every, "checkpoint.keep": 3,
            "eval.every": 2 * self.every, "log.every": 1, "log.examples": "true", "optim.warmup": self.steps // 10,
        }  # fmt: skip
        environment = {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {setting.flags}".strip()}
        if setting.cache:
            environment |= {"JAX_COMPILATION_CACHE_DIR": str(setting.cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        command = [sys.executable, "-m", "jaxenc.cli.main", "pretrain", "--config", self.config, "--workdir", str(workdir)]
        command += [f"--config.{name}={value}" for name, value in values.items()]
        return Process(command, stderr=subprocess.PIPE, text=True, errors="replace", env=environment)

    def finish(self, setting: Setting, workdir: Path) -> float:
        """Seconds of a run that nobody disturbs."""
        began = time.monotonic()
        with self.start(setting, workdir) as process:
            said = process.communicate()[1]
        assert process.returncode == 0, said[-3000:]
        return time.monotonic() - began


def same(one: Path, other: Path, steps: int) -> bool:
    """Whether two runs are one bit for bit."""
    try:
        assert_same_run(one, other, 0, steps)
    except AssertionError:
        return False
    return True


def milliseconds(workdir: Path) -> float:
    """The median time between two rows of the log, of one step each."""
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    clock = [row["seconds"] for row in rows if row["split"] == "train"]
    return 1e3 * statistics.median(later - earlier for earlier, later in itertools.pairwise(clock))


def settings(recipe: Recipe, work: Path) -> None:
    """Prints, for each setting, whether two runs are one."""
    kinds = (("as it comes", "", work / "cache"), ("deterministic", DETERMINISTIC, work / "fixed"))
    cached = [Setting(f"{name}, programs cached", flags, folder) for name, flags, folder in kinds]
    for setting in (*cached, *(Setting(f"{name}, compiled anew", flags, None) for name, flags, _ in kinds)):
        name = setting.name.replace(" ", "-").replace(",", "")
        runs = [work / f"{name}-{number}" for number in range(2)]
        spent = [recipe.finish(setting, run) for run in runs]
        took = ", ".join(f"{seconds:.0f} s" for seconds in spent)
        verdict = "bit for bit" if same(*runs, recipe.steps) else "differ"
        print(f"| two runs, {setting.name} | 2 | {verdict}; {milliseconds(runs[1]):.1f} ms a step; {took} |", flush=True)


def first_interval(recipe: Recipe, setting: Setting, workdir: Path) -> float:
    """Seconds from the start of a run to its first checkpoint, at which it is killed."""
    began = time.monotonic()
    with recipe.start(setting, workdir) as process:
        while process.poll() is None and newest(workdir) < recipe.every:
            time.sleep(0.01)
        process.kill()
    assert newest(workdir) >= recipe.every, "ended before its first checkpoint"
    return time.monotonic() - began


def killed(recipe: Recipe, setting: Setting, whole: Path, work: Path, kills: int, seed: int) -> None:
    """T1: kill -9 at a time drawn from 0.5 to 3 times start-up and an interval, start again, to the end; then another run, until there
    were `kills`."""
    span = first_interval(recipe, setting, work / f"first-{seed}")
    print(f"| start-up and an interval, programs cached | 1 | {span:.1f} s |", flush=True)
    draw, done, runs, lives = random.Random(seed), 0, 0, []
    while done < kills or runs == 0:
        workdir = work / f"killed-{seed}-{runs}"
        while True:
            began = time.monotonic()
            with recipe.start(setting, workdir) as process:
                try:
                    said = process.communicate(timeout=draw.uniform(0.5, 3) * span if done < kills else None)[1]
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
            if process.returncode == 0:
                break
            assert process.returncode == -9, said[-3000:]
            done += 1
            lives.append(f"{time.monotonic() - began:.0f} s at {newest(workdir)}")
        assert_same_run(whole, workdir, 0, recipe.steps)
        runs += 1
    print(f"| T1 kill -9 | {done} | {runs} of {runs} runs bit for bit (lives, newest checkpoint: {', '.join(lives)}) |", flush=True)


def signalled(recipe: Recipe, setting: Setting, whole: Path, work: Path, signals: int) -> None:
    """T4: SIGTERM after each third of the run; exit code 75 within 10 s; to the end afterwards."""
    workdir, waits = work / "signalled", []
    for number in range(signals):
        with recipe.start(setting, workdir) as process:
            while process.poll() is None and newest(workdir) < (number + 1) * recipe.steps // (signals + 1):
                time.sleep(0.01)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            said = process.communicate()[1]
        waits.append(time.monotonic() - began)
        assert process.returncode == 75 and waits[-1] <= 10, (process.returncode, waits, said[-3000:])
    recipe.finish(setting, workdir)
    assert_same_run(whole, workdir, 0, recipe.steps)
    print(f"| T4 SIGTERM | {signals} | exit code 75 within {max(waits):.1f} s, then bit for bit |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--signals", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7, help="of the moments of the kills; a second call goes on with another")
    parser.add_argument("--settings", action="store_true", help="compare the settings first")
    parser.add_argument("--deterministic", action="store_true", help="faults in this setting")
    args = parser.parse_args()
    # The accelerator is the children's; this process only reads what they wrote.
    jax.config.update("jax_platforms", "cpu")
    recipe = Recipe(args.config, args.data, args.steps, args.every)
    args.work.mkdir(parents=True, exist_ok=True)
    if args.settings:
        settings(recipe, args.work)
    setting = Setting("faults", DETERMINISTIC if args.deterministic else "", args.work / ("fixed" if args.deterministic else "cache"))
    whole = args.work / "whole"
    if args.kills or args.signals:
        recipe.finish(setting, whole)
    if args.kills:
        killed(recipe, setting, whole, args.work, args.kills, args.seed)
    if args.signals:
        signalled(recipe, setting, whole, args.work, args.signals)


if __name__ == "__main__":
    main()
