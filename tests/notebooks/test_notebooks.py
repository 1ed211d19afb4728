"""Every notebook runs from its first cell to its last, in a new kernel, and says what it should."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def run(name: str, folder: Path) -> str:
    """All that its cells printed; a cell that raises fails the test."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "a notebook is committed without its outputs"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


@pytest.mark.full
def test_load_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model trained on the spot fills in the word that its text has, and is exported. One device, as on a laptop; 60 s."""
    monkeypatch.delenv("XLA_FLAGS")
    printed = run("load_checkpoint.ipynb", tmp_path)
    assert "200 held out" in printed and "BertForMaskedLM opens" in printed
    assert "bank of the [MASK] on monday" in printed and any(f"  {word} 0." in printed for word in ("river", "lake", "stream"))
    assert "bank for a [MASK] yesterday" in printed and "  loan 0." in printed
