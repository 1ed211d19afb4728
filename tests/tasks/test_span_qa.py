"""The task of questions: rows of every family against a loop, answers and scores by hand, and heads that learn."""

import dataclasses
import functools
import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from jaxenc import config
from jaxenc.data.tokenizers import Tokenizer, bpe, wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.tasks import TASKS, rows
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.framing import Framing
from jaxenc.tasks.span_qa import SpanQa
from jaxenc.tasks.span_rows import HEADS, answer_span
from jaxenc.tasks.squad_files import LOST, Question
from jaxenc.tasks.task import Features
from tests import tiny

WORDS = "the cat sat on a mat near river when rain fell over hills".split()
MADE = {
    "wordpiece": lambda: wordpiece.train([" ".join(WORDS)] * 6, 80),
    "bpe": lambda: bpe.train([" ".join(WORDS)] * 6, 300),
    "unigram": lambda: unigram.train([" ".join(WORDS)] * 18, 45),
}
# How a question q and a part c of the context are read, and the type of each part.
FRAMES = {
    "wordpiece": ("cls q sep c sep", (0, 0, 0, 1, 1)),
    "bpe": ("cls q sep sep c sep", (0,) * 6),
    "unigram": ("c sep q sep cls", (0, 0, 1, 1, 2)),
}
CASES = [
    ("wordpiece", BertConfig(), "spans"),
    ("wordpiece", ElectraConfig(), "joint_spans"),
    ("wordpiece", ElectraConfig(), "spans"),
    ("bpe", BertConfig(first_position=2, types=1), "spans"),
    ("unigram", XlnetConfig(), "beam_spans"),
    ("unigram", XlnetConfig(), "spans"),
]
IDS = [f"{model.kind}-{kind}-{head}" for kind, model, head in CASES]
TASK = SpanQa(impossible=True, stride=5, max_query=6, n_best=8)


@functools.cache
def made(kind: str) -> Tokenizer:
    return MADE[kind]()


def framing(kind: str, model: ModelConfig, length: int = 22) -> Framing:
    return Framing(made(kind), model, length)


def asked(name: str, question: str, context: str, *answers: tuple[str, int], impossible: bool = False) -> Question:
    return Question(name, f"f.json: question {name}", question, context, answers, impossible)


def drawn(count: int) -> list[Question]:
    """Questions about up to 40 words; the answer is up to four of them, and one question in five has none."""
    random, found = np.random.default_rng(3), []
    for number in range(count):
        words = [str(word) for word in random.choice(WORDS, random.integers(1, 40))]
        first = int(random.integers(len(words)))
        text, start = " ".join(words[first : first + random.integers(1, 5)]), len(" ".join([*words[:first], ""]))
        none = number % 5 == 4
        question = " ".join(random.choice(WORDS, random.integers(0, 12)))
        found.append(asked(str(number), question, " ".join(words), *([] if none else [(text, start)]), impossible=none))
    return found


def by_loop(example: Question, kind: str, head: str, length: int) -> list[dict]:
    """The rows of one question, token by token."""
    tool, (parts, types) = made(kind), FRAMES[kind]
    special = {"cls": tool.vocabulary.cls, "sep": tool.vocabulary.sep}
    question = tool.encode([example.question])[0][: TASK.max_query]
    ((ids, offsets),) = tool.encode_offsets([example.context])
    room = length - len(question) - sum(part in special for part in parts.split())
    holds = [False] * len(ids)
    for text, start in example.answers[:1]:
        holds = [begin < start + len(text) and start < end for begin, end in offsets]
    out, at = [], 0
    while True:
        window = range(at, min(at + room, len(ids)))
        row = {name: [] for name in ("tokens", "types", "context")}
        place, none, before = {}, 0, ""
        for part, kind_of in zip(parts.split(), types, strict=True):
            none = len(row["tokens"]) if part == "cls" else none
            allowed = part == "c" or (before == "c" and head == "joint_spans")
            for token in {"q": question, "c": [ids[i] for i in window]}.get(part, [special.get(part)]):
                if part == "c":
                    place[at + len(place)] = len(row["tokens"])
                row["tokens"].append(token)
                row["types"].append(kind_of)
                row["context"].append(int(allowed))
            before = part
        inside = [place[i] for i in window if holds[i]]
        whole = len(inside) == sum(holds) > 0
        row |= {"start": inside[0] if whole else none, "end": inside[-1] if whole else none, "none": none}
        row["answerable"] = int(not example.impossible if head == "joint_spans" else whole)
        out.append(row)
        if at + room >= len(ids):
            return out
        at += min(TASK.stride, room)


