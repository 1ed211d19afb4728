"""The notebook that reads checkpoints closely: each of its three small models shows its point."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("checkpoint.ipynb", tmp_path)
    for family, loss in (("electra", "mlm_loss"), ("electra", "rtd_loss"), ("xlnet", "plm_loss"), ("elmo", "forward_loss")):
        line = rf"{family}: {loss} ([\d.]+) at the start, {{}} held out at the end"
        assert done.number(line.replace("{}", r"[\d.]+")) > 2 * done.number(line.replace(r"([\d.]+)", r"[\d.]+").replace("{}", r"([\d.]+)"))
    # The altered word stands out in most sentences; by chance it would in one of 13.
    assert done.number(r"highest probability in (\d+) of") > 0.6 * done.number(r"highest probability in \d+ of (\d+)")
    assert "has not learned enough" not in done.printed
    # Orders differ, the altered sentence costs more, and a prediction that sees more costs less.
    assert done.number(r"orders of one sentence: ([\d.]+)") > 0.02
    assert done.number(r"less probable in (\d+) of 20") >= 18
    assert done.number(r"of the first prediction ([\d.]+)") > 1 + done.number(r"of the last ([\d.]+)")
    # The letters of a word are in the word: layer 0; the subject of the sentence is in the layers above.
    share = lambda task: done.number(rf"{task} \| in the mix: \['([\d.]+)'")
    assert share("first letter of the word") > 0.2 + share("subject of the sentence")
    known = lambda layer: done.number(rf"subject of the sentence .*'{layer}': '([\d.]+)'")
    assert known(2) > 0.2 + known(0)
    curves, parts, heat, scores, mix = range(5)
    assert len(done.pictures) == 5
    assert all(
        done.colours(picture, "#0072B2") > least for picture, least in ((curves, 0.0005), (parts, 0.02), (scores, 0.0005), (mix, 0.02))
    )
    assert done.colours(scores, "#D55E00") > 0.0005 and done.colours(mix, "#D55E00") > 0.01
    assert done.pictures[heat][..., 2].std() > 0.1, "light and dark boxes"
