"""Makes the golden arrays that `tests/parity/test_golden.py` compares with: what transformers computes for random tiny models.

    python -m tests.golden.hf.make

needs the extra `live` (torch, transformers). One .npz an architecture: the config, the inputs and the weights, and for both forms of
GELU every hidden state, the logits, the loss and its gradients. Computed in float64 from float32 weights and rounded once.
"""

import numpy as np

from tests.parity import peer
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


def main() -> None:
    """Writes every file and says how large it is."""
    for seed, case in enumerate(CASES.values()):
        path = GOLDEN / f"{case.architecture}.npz"
        np.savez_compressed(path, **arrays(case, seed))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
