"""The notebook of fine-tuning: few labels go further with an encoder than with counts of words. One device, as on a laptop."""

from pathlib import Path

import pytest

from tests.notebooks.executed import execute


@pytest.mark.full
def test_finetune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    done = execute("finetune.ipynb", tmp_path)
    fine_tuned, words = done.number(r"'fine-tuned, median of 5': ([\d.]+)"), done.number(r"'bag of words': ([\d.]+)")
    assert done.number(r"'majority class': ([\d.]+)") == 0.25 < words < fine_tuned - 0.1 and fine_tuned > 0.85
    assert done.number(r"accuracy of each seed: .*median ([\d.]+)") == fine_tuned
    assert done.number(r"after fine-tuning: the topic explains (\d+)%") > done.number(r"before fine-tuning: the topic explains (\d+)%")
    for topic, text in {"sea": "a whale swam", "kitchen": "the chef never", "office": "the director read"}.items():
        assert done.number(rf"{topic} +([\d.]+)  {text}") > 0.5
    assert "the copy gives the same answers: True" in done.printed and "BertForSequenceClassification opens" in done.printed
    bars, table, vectors = range(len(done.pictures))
    assert done.colours(bars, "#56B4E9") > 0.05 and done.colours(table, "#08306B") > 0.02
    assert all(done.colours(vectors, colour) > 0.001 for colour in ("#0072B2", "#E69F00", "#009E73", "#CC79A7"))
