"""`jaxenc bench data` and `jaxenc data --inspect`."""

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxenc.bench import data as bench
from jaxenc.cli.main import main
from jaxenc.data import inspect
from jaxenc.data.build import build
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.tokenizers import wordpiece


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, draw = tmp_path_factory.mktemp("bench"), np.random.default_rng(0)
    sentence = lambda: " ".join(draw.choice(["ban", "der", "kilo", "muda"], draw.integers(2, 20))) + "."
    (place / "text.txt").write_text("\n\n".join("\n".join(sentence() for _ in range(draw.integers(1, 9))) for _ in range(200)))
    wordpiece.train((place / "text.txt").read_text().split("\n"), 60).save(place / "tokenizer")
    build([str(place / "text.txt")], place / "tokenizer", place / "data", held_out=0.1)
    return place / "data"


def test_each_kind_of_row_is_one_line_of_json(folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds that the folder cannot give are left out, with the reason."""
    monkeypatch.setattr(bench, "CONSUMED", 1e9)
    assert main(["bench", "data", "--data", str(folder), "--steps", "2"]) == 0
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    names = [(line["rows"], line["length"]) for line in lines]
    assert len(names) == len(bench.KINDS) - 1 and ("packed", 128) in names and ("text", 512) in names
    assert all(line["tokens_per_second"] > 0 and 0 <= line["waited"] <= 1 for line in lines)
    assert err.count("left out:") == 1 and "streams" in err


@pytest.mark.parametrize("given", [["--config", "bert/tiny"], ["--rows", "3"], ["--config.train.batch=3"]])
def test_bench_data_takes_no_options_of_the_others(given: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(["bench", "data", *given]) == 2
    assert f"{given[0]}: `jaxenc bench data` does not take it" in capsys.readouterr().err


def test_bench_of_what_is_no_data_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["bench", "data", "--data", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr().err
    assert "nowhere" in said and "made by `jaxenc data`" in said and said.count("\n") == 1


def test_the_loop_counts_the_batches_that_it_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of ours: batches of 30 tokens at 3 a second are due every 10 s; numbers 3, 5 and 6 arrive 0.5 s after they are asked for."""
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def arriving(function: Any, steps: Any) -> Iterator[Any]:
        for step in steps:
            now[0] += 0.5 * (step in (3, 5, 6))
            yield function(step)

    monkeypatch.setattr(bench, "time", types.SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(bench, "prefetch", arriving)
    waited, reached = bench.consume(lambda step: step, 11, 30, 3)
    assert waited == 0.3 and reached == pytest.approx(3.0)


def test_the_made_up_folder_gives_words_with_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.made_up(30) as made, bench.made_up(30) as again:
        first, second = (open_source(DataConfig(path=one, length=32), "train", 0, False) for one in (made, again))
        assert first.fingerprint == second.fingerprint and first.shards.characters is not None
    assert not Path(made).exists()


def test_inspect_shows_facts_sizes_and_rows(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "--inspect", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    source = open_source(DataConfig(path=str(folder), length=inspect.LENGTH, rows="packed"), "train", 0, True)
    facts = source.shards.manifest
    assert f"{facts.splits['train'].tokens:,} tokens" in "\n".join(lines) and facts.fingerprint[:12] in lines[0]
    assert sum(line.startswith("train row") for line in lines) == inspect.ROWS
    sizes = next(line for line in lines if line.startswith("bytes:"))
    on_disk = {s: sum(p.stat().st_size for p in folder.rglob(f"*.{s}")) for s in ("tokens", "words", "sentences", "documents")}
    assert all(f"{suffix} {size:,}" in sizes for suffix, size in on_disk.items())
    row = next(line for line in lines if line.startswith("train row"))
    number = int(row.split()[2].replace(",", ""))
    tokens, segments = (source.rows(0, np.array([number]))[name][0] for name in ("tokens", "segments"))
    said = row.split("): ")[1].split(" + ")[0]
    assert said.count("|") == segments.max() - 1 and len(said.replace(" |", "").split()) == (segments > 0).sum()
    assert said.split()[0] == "[CLS]" and said.count("[SEP]") == segments.max() == (tokens == 3).sum()


def test_inspect_of_what_is_no_data_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "--inspect", str(tmp_path)]) == 2
    assert "name a folder made by `jaxenc data`" in capsys.readouterr().err
