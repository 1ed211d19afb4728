import sys

import numpy as np
import pytest

from jaxenc.cli import data
from jaxenc.cli.parser import Parser
from jaxenc.data import report
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load, word_list, wordpiece
from jaxenc.errors import UserError


def run(*arguments):
    parser = Parser()
    data.add_arguments(parser)
    return data.run(parser.parse_args([str(argument) for argument in arguments]))


def test_text_to_shards(tmp_path, capsys):
    text = "\n\n".join(f"Ångström number {i} is here. It is not there." for i in range(60))
    (tmp_path / "a.txt").write_text(text)
    wordpiece.train(text.split("\n"), 70).save(tmp_path / "tok")
    assert run("--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--held-out", 0.2) == 0
    said = capsys.readouterr().out
    shards = {split: open_split(tmp_path / "data", split) for split in ("train", "held_out")}
    assert sum(len(s.documents) - 1 for s in shards.values()) == 60
    assert f"train: {len(shards['train'].documents) - 1} documents" in said and "while reading" not in said
    tool = load(tmp_path / "data" / "tokenizer")
    assert tool.decode(shards["train"].tokens.take(np.arange(len(shards["train"].tokens)))).startswith("Ångström number")


def test_what_does_not_fit_and_what_is_missing(tmp_path):
    (tmp_path / "a.txt").write_text("A.")
    with pytest.raises(UserError, match="--beam-options: only --runner beam takes them"):
        run("--input", tmp_path / "a.txt", "--tokenizer", tmp_path, "--out", tmp_path / "data", "--beam-options", "--runner X")
    with pytest.raises(UserError, match="no tokenizer.json"):
        run("--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "none", "--out", tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_without_beam_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    (tmp_path / "a.txt").write_text("a b c")
    word_list.train(["a a a b b c"], 4).save(tmp_path / "tok")
    with pytest.raises(UserError, match=r'--runner beam: needs Apache Beam; install it with `pip install "jaxenc\[beam\]"`'):
        run("--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--runner", "beam")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "tok"]


def test_duplicates_are_dropped_and_reported(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("a a b\n\nA  a b\n\nb c c")
    word_list.train(["a a a b b c A"], 4).save(tmp_path / "tok")
    given = ["--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--held-out", 0]
    assert run(*given, "--drop-duplicates", "exact") == 0
    said = capsys.readouterr().out
    assert "train: 2 documents, 2 sentences, 6 tokens" in said and "dropped: duplicate documents 1" in said and "report.md" in said


def test_a_folder_that_is_there_is_only_read(tmp_path, capsys):
    """Its report too: the second run needs no right to write. One that was killed before it had written the report writes it."""
    (tmp_path / "a.txt").write_text("a a b\n\nb c c")
    word_list.train(["a a a b b c A"], 4).save(tmp_path / "tok")
    given = ["--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--held-out", 0]
    assert run(*given) == 0
    first, before = capsys.readouterr().out, {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}
    assert run(*given) == 0
    assert capsys.readouterr().out == first and {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")} == before
    (tmp_path / "data" / report.TEXT).unlink()
    assert run(*given) == 0 and (tmp_path / "data" / report.TEXT).exists()


def test_words_that_are_predicted_as_unknown_are_counted(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("a a a b\n\nb c")
    word_list.train(["a a a b b c"], 4).save(tmp_path / "tok")
    assert run("--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--held-out", 0) == 0
    said = capsys.readouterr()
    assert "train: 2 documents, 2 sentences, 6 tokens, 50.00% predicted as unknown\n" in said.out
    assert "warning: 50.0% of the tokens are predicted as unknown" in said.err
