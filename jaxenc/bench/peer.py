"""Runs the same work in transformers on PyTorch, in a process of its own, for `jaxenc bench --peer`."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.training.run import Run, to_json

# hf: the model and loss of transformers unchanged. hf-gathered: its encoder and head with logits of the predicted tokens only, as every
# objective here computes them.
PEERS = ("hf", "hf-gathered")
NEEDED = ("torch", "transformers")


@dataclasses.dataclass(frozen=True)
class PeerTiming:
    """peer: its libraries with their versions. The other numbers are those of `bench.step.Timing`; warm_up_s includes its compilation."""

    peer: str
    device: str
    rows: int
    length: int
    warm_up_s: float
    step_ms: float
    cpu_ms: float
    tokens_per_second: float
    peak_gb: float


def time_peer(run: Run, vocabulary: Vocabulary, steps: int, peer: str) -> PeerTiming:
    """Times transformers' step for the first phase of `run`: torch.compile, bfloat16 autocast or float32 as the run says, fused AdamW,
    clipping, and the dropout of the recipe. peer: one of PEERS.

    It runs in a process of its own, which needs the memory of the device: call it before this process makes any array. Raises
    UserError without the libraries and where the peer fails, for instance since transformers has no such model.
    """
    # The run and not its models in transformers: making those here would start JAX, which reserves most of the device's memory.
    asked = {"run": json.loads(to_json(run)), "gathered": peer == "hf-gathered", "special": sorted(vocabulary.reserved), "steps": steps}
    return PeerTiming(**answer("jaxenc.bench.peer_step", asked, peer))


def answer(module: str, asked: Mapping[str, Any], peer: str) -> dict[str, Any]:
    """The last line of what `python -m module` prints for `asked` on its stdin, both JSON. peer: the value of --peer, for messages. Raises
    UserError without the libraries of the peer and where the process fails."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise UserError(f"needs {' and '.join(missing)}", f"--peer {peer}", f"pip install {' '.join(missing)}")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise UserError(
            f"its process ended with exit code {done.returncode}", f"--peer {peer}", "see its message above, or leave out --peer"
        )
    return json.loads(done.stdout.splitlines()[-1])
