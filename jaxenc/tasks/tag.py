"""A tag for each word: named entities, chunks, parts of speech."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.config import at_least
from jaxenc.errors import Unsupported, UserError
from jaxenc.families.contract import EncoderConfig, ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import conll, tag_scores, word_windows
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.task import Example, Features, Task

HEAD = "tags"
BIO, SCHEMES = "bio", ("bio", "none")
# The columns of records, unless the task names others.
WORDS, TAGS, TEXT = "tokens", "tags", "text"


@dataclasses.dataclass(frozen=True)
class Tagged(Example):
    """words: of one sentence. tags: one a word, () where they are not known."""

    words: tuple[str, ...]
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """The words that one row gives answers to. words: i32 [n], their numbers in the sentence. at: i32 [n], the place of the first piece of
    each in the row."""

    words: np.ndarray
    at: np.ndarray


@dataclasses.dataclass(frozen=True)
class Tag(Task[Tagged]):
    """A tag for each word of a sentence, read from the word's first piece (Devlin et al. 2018, section 5.3).

    A sentence longer than a row is cut into windows between words; each word is trained on and scored once, in the window where it has most
    context (word_windows.py). A word with more pieces than a row holds is cut to the first of them. Raises UserError for a setting that
    does not fit.

    words: the column of the words: in files of columns its number, 1 for the first and -1 for the last, in records its name. '' is the
        first, in CoNLL-U FORM, in records `tokens`.
    tags: the column of the tags. '' is the last, in CoNLL-U UPOS, in records `tags`.
    labels: the tags that a word can have; () = those of the training data, `O` first, the others sorted.
    scheme: `bio` for entities and chunks (`B-person`, `I-person`, `O`), scored by the F1 of whole entities; `none` for tags of single
        words, such as parts of speech, scored by the share of words with the right tag.
    stride: the most pieces from the start of one window to the start of the next, 0 for half of what a row holds. The smaller it is, the
        more context words have and the more rows there are.
    unread: the tag of a word that the tokenizer drops, so that no model sees it; '' = `O` with the scheme `bio`, else the most frequent tag
        of the training data.
    """

    kind: ClassVar[str] = "tag"

    words: str = ""
    tags: str = ""
    labels: tuple[str, ...] = ()
    scheme: str = BIO
    stride: int = 0
    unread: str = ""

    def __post_init__(self) -> None:
        at_least(0, "task", self, "stride")
        if self.scheme not in SCHEMES:
            raise UserError(f"task.scheme is {self.scheme!r}", fix=f"use {' or '.join(SCHEMES)}")
        if len(set(self.labels)) < len(self.labels):
            raise UserError("task.labels names a tag twice", fix="name every tag once")
        for name, tags in (("labels", self.labels), ("unread", (self.unread,) if self.unread else ())):
            if wrong := self._other_scheme(tags):
                raise UserError(f"task.{name} holds {wrong!r}, which begins with no B- or I-", fix="set task.scheme=none, or name BIO tags")

    @property
    def metric(self) -> str:
        """The score that is quoted first: `f1` of entities, `accuracy` of words."""
        return "f1" if self.scheme == BIO else "accuracy"

    def examples(self, files: FilesConfig, split: str) -> list[Tagged]:
        """As the contract says, from files of columns (conll.py)."""
        found: list[Tagged] = []
        for file in files.names(split):
            found += self._of_columns(file, split, len(found))
        return found

    def of_records(self, records: Iterable[tuple[str, Mapping[str, Any]]], split: str, first: int = 0) -> list[Tagged]:
        """The examples of (where, record): a list of words and, unless the split is `test`, a list of tags, which may be the numbers of
        `labels`. first: the number of the first example. Raises UserError as `examples`."""
        found = []
        for number, (where, record) in enumerate(records, first):
            one = dataclasses.replace(self.of_record(record, where), name=str(number))
            tags = record.get(self.tags or TAGS)
            if tags is None and split != "test":
                raise UserError(f"has no column {self.tags or TAGS}", where, f"set task.tags to one of {', '.join(record)}")
            if tags is not None:
                given = tuple(self._named(tag, where) for tag in _listed(tags, self.tags or TAGS, where))
                if len(given) != len(one.words):
                    raise UserError(f"{len(one.words)} words and {len(given)} tags", where, "give one tag a word")
                self._check(given, [where] * len(given))
                one = dataclasses.replace(one, tags=given)
            found.append(one)
        return found

    def fitted(self, train: Sequence[Tagged]) -> Self:
        """As the contract says: `labels` and `unread`. Raises UserError without seqeval where it is needed for the scores."""
        count = collections.Counter(tag for example in train for tag in example.tags)
        labels = self.labels or tuple(sorted(count, key=lambda tag: (tag != tag_scores.OUTSIDE, tag)))
        if self.scheme == BIO:
            tag_scores.library()
        likely = tag_scores.OUTSIDE if self.scheme == BIO else max(labels, key=lambda tag: count[tag], default="")
        return dataclasses.replace(self, labels=labels, unread=self.unread or likely)

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """As the contract says. Raises UserError for a family without a head on tokens, such as GPT."""
        if isinstance(model, EncoderConfig) and HEAD not in model.head_names:
            what = f"task.kind is {self.kind}, and a model of kind {model.kind} gives no tags to words"
            raise UserError(what, fix="use a model of another kind, such as bert or xlnet")
        return HeadsConfig(heads=(HEAD,), labels=self.labels)

    def features(self, examples: Sequence[Tagged], framing: Framing) -> Features:
        """As the contract says. `tags`: i32 [rows, length], the number of a word's tag at its first piece, in one of the rows that hold
        the word, and -1 elsewhere. places: a `Scored` a row. shortened: how many examples have a word with more pieces than a row holds."""
        room = max(framing.room(1), 1)  # a row without room is refused by framing.rows
        ids, owner, places, shortened = [], [], [], 0
        for number, example in enumerate(examples):
            tokens, pieces = _pieces(example, framing)
            starts = word_windows.first_pieces(pieces)
            found = word_windows.windows(pieces, room, self.stride or max(room // 2, 1))
            chosen = word_windows.scored_in(found, pieces)
            shortened += max(pieces, default=0) > room
            for window, (first, end) in enumerate(found):
                words = np.flatnonzero(chosen == window).astype(np.int32)
                ids.append((tokens[starts[first] : starts[end]][:room],))
                places.append(Scored(words, (starts[words] - starts[first]).astype(np.int32)))
                owner.append(number)
        framed = framing.rows(ids, [examples[number].where for number in owner])
        places = [Scored(one.words, one.at + start) for one, start in zip(places, framed.starts[:, 0], strict=True)]
        tags = np.full(framed.rows["tokens"].shape, -1, np.int32)
        index = {label: i for i, label in enumerate(self.labels)}
        for row, (number, one) in enumerate(zip(owner, places, strict=True)):
            if given := examples[number].tags:
                tags[row, one.at] = [index.get(given[word], -1) for word in one.words]
        return Features({**framed.rows, HEAD: tags}, np.array(owner, np.int32), places, shortened)

    def answers(self, examples: Sequence[Tagged], features: Features, predictions: Mapping[str, np.ndarray]) -> list[list[str]]:
        """The tags of the words of each example."""
        found = [[self.unread] * len(example.words) for example in examples]
        for row, (number, one) in enumerate(zip(features.example, features.places, strict=True)):
            for word, label in zip(one.words, predictions[HEAD][row, one.at], strict=True):
                found[number][word] = self.labels[label]
        return found

    def score(self, answers: Sequence[Sequence[str]], examples: Sequence[Tagged]) -> dict[str, float]:
        """`accuracy`, the share of words with the right tag, and with the scheme `bio` those of `tag_scores.entities`. Every word counts
        once, also one that the tokenizer drops."""
        true = [example.tags for example in examples]
        scores = {"accuracy": tag_scores.accuracy(true, answers)}
        return scores if self.scheme != BIO else scores | tag_scores.entities(true, answers, tag_scores.types(self.labels))

    def notes(self, examples: Sequence[Tagged], features: Features) -> list[str]:
        """As the contract says: words that the tokenizer drops, and entities that begin with `I-`."""
        unread = sum(len(example.words) for example in examples) - sum(len(one.words) for one in features.places)
        inside = tag_scores.begun_inside(example.tags for example in examples) if self.scheme == BIO else 0
        dropped = f"words that the tokenizer drops, which get the tag {self.unread}: {unread:,}"
        return [dropped] * (unread > 0) + [f"entities that begin with I-, scored as if they began with B-: {inside:,}"] * (inside > 0)

    def of_record(self, record: Mapping[str, Any], where: str) -> Tagged:
        """As the contract says. A record holds a list of words, or in their place or under the key `text` a text, cut at white space."""
        column = self.words or WORDS
        value = record.get(column, record.get(TEXT))
        if value is None:
            raise UserError(f"has no {column}", where, f'give a list of words: {{"{column}": ["Hello", "world"]}}')
        words = value.split() if isinstance(value, str) else _listed(value, column, where)
        if not words or not all(isinstance(word, str) for word in words):
            raise UserError(f"{column} holds {'something that is no text' if words else 'no words'}", where, "give a list of words")
        return Tagged(where, where, tuple(words))

    def _of_columns(self, file: str, split: str, first: int) -> list[Tagged]:
        """The examples of one file. first: the number of its first sentence."""
        if file.startswith("tfds:"):
            fix = "write a file with a word and its tag a line and a blank line after each sentence"
            raise Unsupported("tags are read from files of columns", file, fix)
        found = []
        for number, one in enumerate(conll.sentences(file, self.words, self.tags), first):
            if not one.tags and split != "test":
                raise UserError("has no tags", file, "name a file with a word and its tag a line, or use it as data.test")
            self._check(one.tags, [f"{file}:{line}" for line in one.lines])
            found.append(Tagged(one.name or str(number), f"{file}:{one.lines[0]}", one.words, one.tags))
        return found

    def _check(self, tags: Sequence[str], wheres: Sequence[str]) -> None:
        """Raises UserError for a tag that the task does not have."""
        for tag, where in zip(tags, wheres, strict=True):
            if self.labels and tag not in self.labels:
                known = ", ".join(self.labels)
                raise UserError(f"the tag {tag!r} is none of {known}", where, "correct it, or name all tags in task.labels")
            if self._other_scheme([tag]):
                fix = "set task.scheme=none for tags of single words, or task.tags to the column of BIO tags"
                raise UserError(f"the tag {tag!r} begins with no B- or I-", where, fix)

    def _other_scheme(self, tags: Iterable[str]) -> str:
        """The first tag that the scheme does not have, '' for none."""
        return next((tag for tag in tags if self.scheme == BIO and not tag_scores.is_tag(tag)), "")

    def _named(self, tag: Any, where: str) -> str:
        """A tag by its name, from that or from its number in `labels`."""
        if isinstance(tag, str):
            return tag
        if isinstance(tag, (int, np.integer)) and 0 <= tag < len(self.labels):
            return self.labels[tag]
        fix = "name the tags in task.labels, in the order of their numbers" if isinstance(tag, (int, np.integer)) else "give text"
        raise UserError(f"the tag {tag!r} has no name", where, fix)


def _listed(value: Any, column: str, where: str) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise UserError(f"{column} holds {type(value).__name__} and no list", where, "give one item a word")
    return list(value)


def _pieces(example: Tagged, framing: Framing) -> tuple[list[int], list[int]]:
    """The ids of a sentence, without special pieces, and how many of them each word has."""
    try:
        ids, _, numbers = framing.tokenizer.encode_split(example.words)
    except UserError as error:
        raise error.at(example.where) from error
    kept = [(index, number) for index, number in zip(ids, numbers, strict=True) if number >= 0]
    return [index for index, _ in kept], np.bincount([number for _, number in kept], minlength=len(example.words)).tolist()
