"""What a report shows, by the names of the metrics, and the table in the terminal."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from jaxenc import config
from jaxenc.cli.main import main
from jaxenc.data import baselines
from jaxenc.data.sources import DataConfig
from jaxenc.reports.panels import TOKENS, groups
from jaxenc.reports.report import report
from jaxenc.training.run import Run
from tests.reports.runs import make, metrics

MASKED = {"mask_rate": 0.15, "mlm_accuracy": 0.3, "mlm_loss": 4.0, "padding": 0.0, "lr": 1e-4, "seconds": 1.0}
PAIRS = MASKED | {"next_sentence_accuracy": 0.8, "next_sentence_loss": 0.4}
DETECTED = MASKED | {
    name: 0.5 for name in ("rtd_accuracy", "rtd_auc", "rtd_loss", "rtd_precision", "rtd_recall", "replaced", "mlm_entropy")
}
BOTH = {"backward_loss": 2.1, "forward_accuracy": 0.4, "forward_loss": 2.0}
SHARES = {"accuracy": ["mlm_accuracy", "rtd_accuracy"], "detection": ["rtd_auc", "rtd_precision", "rtd_recall", "rtd_auc_identity"]}
LR = {"learning rate": ["lr"]}
TUNED = {"loss": 0.4, "accuracy": 0.9, "f1_creative-work": 0.5, "mfu": 0.0, "skipped": 0.0}


def rows(numbers: dict[str, float], held_out: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {"step": 10, "split": "train", **numbers},
        {"step": 20, "split": "train", **numbers},
        {"step": 20, "split": "held_out", **held_out},
    ]


@pytest.mark.parametrize(
    "numbers, held_out, expected",
    [
        (MASKED, {}, {TOKENS: ["mlm_loss"], "accuracy": ["mlm_accuracy"], **LR, "share of tokens": ["mask_rate", "padding"]}),
        (PAIRS, {}, {
            TOKENS: ["mlm_loss"],
            "other losses, nats": ["next_sentence_loss"],
            "accuracy": ["mlm_accuracy", "next_sentence_accuracy"],
            **LR, "share of tokens": ["mask_rate", "padding"],
        }),
        (DETECTED, {"rtd_auc_identity": 0.6}, {
            TOKENS: ["mlm_loss"], "other losses, nats": ["rtd_loss"], **SHARES,
            **LR, "share of tokens": ["mask_rate", "replaced", "padding"], "mlm_entropy": ["mlm_entropy"],
        }),
        (BOTH, {"forward_perplexity": 7.4}, {TOKENS: ["backward_loss", "forward_loss"], "accuracy": ["forward_accuracy"]}),
        (TUNED, {}, {TOKENS: [], "total loss": ["loss"], "accuracy": ["accuracy"], "f1_creative-work": ["f1_creative-work"]}),
        ({}, {}, {TOKENS: []}),
    ],
)  # fmt: skip
def test_each_metric_has_its_panel(numbers: dict, held_out: dict, expected: dict) -> None:
    assert groups(rows(numbers, {**numbers, **held_out})) == expected


def test_the_table_says_how_many_predictions_a_number_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    row = {"step": 20, "split": "held_out", "mlm_loss": 4.0, "mlm_predictions": 12345, "seconds": 1.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(Run())))
    assert main(["report", "--workdir", str(tmp_path), "--no-baselines"]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[:2]]
    assert shown == ["held out mlm_loss 4.0000 at step 20", "held out mlm_predictions 12,345 at step 20"]


def test_a_causal_loss_stands_beside_its_perplexity(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    row = {"step": 20, "split": "held_out", "causal_loss": 2.0, "seconds": 1.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(Run())))
    assert main(["report", "--workdir", str(tmp_path), "--no-baselines"]) == 0
    assert " ".join(capsys.readouterr().out.splitlines()[0].split()) == "held out causal_loss 2.0000 at step 20, perplexity 7.4"


def test_losses_of_directions_stand_beside_their_perplexities_and_the_counts(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    row = {"step": 20, "split": "held_out", "forward_loss": 2.0, "forward_perplexity": 7.389, "seconds": 1.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict(Run(data=DataConfig(str(data), 20, "sentences")))))
    assert main(["report", "--workdir", str(tmp_path)]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[:-2]]
    assert shown[0] == "held out forward_loss 2.0000 at step 20, perplexity 7.4"
    counts = baselines.sentence_baselines(str(data))
    assert shown[1:] == [f"counts {name} {nats:.4f} nats a token, perplexity {math.exp(nats):,.1f}" for name, nats in counts.items()]


def test_the_data_is_counted_once(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the numbers and for the comments."""
    made, calls = make(tmp_path / "run", metrics(), run=Run(data=DataConfig(str(data), 20))), []
    count = baselines.count_baselines
    monkeypatch.setattr(baselines, "count_baselines", lambda path: calls.append(path) or count(path))
    found = report(made)
    assert calls == [str(data)] and found.counts == count(str(data))
    assert f"{found.counts['unigram']:.4f}" in found.page.read_text() and "position" in found.page.read_text()
