"""The task of tags: labels on first pieces, windows, answers and scores, for every kind of tokenizer and many scripts."""

import dataclasses
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc import config, rng
from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import EncoderConfig, ModelConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.tasks import TASKS
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.tag import HEAD, Tag
from jaxenc.tasks.tagged import Columns, Tagged
from jaxenc.tasks.task import Features
from jaxenc.training.run import Run
from tests import tiny
from tests.tasks.window_rule import by_hand, most_context, random_inputs

TEXT = "The quick brown fox jumps over the lazy dog, again and again, don't stop 東京 naïve नमस्ते สวัสดี مرحبا 🙂."
# Scripts with combining marks, without blanks, from right to left; emoji; long words; words that some tokenizers drop.
WORDS = ["The", "quick", "fox", "don't", "New York", "東京タワー", "naïve", "नमस्ते", "क्ष", "สวัสดีครับ", "ำ", "مَرْحَبًا", "👩‍👩‍👧‍👦", "🙂🙂"]
WORDS += ["\u200b", "\u00a0", "\u0301", "[MASK]", "</s>", "http://example.org/" + "a-" * 20, "ﷺ", "ﬁ", "I", "."]
MADE = {
    "wordpiece": lambda: wordpiece.train([TEXT] * 6, 120),
    "bpe": lambda: bpe.train([TEXT] * 6, 300),
    "word_bpe": lambda: word_bpe.train([TEXT] * 6, 120),
    "unigram": lambda: unigram.train([TEXT] * 18, 70),
    "golden wordpiece": lambda: load(Path(__file__).parents[1] / "golden" / "tokenizers" / "wordpiece"),
}
MODEL = {"unigram": XlnetConfig()}
LABELS = ("O", "B-a", "I-a", "B-b", "I-b")
TASK = Tag(labels=LABELS, unread="O")
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=25), min_size=1, max_size=4)


@functools.cache
def made(kind: str) -> Tokenizer:
    return MADE[kind]()


def framing(kind: str, length: int) -> Framing:
    return Framing(made(kind), MODEL.get(kind, BertConfig()), length)


def tagged(sentences: list[list[str]]) -> list[Tagged]:
    """Examples whose tags go through all labels, so that a tag in a wrong place is seen."""
    tags = [[LABELS[(word + number) % len(LABELS)] for word in range(len(words))] for number, words in enumerate(sentences)]
    return [Tagged(str(n), f"f:{n}", tuple(words), tuple(tags[n])) for n, words in enumerate(sentences)]


