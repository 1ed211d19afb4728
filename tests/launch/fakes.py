"""Fake programs of clouds and clusters: each notes its arguments in $FAKES/calls and does the least that the scripts rely on.

Started under the name of the program that it plays. The cloud is the folder $FAKES: `state` is that of the queued resource, `vm/0` and
`vm/1` are the homes of its two workers; with the file `agreeable` it says yes to everything. `python3 -m uv` makes an environment whose
`jaxenc` is `stub.sh`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

FAKES = Path(os.environ.get("FAKES", ""))
STATE, VMS = FAKES / "state", [FAKES / "vm" / str(worker) for worker in range(2)]


def option(arguments: list[str], name: str) -> str:
    return next((word.partition("=")[2] for word in arguments if word.startswith(f"{name}=")), "")


def gcloud(arguments: list[str]) -> int:
    words = arguments[1:] if arguments[0] == "alpha" else arguments
    if words[:3] != ["compute", "tpus", "queued-resources"]:
        return 2
    verb, rest = words[3], words[4:]
    if (FAKES / "agreeable").exists():
        return 0
    if verb == "create":
        if STATE.exists():
            return 1
        STATE.write_text("WAITING_FOR_RESOURCES\n")
    elif verb == "describe":
        if not STATE.exists():
            print("ERROR: (gcloud) NOT_FOUND: no such resource", file=sys.stderr)
            return 1
        print(STATE.read_text().strip())
        if STATE.read_text() == "WAITING_FOR_RESOURCES\n":
            STATE.write_text("ACTIVE\n")
            for home in VMS:
                home.mkdir(parents=True)
    elif verb == "delete":
        STATE.unlink()
        shutil.rmtree(FAKES / "vm", ignore_errors=True)
    elif verb in ("ssh", "scp"):
        return on_workers(verb, rest)
    else:
        return 2
    return 0


def on_workers(verb: str, rest: list[str]) -> int:
    code = 0
    for home in VMS if option(rest, "--worker") == "all" else VMS[:1]:
        if STATE.read_text() != "ACTIVE\n":
            return 255
        if verb == "scp":
            shutil.copy(rest[0], home / rest[1].partition(":")[2])
        else:
            # sshd gives the command to the user's shell as one string.
            worker = os.environ | {"HOME": str(home), "WORKER": home.name}
            code = subprocess.run(["bash", "-c", option(rest, "--command")], cwd=home, env=worker).returncode or code
    return code


def python3(arguments: list[str]) -> int:
    if arguments[:3] == ["-m", "uv", "venv"]:
        binaries = Path(arguments[-1], "bin")
        binaries.mkdir(parents=True, exist_ok=True)
        (binaries / "jaxenc").write_text(f'#!/bin/bash\nexec bash {FAKES}/stub.sh "$@"\n')
        (binaries / "jaxenc").chmod(0o755)
        (binaries / "python").write_text(f'#!/bin/bash\nexec {sys.executable} "$@"\n')
        (binaries / "python").chmod(0o755)
    return 0


def systemd_run(arguments: list[str]) -> int:
    """Runs the unit to its end, in a session of its own, which the loss of a machine kills."""
    settings = dict(word.partition("=")[2].partition("=")[::2] for word in arguments if word.startswith("--setenv="))
    command = [word for word in arguments if not word.startswith("--")]
    subprocess.run(command, cwd=option(arguments, "--working-directory"), env=os.environ | settings, start_new_session=True)
    return 0


def systemctl(arguments: list[str]) -> int:
    return 3 if arguments[0] == "is-active" else 0  # what was started has ended


def sbatch(arguments: list[str]) -> int:
    """Runs the job, and again as long as it is put back."""
    at = next(index for index, word in enumerate(arguments) if not word.startswith("--"))
    job = os.environ | {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": option(arguments, "--cpus-per-task")}
    again = FAKES / "requeued"
    while True:
        done = subprocess.run(["bash", *arguments[at:]], env=job, cwd=FAKES)
        if not again.exists():
            return done.returncode
        again.unlink()


def srun(arguments: list[str]) -> int:
    at = next(index for index, word in enumerate(arguments) if not word.startswith("--"))
    return subprocess.run(["bash", f"{FAKES}/stub.sh", *arguments[at + 1 :]]).returncode


def scontrol(arguments: list[str]) -> int:
    if arguments[0] == "requeue":
        (FAKES / "requeued").touch()
    return 0


def squeue(arguments: list[str]) -> int:
    print(7)
    return 0


def kubectl(arguments: list[str]) -> int:
    if arguments[1:] == ["apply", "--filename=-"]:
        (FAKES / "manifest.yaml").write_text(sys.stdin.read())
    return 0


def sleep(arguments: list[str]) -> int:
    """No time passes. Who waits for the fiftieth time waits for what does not come."""
    if (FAKES / "calls").read_text().count('["sleep"') >= 50:
        os.kill(os.getppid(), signal.SIGKILL)
    return 0


def nothing(arguments: list[str]) -> int:
    return 0


PROGRAMS = {
    "gcloud": gcloud, "kubectl": kubectl, "python3": python3, "sbatch": sbatch, "scontrol": scontrol, "squeue": squeue, "srun": srun,
    "systemctl": systemctl, "systemd-run": systemd_run, "docker": nothing, "journalctl": nothing, "nvidia-smi": nothing,
    "scancel": nothing, "sleep": sleep, "xpk": nothing,
}  # fmt: skip


def main() -> int:
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    with (FAKES / "calls").open("a") as calls:
        calls.write(json.dumps([name, *arguments]) + "\n")
    return PROGRAMS[name](arguments)
