"""Folders as AllenNLP published them, made with h5py: names, shapes and layouts written down by hand, values random."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

WIDTH, CELLS, CHARACTER, FILTERS = 6, 10, 3, ((1, 4), (2, 5), (3, 2))
SUM = sum(count for _, count in FILTERS)


def options(**lstm: Any) -> dict[str, Any]:
    """options.json of a published model; lstm: what differs in its `lstm`."""
    return {
        "lstm": {"use_skip_connections": True, "projection_dim": WIDTH, "cell_clip": 3, "proj_clip": 3, "dim": CELLS, "n_layers": 2} | lstm,
        "char_cnn": {
            "activation": "relu",
            "filters": [list(one) for one in FILTERS],
            "n_highway": 2,
            "embedding": {"dim": CHARACTER},
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    }


def shapes(layers: int = 2, highways: int = 2) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the datasets."""
    out: dict[str, tuple[int, ...]] = {"char_embed": (261, CHARACTER), "CNN_proj/W_proj": (SUM, WIDTH), "CNN_proj/b_proj": (WIDTH,)}
    for i, (width, count) in enumerate(FILTERS):
        out |= {f"CNN/W_cnn_{i}": (1, width, CHARACTER, count), f"CNN/b_cnn_{i}": (count,)}
    for i in range(highways):
        out |= {f"CNN_high_{i}/{name}": (SUM, SUM) for name in ("W_carry", "W_transform")}
        out |= {f"CNN_high_{i}/{name}": (SUM,) for name in ("b_carry", "b_transform")}
    for direction in range(2):
        for i in range(layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            out |= {f"{cell}/W_0": (2 * WIDTH, 4 * CELLS), f"{cell}/B": (4 * CELLS,), f"{cell}/W_P_0": (CELLS, WIDTH)}
    return out


def arrays(layers: int = 2, highways: int = 2) -> dict[str, np.ndarray]:
    """{name: float32 array}, each distinct from every other."""
    random = np.random.default_rng(7)
    return {name: 0.5 * random.standard_normal(shape, np.float32) for name, shape in shapes(layers, highways).items()}


def write(folder: Path, settings: dict[str, Any], values: dict[str, np.ndarray], prefix: str = "") -> Path:
    """`folder` with both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{prefix}options.json").write_text(json.dumps(settings))
    with h5py.File(folder / f"{prefix}weights.hdf5", "w") as file:
        for name, array in values.items():
            file[name] = array
    return folder


def read(path: Path) -> dict[str, np.ndarray]:
    """{name: array} of an HDF5 file."""
    out: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: out.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return out
