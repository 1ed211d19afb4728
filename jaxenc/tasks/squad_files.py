"""Reads files of SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016 and 2018) and checks where their answers are."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jaxenc.data import remote
from jaxenc.data.readers.streams import HEAD
from jaxenc.errors import UserError
from jaxenc.files import read_json
from jaxenc.tasks.task import Example

T = TypeVar("T")
# Python's types by the names that JSON has for them.
KINDS = {list: "a list", dict: "an object", str: "a string", int: "an integer", bool: "true or false"}
FORMAT = "use a file of SQuAD 1.1 or 2.0, or flat records with id, question, context and answers under data"
LOST = -1  # the start of an answer that the context does not hold where the file says


@dataclasses.dataclass(frozen=True)
class Question(Example):
    """One question about one text.

    name: its id. where: the file and the id. answers: (text, start) of every annotated answer, `start` being its first
    character in `context`, or LOST where context[start : start + len(text)] is not the text. impossible: the context has no answer
    (SQuAD 2.0). A question without answers that is not impossible is not labelled, as in a test set.
    """

    question: str
    context: str
    answers: tuple[tuple[str, int], ...]
    impossible: bool

    @property
    def right(self) -> list[str] | None:
        """See `Example.right`: every annotated answer, [] where there is none."""
        return [text for text, _ in self.answers] if self.labelled else None

    @property
    def labelled(self) -> bool:
        """Whether the file says what the answer is, or that there is none."""
        return self.impossible or bool(self.answers)

    @property
    def target(self) -> tuple[str, int] | None:
        """The answer to train on: the first one that is where the file says; None where there is none, or the context has no answer."""
        return next((answer for answer in self.answers if answer[1] != LOST), None)


def read(path: str | Path) -> tuple[Question, ...]:
    """The questions of a file, in its order. path: its path or its URL.

    The file is SQuAD's own JSON (data, paragraphs, qas) or has flat records {id, question, context, answers: {text, answer_start}} under
    `data`, as the `datasets` library writes them. Offsets count characters, not bytes. An empty list of answers means that the question has
    no answer; a question without `answers` is not labelled. Answers that are not where the file says are kept for scoring; see `lost`.
    Raises UserError with the file and the question's id, or its place where it has no id, for anything else.
    """
    content = read_json(remote.local_copy(path), FORMAT)
    questions: dict[str, Question] = {}
    for number, entry in enumerate(_get(content, "data", list, str(path))):
        where = f"{path}: data[{number}]"
        _is(entry, dict, where, "the entry")
        for question in _of_article(path, entry, where) if "paragraphs" in entry else (_question(path, entry, entry, where),):
            if question.name in questions:
                raise UserError("two questions have this id", question.where, "give every question an id of its own")
            questions[question.name] = question
    return tuple(questions.values())


def is_squad(path: str) -> bool:
    """Whether a file is a .json whose object has a list `data`, as `read` takes; False also where it cannot be read."""
    if not path.lower().endswith(".json"):
        return False
    with contextlib.suppress(UserError, OSError):
        local = remote.local_copy(path)
        with open(local, "rb") as file:
            if file.read(HEAD).lstrip().startswith(b"["):  # a list of rows, which may be too long for memory
                return False
        return isinstance(read_json(local, FORMAT).get("data"), list)
    return False


def lost(questions: Sequence[Question]) -> str:
    """One line that says how many answers are not where the file says and are not trained on, '' for none."""
    names = [question.name for question in questions for _, start in question.answers if start == LOST]
    if not names:
        return ""
    count = f"{len(names)} answer{'s are' if len(names) > 1 else ' is'} not in the context at answer_start"
    return f"{count} and not trained on; the first belongs to question {names[0]}"


def _of_article(path: str | Path, entry: Mapping[str, Any], where: str) -> Iterator[Question]:
    for p, paragraph in enumerate(_get(entry, "paragraphs", list, where)):
        at = f"{where}.paragraphs[{p}]"
        _is(paragraph, dict, at, "the paragraph")
        for q, item in enumerate(_get(paragraph, "qas", list, at)):
            _is(item, dict, f"{at}.qas[{q}]", "the question")
            yield _question(path, item, paragraph, f"{at}.qas[{q}]")


def _question(path: str | Path, item: Mapping[str, Any], paragraph: Mapping[str, Any], where: str) -> Question:
    """item: holds id, question and answers; paragraph: holds the context."""
    name = _get(item, "id", str, where)
    where = f"{path}: question {name}"
    context = _get(paragraph, "context", str, where)
    pairs = _answers(item["answers"], where) if "answers" in item else ()
    impossible = _get(item, "is_impossible", bool, where) if "is_impossible" in item else "answers" in item and not pairs
    if impossible and pairs:
        raise UserError("is_impossible is true and there are answers", where, "remove the answers, or set is_impossible to false")
    answers = tuple((text, start if _is_there(context, text, start) else LOST) for text, start in pairs)
    return Question(name, where, _get(item, "question", str, where), context, answers, impossible)


def _answers(given: Any, where: str) -> list[tuple[str, int]]:
    """(text, start) of SQuAD's list of objects, or of the flat form's object of two lists."""
    if isinstance(given, dict):
        texts, starts = (_get(given, name, list, f"{where}: answers") for name in ("text", "answer_start"))
        if len(texts) != len(starts):
            counts = f"{len(texts)} texts of answers and {len(starts)} values of answer_start"
            raise UserError(counts, where, "give one start for each text")
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    pairs = []
    for answer in _is(given, list, where, "answers"):
        _is(answer, dict, where, "an answer")
        pairs.append((_get(answer, "text", str, where), _get(answer, "answer_start", int, where)))
    return pairs


def _is_there(context: str, text: str, start: int) -> bool:
    """Whether the context holds the text at `start`; a blank text is nowhere."""
    return start >= 0 and bool(text.strip()) and context[start : start + len(text)] == text


def _get(given: Mapping[str, Any], name: str, kind: type[T], where: str) -> T:
    """The value of a field. Raises UserError where it is missing, of another kind, or a text that UTF-8 cannot hold."""
    if name not in given:
        raise UserError(f"{name} is missing", where, FORMAT)
    return _is(given[name], kind, where, name)


def _is(value: Any, kind: type[T], where: str, name: str) -> T:
    if type(value) is not kind:
        raise UserError(f"{name} is not {KINDS[kind]}", where, FORMAT)
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise UserError(f"{name} holds half of a surrogate pair, which is not a character", where, "write the character in UTF-8")
    return value