def by_loop(example: Tagged, frame: Framing, stride: int) -> list[tuple[list[int], list[int]]]:
    """(ids, tags) of the text of each row of a sentence, piece by piece."""
    ids, _, numbers = frame.tokenizer.encode_split(example.words)
    text = [(index, number) for index, number in zip(ids, numbers, strict=True) if number >= 0]
    pieces = [sum(number == word for _, number in text) for word in range(len(example.words))]
    room, found = frame.room(1), []
    windows = by_hand(pieces, room, stride or max(room // 2, 1))
    for window, (first, end) in enumerate(windows):
        row = [(index, number) for index, number in text if first <= number < end][:room]
        tags = []
        for place, (_, number) in enumerate(row):
            scored = most_context(windows, pieces, number) == window and (place == 0 or row[place - 1][1] != number)
            tags.append(LABELS.index(example.tags[number]) if scored else -1)
        found.append(([index for index, _ in row], tags))
    return found


@pytest.mark.parametrize("kind", MADE)
@random_inputs(60)
@given(sentences=SENTENCES, length=st.integers(3, 40), stride=st.integers(0, 20))
def test_every_word_is_labelled_and_answered_once(kind: str, sentences: list[list[str]], length: int, stride: int) -> None:
    task, frame, examples = dataclasses.replace(TASK, stride=stride), framing(kind, length), tagged(sentences)
    features = task.features(examples, frame)
    expected = [(number, row) for number, example in enumerate(examples) for row in by_loop(example, frame, stride)]
    assert features.example.tolist() == [number for number, _ in expected]
    start = 0 if frame.model.kind == "xlnet" else 1
    for row, (_, (ids, tags)) in enumerate(expected):
        assert features.rows["tokens"][row, start : start + len(ids)].tolist() == ids
        assert features.rows[HEAD][row].tolist() == [-1] * start + tags + [-1] * (length - start - len(tags))
        assert features.rows["segments"][row].sum() == len(ids) + length - frame.room(1)
    # What a model says where nothing is asked is not read: there all predictions are 3.
    answers = task.answers(examples, features, {HEAD: np.where(features.rows[HEAD] < 0, 3, features.rows[HEAD])})
    read = [{*frame.tokenizer.encode_split(example.words)[2]} for example in examples]
    for example, answer, there in zip(examples, answers, read, strict=True):
        assert answer == [tag if word in there else "O" for word, tag in enumerate(example.tags)]
    unread = sum(word not in there for example, there in zip(examples, read, strict=True) for word in range(len(example.words)))
    assert [note for note in task.notes(examples, features) if "drops" in note] == [
        f"words that the tokenizer drops, which get the tag O: {unread:,}" for _ in range(unread > 0)
    ]


def test_a_long_word_is_cut_and_a_dropped_word_gets_its_tag() -> None:
    words = [["\u200b"], ["a-" * 30], ["The", "\u200b", "fox"], ["fox"]]
    examples = tagged(words)
    features = TASK.features(examples, framing("golden wordpiece", 12))
    assert features.shortened == 1 and features.example.tolist() == [0, 1, 2, 3]
    assert [one.words.tolist() for one in features.places] == [[], [0], [0, 2], [0]]
    assert (features.rows[HEAD][0] == -1).all() and features.rows["segments"][0].sum() == 2
    predictions = {HEAD: np.full(features.rows[HEAD].shape, 1)}
    assert TASK.answers(examples, features, predictions) == [["O"], ["B-a"], ["B-a", "O", "B-a"], ["B-a"]]
    with pytest.raises(UserError, match=r"^f:1: .*room"):
        TASK.features(examples, dataclasses.replace(framing("golden wordpiece", 12), truncation="refuse"))
    other = dataclasses.replace(TASK, unread="I-b")
    assert other.answers(examples, features, predictions)[0] == ["I-b"]


def test_a_model_counts_every_word_once_and_its_right_words_are_those_of_the_answers() -> None:
    """The weights and the accuracy of the head, of windows of 16 tokens, beside the answers scored word by word."""
    model = dataclasses.replace(tiny.MODEL, layers=1)
    examples = tagged([WORDS[:4] * 5, ["The"], [word for word in WORDS if word.strip()]])
    features = TASK.features(examples, framing("wordpiece", 16))
    objective = tiny.objective(TASK.objective(model), model)
    params = tiny.drawn(Run(objective=TASK.objective(model), model=model))
    keys = rng.training(0, jnp.int32(0), len(features))
    run = jax.jit(lambda rows: (objective.terms(params, {}, rows, keys, False)[1], objective.predict(params, rows, keys)))
    metrics, predictions = jax.device_get(run(features.rows))
    right, count = metrics["tags_accuracy"]
    answers = TASK.answers(examples, features, predictions)
    assert len(features) > len(examples) and count == sum(len(one.words) for one in examples)
    assert 0 < right < count and right / count == pytest.approx(TASK.score(answers, examples)["accuracy"])


def test_no_examples_and_no_labels() -> None:
    features = TASK.features([], framing("wordpiece", 8))
    assert len(features) == 0 and features.rows[HEAD].shape == (0, 8) and TASK.answers([], features, {HEAD: features.rows[HEAD]}) == []
    unlabelled = [Tagged("0", "f:1", ("The", "fox"))]
    features = TASK.features(unlabelled, framing("wordpiece", 16))
    assert (features.rows[HEAD] == -1).all()
    assert TASK.answers(unlabelled, features, {HEAD: np.full((1, 16), 2)}) == [["I-a", "I-a"]]


def test_a_row_without_room_and_half_a_character_are_one_line() -> None:
    with pytest.raises(UserError, match=r"no room.*train.length"):
        TASK.features(tagged([["The"]]), framing("wordpiece", 2))
    with pytest.raises(UserError, match=r"^f:1: .*not a character"):
        TASK.features(tagged([["a"], ["\ud800"]]), framing("wordpiece", 8))
    with pytest.raises(UserError, match=r"^f:9: the tag 'B-c' is none of O, B-a"):
        TASK.features([Tagged("0", "f:9", ("a",), ("B-c",))], framing("wordpiece", 8))


def scores(task: Tag, true: str, given: str) -> dict[str, float]:
    return task.score([given.split()], [Tagged("0", "f:1", tuple(true.split()), tuple(true.split()))])


def test_scores_of_entities_and_of_words() -> None:
    found = scores(TASK, "B-a I-a O B-b", "B-a I-a B-b O")
    assert (found["f1"], found["precision"], found["f1_a"], found["f1_b"], found["accuracy"]) == (0.5, 0.5, 1.0, 0.0, 0.5)
    words = Tag(scheme="none", labels=("NN", "VB"), unread="NN")
    assert scores(words, "NN VB VB", "NN VB NN") == {"accuracy": pytest.approx(2 / 3)}
    assert (TASK.metric, words.metric) == ("f1", "accuracy")
    for task in (TASK, words):
        for example, answer in ((Tagged("0", "f", ("x",), (task.labels[0],)), [task.labels[0]]), (Tagged("0", "f", ("x",)), ["B-a"])):
            assert all(np.isfinite(value) for value in task.score([answer], [example]).values())
        assert task.metric in task.score([], [])


def test_what_the_training_data_decides() -> None:
    train = [Tagged("0", "f:1", ("a", "b", "c"), ("I-x", "O", "B-x")), Tagged("1", "f:5", ("d",), ("I-x",))]
    assert (Tag().fitted(train).labels, Tag().fitted(train).unread) == (("O", "B-x", "I-x"), "O")
    more = [*train, Tagged("2", "f:9", ("e",), ("B-y",))]
    assert Tag().fitted(more).labels == ("O", "B-x", "B-y", "I-x", "I-y")
    begun = [Tagged("0", "f:1", ("a", "b"), ("B-x", "B-y"))]
    assert Tag().fitted(begun).labels == ("O", "B-x", "B-y")
    words = Tag(scheme="none").fitted([Tagged("0", "f:1", ("a", "b", "c"), ("NN", "VB", "VB"))])
    assert (words.labels, words.unread) == (("NN", "VB"), "VB")
    given = Tag(labels=("B-x", "I-x", "O", "B-y"), unread="B-y").fitted(train)
    assert (given.labels, given.unread) == (("B-x", "I-x", "O", "B-y"), "B-y")
    assert given.ordered(["O", "B-y", "B-x", "I-x"]).labels == ("O", "B-y", "B-x", "I-x")
    with pytest.raises(UserError, match="the model has the tags"):
        given.ordered(["O", "B-z"])
    for wrong in ([], [Tagged("0", "f:1", ("a",), ("O",))], [Tagged("0", "f:1", ("a",))]):
        with pytest.raises(UserError, match="data.train: (no word has a tag|all words have the tag O)"):
            Tag().fitted(wrong)


def test_a_task_is_saved_and_read_as_plain_data() -> None:
    task = Tag(labels=LABELS, unread="O", stride=3, tags="2")
    data = config.to_dict(task)
    assert data.pop("kind") == "tag" and config.from_dict(TASKS["tag"], data) == task


@pytest.mark.parametrize(
    "setting",
    [
        {"scheme": "iob"},
        {"labels": ("O", "O")},
        {"labels": ("O",)},
        {"labels": ("NN", "VB")},
        {"unread": "NN"},
        {"stride": -1},
        {"scheme": "none", "labels": ("NN", "VB"), "unread": "XX"},
    ],
)
def test_settings_that_do_not_fit(setting: dict) -> None:
    with pytest.raises(UserError, match="task") as error:
        Tag(**setting)
    assert error.value.fix


@pytest.mark.parametrize("model", [kind() for kind in MODELS.values()], ids=list(MODELS))
def test_families_with_a_head_on_tokens(model: ModelConfig) -> None:
    assert HEAD not in GptConfig.head_names
    if isinstance(model, EncoderConfig) and HEAD not in model.head_names:
        with pytest.raises(UserError, match="cannot tag words; use a model of kind bert, "):
            TASK.objective(model)
        return
    assert TASK.objective(model).heads == (HEAD,) and TASK.objective(model).labels == LABELS


def test_files_of_several_splits(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x B-a\ny O\n\nz O\n")
    (tmp_path / "b.conll").write_text("# sent 1\nv\tI-b\n\nw\tO\n")
    (tmp_path / "t.txt").write_text("x\ny\n\nz\n")
    files = FilesConfig(path=str(tmp_path), train="a.txt,b.conll", dev="b.conll", test="t.txt", train_rows=3)
    train = Tag().examples(files, "train")
    assert [(one.name, one.words, one.tags) for one in train] == [
        ("0", ("x", "y"), ("B-a", "O")),
        ("1", ("z",), ("O",)),
        ("2", ("v",), ("I-b",)),
    ]
    assert [Path(one.where).name for one in train] == ["a.txt:1", "a.txt:4", "b.conll:2"]
    assert [one.tags for one in Tag().examples(files, "test")] == [(), ()]
    assert "entities that begin with I-, scored as if they began with B-: 1" in TASK.notes(train, Features({}, np.zeros(0)))


@pytest.mark.parametrize(
    "content, task, message",
    [
        ("x NN\n", Tag(), r"a\.txt:1: the tag 'NN' begins with no B-"),
        ("x O\n\ny O\nz B-c\n", TASK, r"a\.txt:4: the tag 'B-c' is none of O, B-a"),
        ("x\ny\n", Tag(), r"a\.txt: has no tags; .*data\.test"),
        ("x O\ny\n", Tag(), r"a\.txt:2: has 1 column"),
    ],
)
def test_wrong_files_are_one_line(tmp_path: Path, content: str, task: Tag, message: str) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(UserError, match=message):
        task.examples(FilesConfig(path=str(tmp_path), train="a.txt"), "train")


def test_files_of_records(tmp_path: Path) -> None:
    """Lists of words and of tags, the tags by name or by number; a test split may lack them."""
    (tmp_path / "train.jsonl").write_text('{"tokens": ["a", "b"], "tags": ["B-a", "O"]}\n{"tokens": ["c"], "tags": [2]}\n')
    (tmp_path / "test.jsonl").write_text('{"tokens": ["a"]}\n')
    files = FilesConfig(path=str(tmp_path), train="train.jsonl", test="test.jsonl")
    assert [(one.words, one.tags) for one in TASK.examples(files, "train")] == [(("a", "b"), ("B-a", "O")), (("c",), ("I-a",))]
    assert [(one.words, one.tags) for one in TASK.examples(files, "test")] == [(("a",), ())]
    with pytest.raises(UserError, match="test.jsonl:1: has no column tags; name one of its columns"):
        TASK.examples(FilesConfig(path=str(tmp_path), train="test.jsonl"), "train")


COLUMNS = Columns("", "", LABELS, "bio")


def test_records() -> None:
    rows = [("f:1", {"tokens": ["a", ""], "tags": ["B-a", "O"]}), ("f:2", {"tokens": np.array(["b"]), "tags": np.array([2])})]
    assert COLUMNS.of_records(rows, True, 5) == [Tagged("5", "f:1", ("a", ""), ("B-a", "O")), Tagged("6", "f:2", ("b",), ("I-a",))]
    assert Columns("w", "ner", (), "bio").of_records([("f:1", {"w": ["a"], "ner": ["B-z"]})], True, 0)[0].tags == ("B-z",)
    assert COLUMNS.of_records([("f:1", {"tokens": ["a"]})], False, 0) == [Tagged("0", "f:1", ("a",), ())]
    assert TASK.of_record({"text": " Hello  world "}, "f:3") == Tagged("f:3", "f:3", ("Hello", "world"))


@pytest.mark.parametrize(
    "record, message",
    [
        ({"tags": ["O"]}, "has no column tokens"),
        ({"tokens": ["a"]}, "has no column tags"),
        ({"tokens": [], "tags": []}, "holds no words"),
        ({"tokens": " "}, "holds no words"),
        ({"tokens": 3}, "holds 3, which is not a list"),
        ({"tokens": ["a", None]}, "holds None, which is not a word"),
        ({"tokens": ["a", "b"], "tags": ["O"]}, "has 2 words and 1 tags"),
        ({"tokens": ["a"], "tags": "O"}, "holds 'O', which is not a list"),
        ({"tokens": ["a"], "tags": [5]}, "the tag 5 has no name; name the tags in task.labels"),
        ({"tokens": ["a"], "tags": [-1]}, "the tag -1 has no name"),
        ({"tokens": ["a"], "tags": [None]}, "the tag None has no name"),
        ({"tokens": ["a"], "tags": ["B-c"]}, "is none of O, B-a"),
    ],
)
def test_wrong_records_are_one_line(record: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        COLUMNS.of_records([("f:7", record)], True, 0)
    assert str(error.value).startswith("f:7: ") and error.value.fix
