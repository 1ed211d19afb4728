"""Makes the golden arrays that `tests/parity/test_golden.py` compares with: what transformers computes for random tiny models.

    python -m tests.golden.hf.make [BEGINNING ...]

needs the extra `live` (torch, transformers). With beginnings of names of classes it writes the files of these alone.

One .npz an architecture: config, inputs and weights, and for both forms of GELU every hidden state, the logits, the loss and its
gradients. Computed in float64 from float32 weights and rounded once. One of ELECTRA's joint objective: both networks, the samples that ours
drew, the loss and its gradients. And one of XLNet's two streams: both at every layer, the new memory, the logits, the loss and its
gradients, by our paths.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from jaxenc import tree
from tests.parity import pair, peer, peer_xlnet, xlnet
from tests.parity.cases import CASES, FAMILIES, GOLDEN, inputs
from tests.parity.family import Case


def arrays(case: Case) -> dict[str, np.ndarray]:
    """Everything of one architecture, by name."""
    rows = inputs(case, case.seed)
    out = {f"inputs/{name}": value for name, value in rows.items()}
    for activation in case.activations:
        model = peer.build(case, activation, case.seed)
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


def streams() -> dict[str, np.ndarray]:
    """Everything of XLNet's committed settings, by name."""
    out = {}
    for name in xlnet.COMMITTED:
        s = xlnet.SETTINGS[name]
        model = peer_xlnet.build(s)
        found, slopes = peer_xlnet.theirs(s, model, xlnet.rows(s))
        for part, held in {"weights": tree.leaves(peer_xlnet.weights(model)), "gradients": tree.leaves(slopes)}.items():
            out |= {f"{name}/{part}/{path}": value.astype(np.float32) for path, value in held}
        out |= {f"{name}/outputs/{key}": value.astype(np.float32) for key, value in found.items()}
    return out


def main(beginnings: tuple[str, ...]) -> None:
    """Writes every file, or those of the architectures whose names begin so, and says how large it is."""
    chosen = [case for name, case in CASES.items() if name.startswith(beginnings or "")]
    if not chosen:
        sys.exit(f"no class of tests/parity/families begins with {' or '.join(beginnings)}; use one of {', '.join(FAMILIES)}")
    for case in chosen:
        write(GOLDEN / f"{case.architecture}.npz", arrays(case))
    if beginnings:
        return
    write(pair.FILE, joint())
    write(xlnet.FILE, streams())


def write(path: Path, held: dict[str, np.ndarray]) -> None:
    """One file."""
    np.savez_compressed(path, **held)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
