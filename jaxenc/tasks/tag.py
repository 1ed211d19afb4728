"""A tag for each word: named entities, chunks, parts of speech."""

import collections
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jaxenc.config import at_least
from jaxenc.data.readers import compressed
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.contract import EncoderConfig, ModelConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.tasks import records, tag_scores, word_windows
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.tagged import BIO, SCHEMES, TAGS, WORDS, Columns, Tagged
from jaxenc.tasks.task import Features, Task

HEAD = "tags"
# Files of records; any other file has columns.
RECORDS = (".json", ".jsonl", ".parquet", ".arrow")


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredWords:
    """The words that are scored in one row. words: i32 [n], their numbers in the sentence. at: i32 [n], the position in the row of the
    first piece of each."""

    words: np.ndarray
    at: np.ndarray


@dataclasses.dataclass(frozen=True)
class Tag(Task[Tagged]):
    """A tag for each word of a sentence, read from the word's first piece (Devlin et al. 2018, section 5.3).

    A sentence longer than a row is cut into windows between words; each word is trained on and scored once, in the window where it has the
    most context (word_windows.py). A word with more pieces than a row holds is cut to the first of them. Raises UserError for an invalid
    setting.

    words: column of the words, a number in files of columns (1 is the first, -1 the last), a name in records. Without one it is the
        first column, FORM in CoNLL-U, `tokens` in records.
    tags: column of the tags. Without one it is the last column, UPOS in CoNLL-U, `tags` in records.
    labels: tags that a word can have. () = those of the training data, `O` first, the others sorted. With the scheme `bio` every type then
        has all prefixes that any has: the test data of CoNLL-2000 has a tag `I-LST`, and its training data only `B-LST`.
    scheme: `bio` for entities and chunks (`B-person`, `I-person`, `O`), `none` for tags of single words. The first is scored by the F1 of
        whole entities; the second, for example parts of speech, by the share of words with the right tag.
    stride: most pieces from the start of one window to the start of the next, 0 for half of what a row holds. A smaller stride gives words
        more context and makes more rows.
    unread: tag of a word that the tokenizer drops, so that no model sees it. Without one it is `O` with the scheme `bio`, otherwise the
        most frequent tag of the training data.
    """

    kind: ClassVar[str] = "tag"
    head: ClassVar[str] = HEAD

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
        if len(set(self.labels)) < len(self.labels) or len(self.labels) == 1:
            raise UserError(f"task.labels is {', '.join(self.labels)}", fix="name two tags or more, each once, or none")
        named = (*self.labels, self.unread) if self.unread else self.labels
        if self.scheme == BIO and (wrong := [tag for tag in named if not tag_scores.is_tag(tag)]):
            fix = "name BIO tags in task.labels and task.unread, or set task.scheme=none"
            raise UserError(f"the tag {wrong[0]!r} begins with no B- or I-, and task.scheme is bio", fix=fix)
        if self.scheme != BIO and self.labels and self.unread and self.unread not in self.labels:
            raise UserError(f"task.unread is {self.unread!r}", fix=f"use one of {', '.join(self.labels)}")

    @property
    def metric(self) -> str:
        """The score that is quoted first: `f1` of entities, `accuracy` of words."""
        return "f1" if self.scheme == BIO else "accuracy"

    @property
    def classes(self) -> tuple[str, ...]:
        """The tags, in the order of the logits."""
        return self.labels

    def examples(self, files: FilesConfig, split: str) -> list[Tagged]:
        """See `Task.examples`; from files of columns (conll.py) or of records with a list of words and a list of tags (records.py)."""
        found: list[Tagged] = []
        columns, labelled = (self.words or WORDS, self.tags or TAGS), split != "test"
        for file in files.names(split):
            if not _holds_records(file):
                found += self._columns.of_file(files.own_format(file), labelled, len(found))
                continue
            read = records.read(file, columns[: 1 + labelled], columns[1 + labelled :], files)
            with records.choosing(words=columns[:1], tags=columns[1:]):
                found += self._columns.of_records(((record.where, record.values) for record in read), labelled, len(found))
        return found[: files.limit(split) or None]

    def fitted(self, train: Sequence[Tagged]) -> Self:
        """See `Task.fitted`: sets `labels` and `unread`. Raises UserError for examples with fewer than two tags, and if the scores need
        seqeval and it is not installed."""
        count = collections.Counter(tag for example in train for tag in example.tags)
        if not self.labels and len(count) < 2:
            what = f"all words have the tag {next(iter(count))}" if count else "no word has a tag"
            raise UserError(what, "data.train", "name a file with several tags, or the tags in task.labels")
        known = tag_scores.completed(count) if self.scheme == BIO else count
        labels = self.labels or tuple(sorted(known, key=lambda tag: (tag != tag_scores.OUTSIDE, tag)))
        if self.scheme == BIO:
            tag_scores.library()
        likely = tag_scores.OUTSIDE if self.scheme == BIO else max(labels, key=lambda tag: count[tag])
        return dataclasses.replace(self, labels=labels, unread=self.unread or likely)

    def ordered(self, classes: Sequence[str]) -> Self:
        """This task with its labels in the order of a model's classes. Raises UserError where they are not the same tags."""
        if self.labels and {*self.labels} != {*classes}:
            what = f"the model has the tags {', '.join(classes)}, and the task has {', '.join(self.labels)}"
            raise UserError(what, fix="use a model of this task, or leave task.labels empty")
        return dataclasses.replace(self, labels=tuple(classes))

    def objective(self, model: ModelConfig) -> HeadsConfig:
        """See `Task.objective`. Raises UserError for a family without a head on tokens."""
        if isinstance(model, EncoderConfig) and HEAD not in model.head_names:
            what = f"task.kind is {self.kind}, and a model of kind {model.kind} cannot tag words"
            able = [kind for kind, other in MODELS.items() if issubclass(other, EncoderConfig) and HEAD in other.head_names]
            raise UserError(what, fix=f"use a model of kind {', '.join(able)}")
        return HeadsConfig(heads=(HEAD,), labels=self.labels)

    def features(self, examples: Sequence[Tagged], framing: Framing) -> Features:
        """See `Task.features`. `tags`: i32 [rows, length], the number of a word's tag at its first piece, in one of the rows with that
        word, and -1 elsewhere. places: one `ScoredWords` per row. shortened: how many examples have a word with more pieces than a row
        holds. Raises UserError for a tag that is none of `labels`, and for such a word where `framing` shortens nothing."""
        room = max(framing.room(1), 1)  # a row without room is refused by framing.rows
        ids, owner, places = [], [], []
        for number, example in enumerate(examples):
            self._columns.check(example.tags, [example.where] * len(example.tags))
            tokens, pieces = _pieces(example, framing)
            starts = word_windows.first_pieces(pieces)
            found = word_windows.windows(pieces, room, self.stride or max(room // 2, 1))
            chosen = word_windows.scored_in(found, pieces)
            for window, (first, end) in enumerate(found):
                words = np.flatnonzero(chosen == window).astype(np.int32)
                ids.append((tokens[starts[first] : starts[end]],))
                places.append(ScoredWords(words, (starts[words] - starts[first]).astype(np.int32)))
                owner.append(number)
        framed = framing.rows(ids, [examples[number].where for number in owner])
        places = [ScoredWords(one.words, one.at + start) for one, start in zip(places, framed.starts[:, 0], strict=True)]
        tags, rows = np.full(framed.rows["tokens"].shape, -1, np.int32), np.array(owner, np.int32)
        index = {label: i for i, label in enumerate(self.labels)}
        for row, (number, one) in enumerate(zip(owner, places, strict=True)):
            if given := examples[number].tags:
                tags[row, one.at] = [index[given[word]] for word in one.words]
        return Features({**framed.rows, HEAD: tags}, rows, places, len(np.unique(rows[framed.shortened])))

    def answers(self, examples: Sequence[Tagged], features: Features, predictions: Mapping[str, np.ndarray]) -> list[list[str]]:
        """The tags of the words of each example."""
        found = [[self.unread] * len(example.words) for example in examples]
        for row, (number, one) in enumerate(zip(features.example, features.places, strict=True)):
            for word, label in zip(one.words, predictions[HEAD][row, one.at], strict=True):
                found[number][word] = self.labels[label]
        return found

    def score(self, answers: Sequence[Sequence[str]], examples: Sequence[Tagged]) -> dict[str, float]:
        """`accuracy`, the share of words with the right tag, and with the scheme `bio` those of `tag_scores.entities`. Every word counts
        once, also one that the tokenizer drops; sentences without tags do not."""
        known = [(example.tags, answer) for answer, example in zip(answers, examples, strict=True) if example.tags]
        true, given = [tags for tags, _ in known], [answer for _, answer in known]
        scores = {"accuracy": tag_scores.accuracy(true, given)}
        return scores if self.scheme != BIO else scores | tag_scores.entities(true, given, tag_scores.types(self.labels))

    def notes(self, examples: Sequence[Tagged], features: Features) -> list[str]:
        """See `Task.notes`: words that the tokenizer drops, and entities that begin with `I-`."""
        unread = sum(len(example.words) for example in examples) - sum(len(one.words) for one in features.places)
        inside = tag_scores.begun_inside(example.tags for example in examples) if self.scheme == BIO else 0
        dropped = f"words that the tokenizer drops, which get the tag {self.unread}: {unread:,}"
        return [dropped] * (unread > 0) + [f"entities that begin with I-, scored as if they began with B-: {inside:,}"] * (inside > 0)

    def of_record(self, record: Mapping[str, Any], where: str) -> Tagged:
        """See `Task.of_record`. The words are a list, or a text, which is split at white space."""
        return self._columns.of_record(record, where)

    def new_examples(self, file: str) -> Sequence[Tagged]:
        """See `Task.new_examples`: files of columns, whose tags are not read."""
        return self._columns.words_of(file)

    @property
    def _columns(self) -> Columns:
        return Columns(self.words, self.tags, self.labels, self.scheme)


def _holds_records(file: str) -> bool:
    name = file.lower().removesuffix(compressed.suffix_of(file))
    return name.startswith("tfds:") or name.endswith(RECORDS) or os.path.isdir(file)


def _pieces(example: Tagged, framing: Framing) -> tuple[list[int], list[int]]:
    """The ids of a sentence, without special pieces, and how many of them each word has."""
    try:
        ids, numbers = framing.ids_of_words(example.words)
    except UserError as error:
        raise error.at(example.where) from error
    return ids, np.bincount(numbers, minlength=len(example.words)).tolist()
