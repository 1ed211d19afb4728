"""Times the training step of the same architecture in transformers on PyTorch, for `jaxenc bench step --peer`."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

from jaxenc.convert import hf
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.inference.load import Model, objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters

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
    tokens_per_second: float
    peak_gb: float


def time_peer(run: Run, vocabulary: Vocabulary, steps: int, peer: str) -> PeerTiming:
    """Times transformers' step for the first phase of `run`: torch.compile, bfloat16 autocast or float32 as the run says, fused AdamW,
    clipping, and the dropout of the recipe. peer: one of PEERS.

    It runs in a process of its own, which needs the memory of the device: call it before this process makes any array. Raises
    UserError without the libraries, for a model that transformers does not have, and where the peer fails.
    """
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise UserError(f"--peer {peer} needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    phase = run.plan[0]
    work = {
        "configs": configs(run),
        "gathered": peer == "hf-gathered",
        "causal": run.model.attention == "causal",
        "rows": phase.batch,
        "length": phase.length,
        "precision": run.train.precision,
        "special": sorted(vocabulary.reserved),
        "steps": steps,
    }
    # JAX in that process would otherwise reserve most of the device's memory.
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "jaxenc.bench.peer_step"]
    done = subprocess.run(command, input=json.dumps(work), stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise UserError(f"--peer {peer}: its process ended with exit code {done.returncode}: see its message above, or leave out --peer")
    return PeerTiming(**json.loads(done.stdout.splitlines()[-1]))


def configs(run: Run) -> dict[str, dict]:
    """The config.json of each model that `run` trains in transformers, by its folder in an export; '' for a single model. Raises UserError
    for a model that transformers does not have."""
    shapes, _ = parameters(objective_of(run, None))
    return {folder: hf.export(model).config for folder, model in hf.models(Model(run, shapes, None)).items()}
