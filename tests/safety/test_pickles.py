"""Weights that would run something, were they unpickled."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from tests.convert import folders


class Trap:
    """Unpickling it makes the file `mark`."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple:
        return Path.touch, (self._mark,)


def plain(trap: Trap) -> bytes:
    return pickle.dumps({"weight": trap})


def zipped(trap: Trap) -> bytes:
    """As torch.save has written since 2020."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in (("data.pkl", plain(trap)), ("version", b"3\n"), ("byteorder", b"little")):
            archive.writestr(f"archive/{name}", part)
    return content.getvalue()


@pytest.mark.parametrize("written", [plain, zipped])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_a_pickle_of_weights_is_one_line_and_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture, written: Callable[[Trap], bytes], name: str
) -> None:
    """With torch, which is asked for weights only, as without it; and under another name."""
    mark, folder = tmp_path / "ran", tmp_path / "theirs"
    folder.mkdir()
    content = written(Trap(mark))
    (folder / name).write_bytes(content)
    (folder / "config.json").write_text(json.dumps(folders.config("BertModel")))
    assert main(["convert", "--from", f"hf:{folder}", "--to", str(tmp_path / "ours")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{folder / name}: " in said, said
    assert not mark.exists() and not (tmp_path / "ours").exists()
    # The trap is one: unpickled, it springs.
    pickle.loads(plain(Trap(mark)))
    assert mark.exists()