@pytest.mark.parametrize("kind, model, head", CASES, ids=IDS)
def test_rows_are_those_of_a_loop(kind: str, model: ModelConfig, head: str) -> None:
    """Also that a label is always on a place that the head allows: elsewhere its loss would be huge, and nothing would say why."""
    examples = drawn(40)
    found = dataclasses.replace(TASK, answer_head=head).features(examples, framing(kind, model))
    wanted = [(number, row) for number, example in enumerate(examples) for row in by_loop(example, kind, head, 22)]
    assert found.example.tolist() == [number for number, _ in wanted] and len(wanted) > 60
    names = {"tokens", "types", "segments", "positions", "start", "end"} | ({"answerable", "context"} if head != "spans" else set())
    assert set(found.rows) == names and all(array.dtype == np.int32 for array in found.rows.values())
    for i, (_, row) in enumerate(wanted):
        used = len(row["tokens"])
        assert found.rows["segments"][i].tolist() == [1] * used + [0] * (22 - used)
        for name in {"tokens", "types", "context"} & names:
            assert found.rows[name][i, :used].tolist() == row[name]
        assert found.rows["positions"][i, :used].tolist() == list(range(used))
        for name in {"start", "end", "answerable"} & names:
            assert found.rows[name][i] == row[name]
        assert (found.places[i].none, found.places[i].used) == (row["none"], used)
        if "context" in names:
            allowed = found.rows["context"][i].astype(bool) | (np.arange(22) == row["none"])
            assert allowed[found.rows["start"][i]] and allowed[found.rows["end"][i]] and not allowed[used:].any()
    longer = sum(len(ids) > TASK.max_query for ids in made(kind).encode([example.question for example in examples]))
    assert found.shortened == longer > 0


def predicted(features: Features, head: str, size: int = 5) -> dict[str, np.ndarray]:
    """Predictions that are sure of the labels."""
    start, end = features.rows["start"], features.rows["end"]
    count = len(features)
    if head == "spans":
        logits = np.zeros((count, features.rows["tokens"].shape[1], 2), np.float32)
        logits[np.arange(count), start, 0] = logits[np.arange(count), end, 1] = 9
        return {head: logits}
    wide = lambda label: np.concatenate([label[:, None], np.full((count, size - 1), -1)], axis=1).astype(np.int32)
    ends = np.repeat(wide(end)[:, None], size, axis=1)
    score = np.where(wide(start) >= 0, 0.0, -1e30).astype(np.float32)
    # A window without the answer has its best span at CLS, which is no candidate.
    there = {"start_score": score, "end_score": np.where(ends >= 0, 0.0, -1e30).astype(np.float32)}
    found = {"start": wide(start), "end": ends, **there, "no_answer": np.where(features.rows["answerable"] > 0, -3.0, 3.0)}
    return {f"{head}_{name}": array for name, array in found.items()}


@pytest.mark.parametrize("kind, model, head", CASES, ids=IDS)
def test_labels_as_predictions_give_the_answers_back(kind: str, model: ModelConfig, head: str) -> None:
    """Of every question whose answer fits in one window and has the most context there; the others lose no question."""
    task = dataclasses.replace(TASK, answer_head=head)
    examples = [one for one in drawn(40) if one.impossible or len(one.answers[0][0].split()) == 1]
    features = task.features(examples, framing(kind, model, 60))  # contexts of several windows have shorter answers than a window
    answers = task.answers(examples, features, predicted(features, head))
    wanted = [one.answers[0][0] if one.answers else "" for one in examples]
    assert answers == wanted and "" in wanted
    details = task.details(examples, features, predicted(features, head))
    for example, answer, one in zip(examples, answers, details, strict=True):
        best = next((entry for entry in one["n_best"] if entry["text"]), None)
        assert not answer or (best["text"] == answer == example.context[best["start"] : best["end"]] and one["null_score"] < 0)
        assert sum(entry["probability"] for entry in one["n_best"]) == pytest.approx(1)
    json.dumps([answers, details])


