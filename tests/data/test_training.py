"""Training in a process of its own: R38, B24, R05, and the same vocabulary for any number of workers."""

import functools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from jaxenc.data.tokenizers import Tokenizer, bpe, training, wordpiece
from jaxenc.data.tokenizers.lines import LongWords, thinned
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from tests.group import Process

TRAIN = {"wordpiece": wordpiece.train, "bpe": bpe.train, "unigram": unigram.train}
SIZES = {"wordpiece": 150, "bpe": 300, "unigram": 100}


def letters(count: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("acdefghiklmnpqrstvwy", k=count))


def lines(count: int) -> list[str]:
    draw = random.Random(3)
    words = [letters(draw.randint(1, 6), n) for n in range(400)]
    return [" ".join(draw.choices(words, k=20)) for _ in range(count)]


@pytest.mark.parametrize("kind", TRAIN)
def test_any_number_of_workers_gives_the_same_files(kind: str, tmp_path: Path, monkeypatch) -> None:
    """As a training in this process does."""
    train = functools.partial(TRAIN[kind], vocab_size=SIZES[kind])
    train(lines(500)).save(tmp_path / "here")
    monkeypatch.setattr(training, "SMALL", 100)
    for workers in (1, 3):
        training.train_and_save(train, iter(lines(500)), tmp_path / str(workers), workers)
        for path in (tmp_path / "here").iterdir():
            assert path.read_bytes() == (tmp_path / str(workers) / path.name).read_bytes(), path.name


def refused(texts: Iterable[str]) -> Tokenizer:
    raise UserError("--vocab-size 3: too small")


def died(texts: Iterable[str]) -> Tokenizer:
    os._exit(7)


def killed(texts: Iterable[str]) -> Tokenizer:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.parametrize(
    "train, said",
    [
        (refused, "too small"),
        (
            died,
            r"died \(exit code 7\); if an error is above, fix it, and in a script of yours make this call under `if __name__ == '__main_",
        ),
        (killed, "tokenizer: the process that trains was killed, most likely out of memory; train on less text"),
    ],
)
def test_what_goes_wrong_in_the_process_is_one_line(train, said: str, tmp_path: Path, monkeypatch) -> None:
    """Also where it ends before it has read all texts."""
    monkeypatch.setattr(training, "SMALL", 100)
    with pytest.raises(UserError, match=said):
        training.train_and_save(train, iter(["word " * 1000] * 2000), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_error_of_the_texts_ends_the_process(tmp_path: Path, monkeypatch) -> None:
    def texts():
        yield from lines(50)
        raise UserError("a.txt:7: damaged")

    monkeypatch.setattr(training, "SMALL", 100)
    with pytest.raises(UserError, match="a.txt:7"):
        training.train_and_save(functools.partial(bpe.train, vocab_size=300), texts(), tmp_path / "out")
    for workers, said in ((0, "use 1 to "), (10**8, "use 1 to ")):
        with pytest.raises(UserError, match=f"--workers {workers}: .*{said}"):
            training.train_and_save(functools.partial(bpe.train, vocab_size=300), iter(lines(5)), tmp_path / "out", workers)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "sign, code",
    [(signal.SIGTERM, 75), *(pytest.param(*one, marks=pytest.mark.full) for one in ((signal.SIGINT, 1), (signal.SIGKILL, -9)))],
)
def test_r38_a_training_ends_within_seconds_of_a_signal(sign: signal.Signals, code: int, tmp_path: Path) -> None:
    """While the library chooses pieces of unbroken text, for which it takes minutes: neither process is left, nor a folder."""
    (tmp_path / "text").write_text("\n".join(letters(3000, n) for n in range(600)))
    command = [
        Path(sys.executable).with_name("jaxenc"),
        "tokenizer",
        "--input",
        "text",
        "--type",
        "unigram",
        "--vocab-size",
        "8000",
        "--out",
        "out",
    ]
    with Process(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while "all is read" not in (line := process.stderr.readline()):
            assert line
        (child,) = [int(pid) for pid in children(process.pid)]
        process.send_signal(sign)
        try:
            said = process.communicate(timeout=60)[1]  # until both have closed it
        finally:
            left = alive(child)
            if left:
                os.kill(child, signal.SIGKILL)
    assert process.returncode == code and not left, said
    assert not (tmp_path / "out").exists()
    assert sign == signal.SIGKILL or "interrupted: nothing half-written is left" in said


def children(pid: int) -> list[str]:
    """Of a process, those that train, and not the tracker of Python's own resources."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_r38_words_without_end_are_thinned_out() -> None:
    """To a bound, from all of the corpus, and only they."""
    texts = [f"short words {letters(1000, n)} here" for n in range(400)]
    counts = LongWords()
    found = list(thinned(texts, counts, most=40_000))
    assert counts.all == sum(map(len, texts)) and counts.long == 400_000 and 25_000 < counts.used <= 40_000
    assert sum(len(word) for text in found for word in text.split() if len(word) > 100) == counts.used
    kept = [n for n, text in enumerate(found) if len(text) > 120]
    assert kept[:20] == list(range(20)) and max(kept) > 300
    assert all(text.startswith("short words") and text.endswith("here") for text in found)
    assert list(thinned(texts[:30], LongWords(), most=60_000)) == texts[:30]
    assert found == list(thinned(iter(texts), LongWords(), most=40_000))


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    """The process that is spawned imports the script, which would start another one; Python ends it."""
    text = ["from pathlib import Path", "from jaxenc.data.tokenizers import bpe, training", "training.SMALL = 100"]
    text += ["import functools", "train = functools.partial(bpe.train, vocab_size=300)"]
    text += ["training.train_and_save(train, iter(['a word ' * 90] * 9), Path('out'))"]
    (tmp_path / "mine.py").write_text("\n".join(text) + "\n")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert done.returncode and "in a script of yours make this call under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]
    assert "out of memory" not in done.stderr
