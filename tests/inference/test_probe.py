"""`jaxenc probe`: the table of every layer, in one command."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.inference import word_features, words
from tests import bucket, tiny
from tests.inference import probing
from tests.selection import thinned


@pytest.fixture(autouse=True)
def one_device():
    with tiny.on_one_device():
        yield


def command(model: Path, folder: Path, *more: str) -> list[str]:
    data = [
        f"--config.data.train={probing.tagged(40, folder / 'train.txt')}",
        f"--config.data.dev={probing.tagged(11, folder / 'dev.txt')}",
    ]
    given = ["--config", "tasks/frozen:words", "--workdir", str(folder / "out"), "--seeds", "2"]
    return ["probe", "--model", str(model), *data, *given, *more]


@pytest.mark.parametrize("kind, layers", thinned([("bert", 3), ("elmo", 3)], "elmo"))
def test_the_table_of_a_model(kind: str, layers: int, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A score for every layer, the mix and both baselines; the features are gone. A word always has the same tag here, so the baseline by
    word makes no error, and layer 0 of a random model has few."""
    assert main(command(probing.saved(kind, tmp_path / "model"), tmp_path, "--epochs", "30", "--batch", "16", "--lr", "0.03")) == 0
    shown = capsys.readouterr().out.splitlines()
    count = sum(len(one) for one in probing.sentences(40)), sum(len(one) for one in probing.sentences(11))
    assert shown[0] == f"{count[0]} units to train on, {count[1]} to score, 2 seeds"
    assert [line.split()[0] for line in shown[1:]] == ["layer", *map(str, range(layers)), "mix", "majority", "by"]
    found = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["probe.json"]
    assert found["metric"] == "accuracy" and found["baselines"]["by word"] == 1.0
    assert found["rows"][0]["mean"] > 0.8 and all(len(row["scores"]) == 2 for row in found["rows"])
    np.testing.assert_allclose(np.sum(found["mix"], axis=1), 1, rtol=1e-6)


def test_the_table_goes_to_a_url(bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """That of a folder, and nothing else; the features are gone from the cache. A second probe does not write over it, and one at a URL
    that may not be written to does not begin."""
    given = command(probing.saved("bert", tmp_path / "model"), tmp_path, "--epochs", "1", "--batch", "16")
    far = [*given, "--workdir", f"{bucket_url}/probes/"]
    assert main(given) == main(far) == 0
    assert [path.name for path in bucket.at(f"{bucket_url}/probes").iterdir()] == ["probe.json"]
    assert bucket.at(f"{bucket_url}/probes/probe.json").read_bytes() == (tmp_path / "out" / "probe.json").read_bytes()
    assert not any((tmp_path / "cache" / "new").iterdir())
    capsys.readouterr()
    assert main(far) == 2
    assert capsys.readouterr().err == f"jaxenc: {bucket_url}/probes: exists already, a folder with probe.json; choose another --workdir\n"
    monkeypatch.setattr(bucket.Bucket, "accident", staticmethod(bucket.cut_off("put", 403, 1)))
    assert main([*given, "--workdir", f"{bucket_url}/none"]) == 2
    said = capsys.readouterr().err
    assert re.search(r"b/none/\.probe-\w+: cannot be written \(status 403\)", said) and len(said.splitlines()) == 1


def test_texts_are_the_mean_over_their_words(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A `classify` task: without a baseline by word; --layers leaves the others out."""
    rows = "".join(f"{' '.join(one)}\t{'yes' if 'dog' in one else 'no'}\n" for one in probing.sentences(40))
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + rows)
    data = [f"--config.data.{split}={tmp_path / 'rows.tsv'}" for split in ("train", "dev")]
    given = ["--config", "tasks/text", "--workdir", str(tmp_path / "out"), "--seeds", "1", "--layers", "2"]
    training = ["--epochs", "50", "--batch", "16", "--lr", "0.03"]
    assert main(["probe", "--model", str(probing.saved("bert", tmp_path / "model")), *data, *given, *training]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["layer", "2", "mix", "majority"]
    found = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert found["rows"][1]["mean"] > found["baselines"]["majority"]
    model = probing.model("bert")
    array = word_features.write(model, probing.sentences(5), tmp_path / "f.npy", pooled=True)
    for found, one in zip(array, words.vectors(model, probing.sentences(5)), strict=True):
        np.testing.assert_allclose(found, one.mean(axis=1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pooled", [False, True])
def test_features_take_space_as_they_are_written(pooled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that a map was promised and that a full disk has not would end the process with SIGBUS, without a word."""
    model, sentences = probing.model("bert"), probing.sentences(5)
    whole = word_features.write(model, sentences, tmp_path / "whole.npy", pooled)
    full = iter([True, False])
    monkeypatch.setattr(word_features, "vectors", lambda *given: (np.ones((3, 1, 8), np.float32) if next(full) else 1 / 0 for _ in (0, 1)))
    with pytest.raises(ZeroDivisionError):
        word_features.write(model, sentences, tmp_path / "part.npy", pooled)
    row = whole[0].nbytes
    assert (tmp_path / "whole.npy").stat().st_size - (tmp_path / "part.npy").stat().st_size == whole.nbytes - row


def test_a_sentence_longer_than_the_model_takes_has_a_vector_for_every_word() -> None:
    """Each is that of a window, in which the word has at least the context of a quarter of the row; shorter ones are read whole."""
    model, long = probing.model("bert"), [probing.WORDS[(i * 3) % 10] for i in range(100)]
    short, found, empty = word_features.vectors(model, [long[:4], long, []])
    np.testing.assert_array_equal(short, next(words.vectors(model, [long[:4]])))
    assert found.shape == (3, 100, 8) and empty.shape == (3, 0, 8) and np.abs(found).sum(axis=(0, 2)).min() > 0
    plan, chosen = word_features._windows(model, long)
    assert len(plan) > 2 and (chosen >= 0).all()
    for word, number in enumerate(chosen):
        first, end = plan[number]
        whole = next(words.vectors(model, [long[first:end]]))
        np.testing.assert_array_equal(found[:, word], whole[:, word - first])


@pytest.mark.parametrize(
    "more, words",
    [
        (["--config", "tasks/frozen:tags"], "tags is not a task of this recipe"),
        (["--layers", "7"], "layer 7 was requested, but the model has 2 layers"),
        (["--layers", "first"], "--layers first: not a list of layers"),
        (["--config.train.epochs=3"], "a probe does not read this field"),
        (["--config.data.dev="], "data.dev is not set"),
        (["--workdir", "."], "exists already"),
        (["--config", "tasks/text", "--config.task.text=a,b", "--config.data.dev=pairs.tsv", "--config.data.train=pairs.tsv"], "one text"),
    ],
)
def test_what_cannot_be_is_one_line(more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    """Exit code 2, and no folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("a\tb\tlabel\n" + "the dog\tthe cat\tno\nthe dog\tthe dog\tyes\n" * 2)
    argv = command(probing.saved("bert", tmp_path / "model"), tmp_path)
    assert main([*argv, *more]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "out").exists()
