"""`jaxenc predict` on tagged files: it reads the sentences that fine-tuning reads, and never takes a word and its tag for a sentence."""

import dataclasses
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxenc.errors import UserError
from jaxenc.inference.predict import of_file
from jaxenc.tasks import squad_files
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.task import Example, Task
from jaxenc.tasks.unlabelled import read

TASK = Tag(labels=("O", "B-PER", "I-PER"), unread="O")
CONLL = "-DOCSTART- O\n\nAnna B-PER\nlaughs O\n\nyes O\n"
ROW = "{0}\t{1}\t_\t{2}" + "\t_" * 6 + "\n"
CONLLU = "# sent_id = a7\n" + ROW.format(1, "Anna", "NOUN") + ROW.format(2, "laughs", "VERB") + "\n" + ROW.format(1, "yes", "X")


@dataclasses.dataclass
class Asked:
    """In the place of a Predictor: it answers with what it was asked."""

    task: Task

    def answers(self, given: Iterator, batch: int) -> Iterator:
        for one in given:
            yield Taken((one,))


@dataclasses.dataclass
class Taken:
    examples: tuple


def asked(task: Task, file: Path, coding: str = "") -> list[Example]:
    return [one for some in of_file(Asked(task), str(file), 8, coding) for one in some.examples]


@pytest.mark.parametrize("name", ["x.conll", "x.conllu", "x.CONLL", "x.bio", "x.conll.gz", "x.conllu.gz"])
def test_sentences_are_those_that_fine_tuning_reads(name: str, tmp_path: Path) -> None:
    """Their words, names and places in the file are the same; no tag is part of them, whatever the tags of the file are."""
    content = CONLLU if ".conllu" in name else CONLL
    file = tmp_path / name
    file.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    found = asked(TASK, file)
    trained = dataclasses.replace(TASK, scheme="none", labels=()).examples(FilesConfig(dev=str(file)), "dev")
    assert found == [dataclasses.replace(one, tags=()) for one in trained]
    assert [one.words for one in found] == [("Anna", "laughs"), ("yes",)]
    assert [one.name for one in found] == (["a7", "1"] if ".conllu" in name else ["0", "1"])


@pytest.mark.parametrize("impossible", [False, True])
def test_questions_of_squad(impossible: bool, tmp_path: Path) -> None:
    """With their own ids, without their answers; a .json of records is read as records are."""
    answers = {"answers": [], "is_impossible": True} if impossible else {"answers": [{"text": "b", "answer_start": 2}]}
    asking = {"id": "q7", "question": "what?", **answers}
    nested = {"version": "1", "data": [{"paragraphs": [{"context": "a b", "qas": [asking]}]}]}
    flat = {"data": [{**asking, "context": "a b"}]}
    for content in (nested, flat):
        (tmp_path / "x.json").write_text(json.dumps(content))
        (one,) = asked(SpanQa(), tmp_path / "x.json")
        assert (one.name, one.question, one.context, one.answers, one.impossible) == ("q7", "what?", "a b", (), False)
    (tmp_path / "x.json").write_text(json.dumps([{"question": "what?", "context": "a b"}]))
    assert [one.values for one in asked(SpanQa(), tmp_path / "x.json")] == [{"question": "what?", "context": "a b"}]


def test_a_long_list_of_rows_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only SQuAD's own file is: the rows of any other are read a part at a time."""
    (tmp_path / "x.json").write_text(json.dumps([{"question": "what?", "context": "a b"}], indent=1))
    monkeypatch.setattr(squad_files, "read_json", lambda *given: pytest.fail("was read whole"))
    assert [one.values["context"] for one in asked(SpanQa(), tmp_path / "x.json")] == ["a b"]


def test_a_column_of_words_by_number(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("1 Anna O\n2 laughs O\n")
    assert [one.words for one in asked(dataclasses.replace(TASK, words="2"), tmp_path / "x.conll")] == [("Anna", "laughs")]


@pytest.mark.parametrize("content", [CONLL, "-DOCSTART- -X- O\n\nAnna NNP B-PER\nlaughs VBZ O\n", CONLL.replace(" ", "\t")])
def test_tagged_words_in_a_txt_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(content)
    with pytest.raises(
        UserError, match=r"x.txt: has a word and its tag a line, and a .txt is read as a sentence a line; save it as a .conll"
    ):
        asked(TASK, tmp_path / "x.txt")


@pytest.mark.parametrize("content", ["Anna laughs\nyes no\n", "O\nO\n", "I want O\nyes\n", "yes O"])
def test_a_sentence_a_line_stays_one(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(content)
    assert [one.values for one in asked(TASK, tmp_path / "x.txt")] == [{"text": line} for line in content.strip().split("\n")]


def test_what_is_not_read_is_refused(tmp_path: Path) -> None:
    """Another suffix, an encoding of a format that has one, and sentences of words for a task on texts."""
    for name in ("x.conll", "x.xml", "x.conllu.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(CONLL.encode()) if name.endswith(".gz") else CONLL.encode())
        suffix = name.removesuffix(".gz")[1:]
        message = (
            rf"{name}: a file of the kind {suffix} is not read; save it as one of .txt, .tsv, .tab, .csv, .jsonl, .json, .ndjson, .parq"
        )
        with pytest.raises(UserError, match=message):
            asked(Classify(), path)
    with pytest.raises(UserError, match="--encoding cp1252: files of this kind are UTF-8 or UTF-16; leave it out, and convert the file"):
        asked(TASK, tmp_path / "x.conll", "cp1252")
    (tmp_path / "x").write_text("a\n")
    assert [dict(one.values) for one in read(str(tmp_path / "x"), ())] == [{"text": "a"}]


@pytest.mark.parametrize(
    "task, name, content", [(Tag(), "x.conll", CONLL), (SpanQa(), "x.json", '{"data": []}')], ids=("columns", "questions")
)
def test_an_encoding_of_a_format_that_has_one_is_refused_in_training_too(task: Task, name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    files = FilesConfig(str(tmp_path), name, encoding="cp1252")
    with pytest.raises(
        UserError, match=rf"data.encoding=cp1252, \S*{name}: files of this kind are UTF-8 or UTF-16; leave it out, and conv"
    ):
        task.examples(files, "train")