def test_padding_is_no_candidate() -> None:
    """Places that were cut off a batch come back with logits of 0, which beat those of real places."""
    task, example = SpanQa(n_best=2), asked("1", "when", "the cat sat", ("cat", 4))
    features = task.features([example], framing("wordpiece", BertConfig(), 100))
    logits = np.full((1, 100, 2), -5.0, np.float32)
    logits[0, features.places[0].used :] = 0
    logits[0, features.rows["start"][0], 0] = logits[0, features.rows["end"][0], 1] = -4
    assert task.answers([example], features, {"spans": logits}) == ["cat"]


@pytest.mark.parametrize("kind, model, head", CASES, ids=IDS)
def test_labels_that_are_not_known_are_ignored(kind: str, model: ModelConfig, head: str) -> None:
    """Of a question without answers, of answers that are not where the file says, and of one that gives no token."""
    lost = [asked("1", "when", "the cat"), asked("2", "when", "the cat", ("dog", LOST)), asked("3", "when", "the \x07 cat", ("\x07", 4))]
    lost = lost if kind == "wordpiece" else lost[:2]  # other vocabularies have pieces for control characters
    examples = [*lost, asked("4", "when", "", impossible=True), asked("5", "", "cat", ("dog", LOST), ("cat", 0))]
    task = dataclasses.replace(TASK, answer_head=head)
    features = task.features(examples, framing(kind, model))
    for name in {"start", "end", "answerable"} & set(features.rows):
        assert features.rows[name][: len(lost)].tolist() == [-1] * len(lost)
    none = features.places[-2].none
    assert features.rows["start"][-2] == features.rows["end"][-2] == none and features.rows["start"][-1] == features.places[-1].first
    notes = ["2 answers are not in the context at answer_start and not trained on; the first belongs to question 2"]
    notes += ["answers that the tokenizer drops, not trained on: 1"] * (kind == "wordpiece")
    assert task.notes(examples, features) == notes
    assert task.notes(examples[-2:-1], task.features(examples[-2:-1], framing(kind, model))) == []


@pytest.mark.parametrize("kind, model, head", CASES, ids=IDS)
def test_batches_without_padding_keep_labels_and_context(kind: str, model: ModelConfig, head: str) -> None:
    small = {"spans": tiny.MODEL, "joint_spans": tiny.PAIR, "beam_spans": XlnetConfig(heads=2, width=32)}[head]
    task = dataclasses.replace(TASK, answer_head=head)
    examples = [*(one for one in drawn(40) if len(one.context) < 30), *drawn(9)]
    features = task.features(examples, framing(kind, model, 64))
    fields = tiny.objective(task.objective(small), small, 64).fields
    found = rows.batches(features, 4, 0, True, (8, 16, 32, 64), fields, False)
    lengths, at = set(), 0
    for step in range(len(found)):
        batch = found.batch_at(step)
        whole = {name: array[at : at + 4] for name, array in features.rows.items()}
        length = batch["tokens"].shape[1]
        for name, array in whole.items():
            real = batch[name][: len(array)]
            assert (real == (array[:, :length] if array.ndim == 2 else array)).all()
            assert array.ndim < 2 or name == "tokens" or not array[:, length:].any()
        assert batch["end"].max() < length
        lengths.add(length)
        at += 4
    assert len(lengths) > 1


def test_spans_are_matched_for_wordpiece_alone() -> None:
    """As BERT is trained: the pieces of the answer's text, or all of its words. Elsewhere the pieces that hold the answer."""
    assert {kind: made(kind).cuts_words_alone for kind in MADE} == {"wordpiece": True, "bpe": False, "unigram": False}
    for kind, whole in (("wordpiece", True), ("bpe", False)):
        tool = made(kind)
        context = "the cats, rain"
        ((ids, offsets),) = tool.encode_offsets([context])
        example = asked("1", "when", context, ("ats", 5))
        first, last = answer_span(example, ids, offsets, framing(kind, BertConfig()))
        # `ats` alone is not `##a ##t ##s`, so that the label is the whole word with its comma.
        assert (context[offsets[first][0] : offsets[last][1]].strip() == "cats,") == whole


