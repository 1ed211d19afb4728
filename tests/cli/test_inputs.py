"""The arguments of `tokenizer` and `data` that say where text comes from: the same in both."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from jaxenc.cli import data, inputs, tokenizer
from jaxenc.cli.main import main
from jaxenc.cli.parser import Formatter, Parser
from jaxenc.data import manifest
from jaxenc.data.readers import Reading
from jaxenc.data.readers.document import described
from tests.data.readers.test_columns import save

TEXTS = [f"Document number {i} is here. It is about the number {i}." for i in range(80)]


def run(command, *arguments):
    parser = Parser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(argument) for argument in arguments]))


def built(tmp_path, *how):
    """The number of documents, after both commands have read the same inputs."""
    assert run(tokenizer, *how, "--vocab-size", 90, "--out", tmp_path / "tok") == 0
    assert run(data, *how, "--tokenizer", tmp_path / "tok", "--out", tmp_path / "data", "--held-out", 0.2) == 0
    return sum(split.documents for split in manifest.read(tmp_path / "data").splits.values())


def write_folder(folder):
    for i, text in enumerate(TEXTS):
        (folder / f"{i}.txt").write_text(text)
    return (folder,)


def write_parquet(folder):
    pa.parquet.write_table(pa.table({"content": TEXTS, "id": range(len(TEXTS))}), folder / "a.parquet")
    return (folder / "a.parquet", "--field", "content")


def write_saved(folder):
    save(folder / "set" / "train", TEXTS)
    (folder / "set" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return (f"{folder}/set:train",)


def write_lines(folder):
    (folder / "a.txt").write_text("\n".join(TEXTS))
    return (folder / "a.txt", "--document", "line")


def write_code_page(folder):
    (folder / "a.csv").write_bytes("\n".join(["text;id", *(f"{text} Größe;{i}" for i, text in enumerate(TEXTS))]).encode("cp1252"))
    return (folder / "a.csv", "--encoding", "cp1252", "--field", "text")


@pytest.mark.parametrize("write", [write_folder, write_parquet, write_saved, write_lines, write_code_page])
def test_r08_both_commands_read_the_same_inputs(tmp_path, write):
    (tmp_path / "in").mkdir()
    assert built(tmp_path, "--input", *write(tmp_path / "in")) == len(TEXTS)


def test_r06_a_corpus_without_a_blank_line_is_one_document_and_both_the_reason_and_the_way_out_are_said(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    assert built(tmp_path, "--input", tmp_path / "a.txt") == 1
    said = capsys.readouterr().err
    assert f"data: warning: {tmp_path / 'a.txt'}: has no blank line, so it is one document: put a blank line" in said
    assert "--document line" in said


def test_another_reading_of_the_same_file_is_not_taken_for_the_same_data(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    built(tmp_path, "--input", tmp_path / "a.txt", "--document", "line")
    how = (
        "data",
        "--input",
        str(tmp_path / "a.txt"),
        "--tokenizer",
        str(tmp_path / "tok"),
        "--out",
        str(tmp_path / "data"),
        "--held-out",
        "0.2",
    )
    assert main([*how, "--document", "line"]) == 0 and "holds this data already" in capsys.readouterr().err
    assert main(list(how)) == 2 and "holds data of other inputs" in capsys.readouterr().err


def test_r04_debris_trains_no_vocabulary(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes("هذا هو النص العربي.\n".encode("utf-16-le") * 40)
    assert main(["tokenizer", "--input", str(tmp_path / "a.txt"), "--out", str(tmp_path / "tok")]) == 2
    assert "a.txt: is not UTF-8 text" in capsys.readouterr().err and not (tmp_path / "tok").exists()


def test_r40_what_was_changed_is_said_by_both(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n\n".join(TEXTS))
    built(tmp_path, "--input", tmp_path / "a.txt", tmp_path / "a.txt")
    said = capsys.readouterr()
    assert "tokenizer: while reading: repeated files 1" in said.err and said.out.count("while reading: repeated files 1") == 1


@pytest.mark.parametrize("command", [tokenizer, data])
def test_the_help_fits_a_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    parser = Parser(prog="jaxenc command", formatter_class=Formatter)
    command.add_arguments(parser)
    assert len(parser.format_help().splitlines()) <= 40


def test_the_defaults_are_those_of_reading():
    parser = Parser()
    inputs.add_arguments(parser)
    assert inputs.reading(parser.parse_args(["--input", "a"])) == Reading()
    given = "--input a --field f --document line --format csv --encoding cp1252 --tfds-dir d"
    assert inputs.reading(parser.parse_args(given.split())) == Reading("f", "line", "csv", "cp1252", "d")


def test_what_was_noticed_is_in_words():
    counts = json.loads('{"nul": 1200, "split_lines": 0, "skipped_files": 2, "undivided_files": 1}')
    assert described(counts) == "NUL characters removed 1,200, skipped files 2, files without a blank line 1"
