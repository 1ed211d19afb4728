"""Runs a notebook in a new kernel: what it printed, and its pictures."""

import base64
import dataclasses
import io
import re
from pathlib import Path

import matplotlib.image
import nbclient
import nbformat
import numpy as np

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@dataclasses.dataclass(frozen=True)
class Executed:
    """printed: stdout of all cells. pictures: those of all cells, in order, float [height, width, 4]."""

    printed: str
    pictures: list[np.ndarray]

    def number(self, pattern: str) -> float:
        """The number that the only group of `pattern` matches in what was printed."""
        found = re.search(pattern, self.printed)
        assert found, f"{pattern!r} is not in:\n{self.printed}"
        return float(found[1])

    def colours(self, picture: int, colour: str) -> float:
        """The share of a picture that has a colour, #RRGGBB, to 2 of 255."""
        wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        return float((np.abs(self.pictures[picture][..., :3] - wanted).max(axis=-1) < 2.5 / 255).mean())


def execute(name: str, folder: Path, **settings: str) -> Executed:
    """Runs every cell in `folder`; a cell that raises fails the test. settings: of its second cell, such as RUN."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "a notebook is committed without its outputs"
    for setting, value in settings.items():
        cell = next(cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.startswith("RUN = "))
        assert f'{setting} = ""' in cell.source
        cell.source = cell.source.replace(f'{setting} = ""', f"{setting} = {value!r}")
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    png = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    pictures = [matplotlib.image.imread(io.BytesIO(base64.b64decode(one))) for one in png]
    assert all(np.unique((one[..., :3] * 255).astype(int).reshape(-1, 3), axis=0).shape[0] > 20 for one in pictures), "an empty picture"
    return Executed("".join(output.get("text", "") for output in outputs if output.get("name") == "stdout"), pictures)
