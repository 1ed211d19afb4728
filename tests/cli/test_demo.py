"""What `jaxenc demo` says when it is asked to stop."""

from pathlib import Path
from unittest import mock

import pytest

from jaxenc.cli import demo
from jaxenc.cli.main import main
from jaxenc.training.loop import Outcome


def test_a_demo_that_is_stopped_says_how_it_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Exit code 75 and the line of `pretrain`, where the run lies; nothing is reported of half a run."""
    (tmp_path / "run" / "checkpoints" / "3").mkdir(parents=True)
    with mock.patch.object(demo, "main", return_value=0), mock.patch.object(demo, "pretrain", return_value=Outcome(3, True, {})):
        assert main(["demo", "--workdir", str(tmp_path)]) == 75
    said = capsys.readouterr().err
    assert said.endswith(f"\n{tmp_path / 'run'}: stopped at step 3, checkpoint written: run the same command to continue\n")