def test_heads_of_families() -> None:
    task = SpanQa()
    wanted = {"bert": "spans", "albert": "spans", "distilbert": "spans", "electra": "joint_spans", "xlnet": "beam_spans", "pair": "spans"}
    assert {kind: task.objective(MODELS[kind]()).heads for kind in wanted} == {kind: (head,) for kind, head in wanted.items()}
    assert task.objective(NetworkPairConfig(discriminator=XlnetConfig())).heads == ("beam_spans",)
    assert NetworkPairConfig(discriminator=XlnetConfig()).context_first
    assert SpanQa(answer_head="spans").objective(ElectraConfig()).heads == ("spans",)
    with pytest.raises(UserError, match=r"task.answer_head is joint_spans, which no model of kind bert has; leave it empty"):
        SpanQa(answer_head="joint_spans").objective(BertConfig())
    for model in (GptConfig(), MODELS["elmo"]()):
        with pytest.raises(
            UserError, match=f"a model of kind {model.kind} finds no answers in a text; use a model of kind bert, "
        ) as caught:
            task.objective(model)
        assert all(task.objective(MODELS[kind]()).heads for kind in caught.value.fix.partition("kind ")[2].split(", "))


def test_settings() -> None:
    for wrong, message in [
        ({"stride": 0}, "task.stride is 0"),
        ({"max_query": 0}, "task.max_query is 0"),
        ({"max_answer": -1}, "task.max_answer is -1"),
        ({"n_best": 0}, "task.n_best is 0"),
        ({"answer_head": "tags"}, "task.answer_head is 'tags'; use spans, joint_spans, beam_spans, or ''"),
        ({"metric": "accuracy"}, "task.metric is 'accuracy'; use f1, exact"),
    ]:
        with pytest.raises(UserError, match=message):
            SpanQa(**wrong)
    data = config.to_dict(TASK)
    assert data.pop("kind") == "span_qa" and config.from_dict(TASKS["span_qa"], data) == TASK
    assert all(SpanQa(answer_head=head).answer_head == head for head in HEADS)


