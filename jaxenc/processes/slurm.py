"""The step that Slurm's `srun` started this process in."""

import dataclasses
import re
from collections.abc import Mapping

from jaxenc.processes.rank import Rank, from_variables, is_number, number, port

# Between the ports of two steps of one job: up to 509 jobs in a row, with up to 8 steps each, have ports of their own. A prime, so that
# most jobs with more steps have too.
STRIDE = 509
# A part of a node list: text and, in brackets, numbers and ranges of them, any number of times.
PART = r"(?:[^,\[\]\s]|\[\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\])+"


def rank(environment: Mapping[str, str]) -> Rank | None:
    """This task's rank in its step, None outside a step of several tasks.

    A batch script and the shell of salloc run alone, although Slurm sets the number of tasks for them and rank 0 for the script: only
    `srun` starts a step, whose own number of tasks counts (slurm.schedmd.com/srun.html, "output environment variables").

    Task 0 is on the first host of the step's list unless --distribution=arbitrary says otherwise. Its port follows jax's rule, the job's
    number modulo 4,096 above 61440, to which the step's adds STRIDE each, for jobs and steps that share a node.
    """
    if environment.get("SLURM_JOB_ID") and not environment.get("SLURM_STEP_ID"):
        return None
    size = "SLURM_STEP_NUM_TASKS" if environment.get("SLURM_STEP_NUM_TASKS") else "SLURM_NTASKS"
    found, nodes = from_variables(environment, size, "SLURM_PROCID"), hosts(environment.get("SLURM_STEP_NODELIST", ""))
    job, step = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_STEP_ID", "")
    if found is None or not (nodes and is_number(job) and is_number(step)):
        return found
    address = f"{nodes[0]}:{port(int(job) + STRIDE * int(step))}"
    # 2(x3),1: tasks on each node of the step, in the order of the list.
    counts = re.findall(r"(\d+)(?:\(x(\d+)\))?", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    tasks = [int(count) for count, times in counts for _ in range(int(times or 1))]
    node, local_index = number(environment, "SLURM_NODEID", 0), number(environment, "SLURM_LOCALID", 0)
    local_count = tasks[node] if node < len(tasks) else 1
    return dataclasses.replace(found, address=address, hosts=len(nodes), local_index=local_index, local_count=local_count)


def hosts(listed: str) -> list[str]:
    """The hosts of a node list such as `a[01-03,07],b5`, in order, as `scontrol show hostnames` prints them; [] where it is not one."""
    if not re.fullmatch(rf"{PART}(,{PART})*", listed):
        return []
    found: list[str] = []
    for part in re.finditer(PART, listed):
        names = [""]
        for text, ranges in re.findall(r"([^,\[\]]+)|\[([^\[\]]*)\]", part[0]):
            ends = [text] if text else [end for one in ranges.split(",") for end in _numbers(one)]
            names = [name + end for name in names for end in ends]
        found += names
    return found


def _numbers(text: str) -> list[str]:
    """`01-03` as 01, 02, 03; a number as itself."""
    first, _, last = text.partition("-")
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
