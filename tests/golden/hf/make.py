"""Makes the golden arrays that `tests/parity/test_golden.py` compares with: what transformers computes for random tiny models.

    python -m tests.golden.hf.make

needs the extra `live` (torch, transformers). One .npz an architecture: the config, the inputs and the weights, and for both forms of
GELU every hidden state, the logits, the loss and its gradients. Computed in float64 from float32 weights and rounded once. And one of
ELECTRA's joint objective: both networks, the samples that ours drew, the loss and its gradients.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from tests.parity import pair, peer
from tests.parity.cases import CASES, GOLDEN, Case, inputs


def arrays(case: Case, seed: int) -> dict[str, np.ndarray]:
    """Everything of one architecture, by name."""
    rows = inputs(case, seed)
    out = {f"inputs/{name}": value for name, value in rows.items()}
    for activation in case.activations:
        model = peer.build(case, activation, seed)
        out["config"] = np.array(model.config.to_json_string())
        out |= {f"weights/{name}": value for name, value in peer.weights(model).items()}
        model.double()
        out |= {f"{activation}/{name}": value.astype(np.float32) for name, value in peer.outputs(model, case, rows).items()}
        if case.labels:
            found = peer.gradients(model, rows)
            out |= {f"{activation}/gradients/{name}": value.astype(np.float32) for name, value in found.items()}
    return out


def joint() -> dict[str, np.ndarray]:
    """Everything of the pair, by name; the weights are those of the untied one, a generator's own tables among them."""
    out = {}
    for sharing, name in pair.COMMITTED:
        theirs = peer.pair(sharing, pair.USUAL)
        configs, weights = peer.configs(theirs), {network: peer.weights(one) for network, one in theirs.items()}
        with tempfile.TemporaryDirectory() as folder:
            found = pair.computed(pair.write(Path(folder), configs, weights), pair.OBJECTIVES[name])
        loss, gradients = peer.joint(theirs, found.example, found.fake)
        out |= {f"config/{network}": np.array(json.dumps(config)) for network, config in configs.items()}
        out |= {f"weights/{network}/{path}": value for network in weights for path, value in weights[network].items()}
        out |= {f"{sharing}-{name}/fake": found.fake, f"{sharing}-{name}/loss": np.array(loss)}
        for network in gradients:
            out |= {f"{sharing}-{name}/{network}/{path}": value.astype(np.float32) for path, value in gradients[network].items()}
    return out


def main() -> None:
    """Writes every file and says how large it is."""
    for seed, case in enumerate(CASES.values()):
        write(GOLDEN / f"{case.architecture}.npz", arrays(case, seed))
    write(pair.FILE, joint())


def write(path: Path, held: dict[str, np.ndarray]) -> None:
    """One file."""
    np.savez_compressed(path, **held)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