def squad(folder: Path, split: str, *questions: dict) -> None:
    """A file of SQuAD with one paragraph a question."""
    paragraphs = [{"context": one.pop("context"), "qas": [one]} for one in questions]
    (folder / f"{split}.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))


def qa(name: str, answer: str = "cat", context: str = "the cat sat", **more: object) -> dict:
    answers = [{"text": answer, "answer_start": context.find(answer)}] if answer else []
    return {"id": name, "question": "when", "context": context, "answers": answers, **more}


def test_examples_of_files(tmp_path: Path) -> None:
    squad(tmp_path, "a", qa("1"), qa("2", ""))
    squad(tmp_path, "b", qa("3"))
    files = FilesConfig(str(tmp_path), train="a.json,b.json", dev="b.json", test="a.json", train_rows=2)
    assert [one.name for one in TASK.examples(files, "train")] == ["1", "2"]
    assert [one.name for one in TASK.examples(dataclasses.replace(files, train_rows=0), "train")] == ["1", "2", "3"]
    unlabelled = qa("4")
    del unlabelled["answers"]
    squad(tmp_path, "c", unlabelled)
    squad(tmp_path, "d")
    assert [one.labelled for one in TASK.examples(FilesConfig(str(tmp_path), test="c.json"), "test")] == [False]
    for task, train, message in [
        (SpanQa(), "a.json", "question 2: the question has no answer, and task.impossible is false; set task.impossible=true"),
        (TASK, "a.json,a.json", "has this id too; give every question an id of its own"),
        (TASK, "c.json", "question 4: the question has no list of answers; add its answers"),
        (TASK, "d.json", "d.json: there are no questions; name a file with questions in data.train"),
    ]:
        with pytest.raises(UserError, match=message):
            task.examples(FilesConfig(str(tmp_path), train=train), "train")


def test_questions_of_which_no_answer_is_where_the_file_says_are_refused(tmp_path: Path) -> None:
    """They would train nothing. One that is there is enough, or a question without an answer."""
    for more, is_refused in (((), True), ((qa("2"),), False), ((qa("2", ""),), False)):
        squad(tmp_path, "a", {**qa("1"), "answers": [{"text": "nowhere", "answer_start": 3}]}, *more)
        examples = TASK.examples(FilesConfig(str(tmp_path), train="a.json"), "train")
        assert not is_refused or len(examples) == 1
        with pytest.raises(UserError, match=r"question 1: none of the 1 training questions has an answer") if is_refused else nullcontext():
            TASK.fitted(examples)


def test_scores_and_submission() -> None:
    """By hand: one right, one half right, one answered where it has no answer, one right to give none."""
    context = "the cat sat on a mat"
    examples = [
        asked("a", "", context, ("cat", 4)),
        asked("b", "", context, ("cat sat", 4)),
        *(asked(n, "", context, impossible=True) for n in "cd"),
    ]
    answers = ["the cat", "cat", "mat", ""]
    found = TASK.score(answers, examples)
    assert found == pytest.approx({
        "exact": 50.0, "f1": 100 * (1 + 2 / 3 + 0 + 1) / 4, "HasAns_exact": 50.0, "HasAns_f1": 100 * (1 + 2 / 3) / 2,
        "NoAns_exact": 50.0, "NoAns_f1": 50.0,
    })  # fmt: skip
    assert SpanQa().score(answers[:2], examples[:2]) == pytest.approx({"exact": 50.0, "f1": 100 * (1 + 2 / 3) / 2})
    assert SpanQa().score(["cat"], [asked("a", "", context)]) == {"exact": 0.0, "f1": 0.0}
    details = [{"null_score": number / 2} for number in range(4)]
    sent = TASK.submission(answers, examples, details)
    assert json.loads(sent["predictions.json"]) == dict(zip("abcd", answers, strict=True))
    assert json.loads(sent["null_odds.json"]) == {"a": 0.0, "b": 0.5, "c": 1.0, "d": 1.5}
    assert list(SpanQa().submission(answers, examples, details)) == ["predictions.json"]


def test_the_best_threshold_is_reported_beside_the_set_one() -> None:
    """The null logits are 6 above those of the answers where there is an answer, and 8 above where there is none: with the threshold 0 no
    question is answered, with the best one all are right."""
    # An article is an empty text for the scores.
    examples = [one for one in drawn(40) if one.impossible or one.answers[0][0] in set(WORDS) - {"the", "a"}]
    features = TASK.features(examples, framing("wordpiece", BertConfig(), 60))
    logits = predicted(features, "spans")["spans"]
    owner = [examples[number] for number in features.example]
    for row, (example, place) in enumerate(zip(owner, features.places, strict=True)):
        logits[row, place.none] = 13 if example.impossible else 12
        if example.impossible:
            logits[row, place.first] = 9
    found = TASK.judge(examples, features, {"spans": logits})
    assert found["HasAns_exact"] == 0.0 and found["NoAns_exact"] == 100.0 == found["best_exact"] == found["best_f1"]
    assert found["best_exact_thresh"] == found["best_f1_thresh"] == pytest.approx(6.0)
    at_best = dataclasses.replace(TASK, null_threshold=found["best_f1_thresh"]).judge(examples, features, {"spans": logits})
    assert at_best["f1"] == at_best["exact"] == 100.0
    ones = [one for one in examples if not one.impossible]
    plain = dataclasses.replace(TASK, impossible=False)
    features = plain.features(ones, framing("wordpiece", BertConfig(), 60))
    assert set(plain.judge(ones, features, predicted(features, "spans"))) == {"exact", "f1"}


def test_records_of_a_user() -> None:
    one = TASK.of_record({"question": "who?", "context": "", "more": 3}, "f:1")
    assert (one.name, one.question, one.context, one.labelled) == ("f:1", "who?", "", False)
    assert TASK.of_record({"question": "", "context": "x", "id": 7}, "f:1").name == "7"
    for wrong in ({"question": "who?"}, {"question": None, "context": "x"}, {"question": "who?", "context": 3}):
        with pytest.raises(
            UserError, match="f:1: (question|context) is missing or is not a text; give every record a question and a context"
        ):
            TASK.of_record(wrong, "f:1")


def test_half_of_a_surrogate_pair_shifts_no_answer() -> None:
    example = asked("1", "\ud800", "the \udc00 cat")
    features = TASK.features([example], framing("wordpiece", BertConfig()))
    assert [example.context[a:b] for a, b in features.places[0].window.offsets][-1].endswith("t")
