"""`jaxenc complete`: a text a line on stdout, one line on stderr where the model or the command is at its end."""

from collections.abc import Callable
from pathlib import Path

import pytest

import jaxenc
from jaxenc.cli.complete import shown
from jaxenc.cli.main import main
from jaxenc.data.sources import DataConfig
from jaxenc.data.tokenizers import Tokenizer, wordpiece
from jaxenc.families.bert.model import BertConfig
from jaxenc.inference.model import Model
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.training.run import Run
from tests import tiny

LINES = ["the quick brown fox jumps over the lazy dog", "सुख में दुख है"]


def saved(folder: Path, attention: str, objective: ObjectiveConfig, tokenizer: Tokenizer) -> Path:
    """A run directory with random weights."""
    model = BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=16, attention=attention)
    run = Run(objective, model, DataConfig(length=14)).with_vocabulary(tokenizer.vocabulary)
    Model(run, tiny.drawn(run), tokenizer).save(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("causal") / "run", "causal", CausalConfig(), wordpiece.train(LINES * 3, 120))


def test_a_text_a_line(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Texts of the command line and then those of a file, as `complete` in Python gives them; at the model's last position it says so,
    and that these are longer than a row of training."""
    (tmp_path / "more.txt").write_text("\ufeffthe fox\n\nसुख में\r\n", encoding="utf-8")
    rule = ("--temperature", "1", "--top-k", "20", "--seed", "3")
    command = ["complete", "--model", str(model), "--text", "quick", "--input", str(tmp_path / "more.txt"), "--max-new", "15", *rule]
    assert main(command) == 0
    out, err = capsys.readouterr()
    texts = ["quick", "the fox", "", "सुख में"]
    found = jaxenc.load(model).complete(texts, 15, temperature=1.0, top_k=20, seed=3)
    assert out.splitlines() == [one.text for one in found]
    assert all(one.text.startswith(text) and len(one.text) > len(text) for text, one in zip(texts, found, strict=True))
    full = [(number, len(one.tokens)) for number, one in enumerate(found, 1) if one.finish_reason == "positions"]
    assert {number for number, _ in full} & {1, 2, 4} and 3 not in dict(full)
    *stops, last = err.splitlines()
    assert stops == [f"complete: line {n} ends after {m} of 15 tokens, at the model's last position, 16" for n, m in full]
    beyond = sum(len(jaxenc.load(model).tokenizer.encode_start(one.prompt)) + len(one.tokens) > 14 for one in found)
    assert last == (
        f"complete: the model was trained on rows of 14 tokens, and {beyond} of 4 texts are longer: do not trust the text beyond that"
    )


def test_samples_and_the_most_probable_text(model: Path, capsys: pytest.CaptureFixture) -> None:
    command = ["complete", "--model", str(model), "--text", "the fox", "--max-new", "4"]
    assert main([*command, "--samples", "3", "--temperature", "1"]) == 0
    assert len(set(capsys.readouterr().out.splitlines())) == 3
    assert main([*command, "--top-k", "5"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [jaxenc.load(model).complete(["the fox"], 4)[0].text]
    assert err == "complete: --top-k has no effect without a --temperature above 0\n"


def test_a_text_that_the_vocabulary_does_not_know_is_said(model: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["complete", "--model", str(model), "--text", "the fox", "--text", "the ☃ fox Ω", "--max-new", "4"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith("the ☃ fox Ω ")
    assert err == "complete: line 2: 2 tokens of the prompt are not in the vocabulary\n"


def test_what_is_refused_is_one_line(model: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    given = ("complete", "--model", model)
    assert "no text is given; name one with --text, or a file with --input" in fails(*given)
    assert "the model takes 16, which leaves none for a continuation" in fails(*given, "--text", "the " * 16)
    assert "max_new is 0" in fails(*given, "--text", "the", "--max-new", "0")
    assert "temperature is -1.0" in fails(*given, "--text", "the", "--temperature", "-1")
    assert "temperature is nan" in fails(*given, "--text", "the", "--temperature", "nan")
    assert "top_k is 5000; it takes 0 to " in fails(*given, "--text", "the", "--top-k", "5000", "--temperature", "1")
    assert "samples is 2 and temperature 0" in fails(*given, "--text", "the", "--samples", "2")
    assert "seed is -1" in fails(*given, "--text", "the", "--seed", "-1")
    assert "none.txt: no such file" in fails(*given, "--input", tmp_path / "none.txt")
    assert "--text: empty; is a shell variable unset?" in fails(*given, "--text", "")
    other = saved(tmp_path / "masked", "full", MlmConfig(), wordpiece.train(LINES * 3, 120))
    said = fails("complete", "--model", other, "--text", "the")
    assert "this model does not predict the next token from the tokens before it" in said and "objective.kind=causal" in said


def test_a_line_stays_a_line() -> None:
    """Line ends and what a terminal obeys are escaped; joiners and marks of scripts are text."""
    assert shown("a\nb\r\x1b[2J\x85\u2028\x00") == "a\\nb\\r\\x1b[2J\\x85\\u2028\\x00"
    assert shown("می‌خواهم क्‍ष é 👨‍👩‍👧 ") == "می‌خواهم क्‍ष é 👨‍👩‍👧 "
