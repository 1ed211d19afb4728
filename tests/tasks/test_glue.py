"""The table of GLUE: every layout of its files gives the same examples, submissions have the benchmark's form."""

import dataclasses
import json

import pyarrow as pa
import pytest

from jaxenc.errors import UserError
from jaxenc.tasks import glue

PAIR, RTE = ("a b", "c d"), ["entailment", "not_entailment"]
INDEXED = "index\tsentence1\tsentence2"
# {task: (the names that Hugging Face gives its texts and its classes, the rows of GLUE's train.tsv and test.tsv, whose second is [PAIR or
# its first text, class])}
CASES = {
    "cola": (("sentence",), ["unacceptable", "acceptable"], ["gj04\t0\t*\ta b", "gj04\t1\t\ta b"], "index\tsentence\n5\ta b"),
    "sst2": (("sentence",), ["negative", "positive"], ["sentence\tlabel", "a b\t1"], "index\tsentence\n5\ta b"),
    "mrpc": (
        ("sentence1", "sentence2"),
        ["not_equivalent", "equivalent"],
        ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r", "1\t7\t8\ta b\tc d\r"],
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n5\t7\t8\ta b\tc d",
    ),
    "qqp": (
        ("question1", "question2"),
        ["not_duplicate", "duplicate"],
        ["id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "3\t4\t5\ta b\tc d\t1", "broken"],
        "id\tquestion1\tquestion2\n5\ta b\tc d",
    ),
    "mnli": (
        ("premise", "hypothesis"),
        ["entailment", "neutral", "contradiction"],
        ["index\tpairID\tsentence1\tsentence2\tlabel1\tgold_label", "0\tx\ta b\tc d\tentailment\tneutral"],
        "index\tpairID\tsentence1\tsentence2\n5\tx\ta b\tc d",
    ),
    "qnli": (
        ("question", "sentence"),
        RTE,
        ["index\tquestion\tsentence\tlabel", "0\ta b\tc d\tnot_entailment", "broken"],
        "index\tquestion\tsentence\n5\ta b\tc d",
    ),
    "rte": (("sentence1", "sentence2"), RTE, [f"{INDEXED}\tlabel", "0\ta b\tc d\tnot_entailment"], f"{INDEXED}\n5\ta b\tc d"),
    "wnli": (("sentence1", "sentence2"), RTE[::-1], [f"{INDEXED}\tlabel", "0\ta b\tc d\t1"], f"{INDEXED}\n5\ta b\tc d"),
}


def saved(folder, **splits):
    """As `datasets` saves a dataset: {split: table}."""
    for split, table in splits.items():
        (folder / split).mkdir(parents=True)
        with pa.OSFile(str(folder / split / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        (folder / split / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))


def opened(name, folder, **settings):
    task, files = glue.task(name)
    return task, dataclasses.replace(files, path=str(folder), **settings)


@pytest.mark.parametrize("name", CASES)
def test_the_files_of_the_benchmark_and_of_hugging_face_give_the_same_examples(tmp_path, name):
    columns, classes, rows, test = CASES[name]
    parts = ("_matched", "_mismatched") if name == "mnli" else ("",)
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for part in parts:
        (tmp_path / f"dev{part}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (tmp_path / f"test{part}.tsv").write_text(test + "\n", encoding="utf-8")
    task, files = opened(name, tmp_path)
    label = classes[1]
    assert task.classes == tuple(classes)
    example = task.examples(files, "train")[-1]
    assert (example.texts, example.label) == (PAIR[: len(columns)], label)
    assert [(one.texts, one.label) for one in task.examples(files, "dev")][-1] == (example.texts, label)
    answered = task.examples(files, "test")
    assert [(one.name, one.texts, one.label) for one in answered] == [("5", example.texts, "")] * len(parts)
    written = label if name in ("mnli", "qnli", "rte") else "1"
    sent = task.submission([label] * len(parts), answered)
    assert list(sent) == [one.rpartition("=")[2] for one in task.submits][: len(parts)]
    assert set(sent.values()) == {f"index\tprediction\n5\t{written}\n"}

    table = lambda number: pa.table(
        {**dict(zip(columns, map(lambda text: [text], PAIR), strict=False)), "label": [number], "idx": [5]}
    ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"label": {"names": classes, "_type": "ClassLabel"}}}})})
    dev = {f"validation{part}": table(1) for part in parts}
    saved(tmp_path / "saved", train=table(1), **dev, **{f"test{part}": table(-1) for part in parts})
    task, files = opened(name, tmp_path / "saved")
    for split, wanted in (("train", label), ("dev", label), ("test", "")):
        found = task.examples(files, split)
        assert {(one.name, one.texts, one.label) for one in found} == {("5", example.texts, wanted)}
        assert len(found) == (1 if split == "train" else len(parts))


def test_tfds_has_splits_of_its_own():
    names = lambda name, split: opened(name, f"tfds:glue/{name}")[1].names(split)
    assert names("sst2", "train") == ["tfds:glue/sst2:train"] and names("cola", "dev") == ["tfds:glue/cola:validation"]
    assert names("mnli", "dev") == ["tfds:glue/mnli:validation_matched", "tfds:glue/mnli:validation_mismatched"]
    assert names("mnli", "test") == ["tfds:glue/mnli:test_matched", "tfds:glue/mnli:test_mismatched"]
    assert names("ax", "test") == ["tfds:glue/ax:test"]


def test_similarity_in_the_files_of_the_benchmark_and_of_the_corpus(tmp_path):
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    (tmp_path / "train.tsv").write_text(f"{header}\tscore\n0\tg\tf\ty\t1\tnone\tnone\ta b\tc d\t2.500\n")
    (tmp_path / "sts-dev.csv").write_text('g\tf\ty\t1\t2.500\ta b\tc d\ng\tf\ty\t2\t5.0\t"a b\tc d\tlicence\tother\n')
    (tmp_path / "test.tsv").write_text(f"{header}\n7\tg\tf\ty\t1\tnone\tnone\ta b\tc d\n")
    task, files = opened("stsb", tmp_path)
    assert [(one.texts, one.score) for one in task.examples(files, "train")] == [(PAIR, 2.5)]
    assert [(one.texts, one.score) for one in task.examples(files, "dev")] == [(PAIR, 2.5), (('"a b', "c d"), 5.0)]
    assert task.submission([5.7], task.examples(files, "test")) == {"STS-B.tsv": "index\tprediction\n7\t5.000\n"}


def test_the_corpus_of_cola_has_two_dev_files(tmp_path):
    for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"):
        (tmp_path / f"{name}.tsv").write_text("gj04\t1\t\ta b\ngj04\t0\t*\tc d\n")
    task, files = opened("cola", tmp_path)
    assert [(one.part, one.label) for one in task.examples(files, "dev")] == [
        ("in_domain_dev", "acceptable"), ("in_domain_dev", "unacceptable"),
        ("out_of_domain_dev", "acceptable"), ("out_of_domain_dev", "unacceptable"),
    ]  # fmt: skip
    assert files.names("test") == []


def test_the_diagnostic_set_is_answered_with_mnli(tmp_path):
    for name in ("test_matched", "test_mismatched", "diagnostic"):
        (tmp_path / f"{name}.tsv").write_text(f"index\tsentence1\tsentence2\n3\t{name}\tb\n")
    task, files = opened("mnli", tmp_path)
    sent = task.submission(["entailment", "neutral", "contradiction"], task.examples(files, "test"))
    form = "index\tprediction\n3\t{}\n".format
    assert sent == {"MNLI-m.tsv": form("entailment"), "MNLI-mm.tsv": form("neutral"), "AX.tsv": form("contradiction")}
    task, files = opened("ax", tmp_path)
    assert list(task.submission(["neutral"], task.examples(files, "test"))) == ["AX.tsv"] and task.metric == "matthews"


def test_b87_numbers_are_no_classes_of_mnli(tmp_path):
    """They are ordered differently by different projects."""
    (tmp_path / "train.jsonl").write_text('{"premise": "a", "hypothesis": "b", "label": 0}\n')
    task, files = opened("mnli", tmp_path, train="train.jsonl")
    with pytest.raises(
        UserError, match="train.jsonl:1: the label is '0'; fix it, or name it in task.labels, which holds entailment, neutral"
    ):
        task.examples(files, "train")


def test_a_name_that_is_no_task():
    assert list(glue.GLUE) == ["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli", "ax"]
    with pytest.raises(UserError, match="sst is not a task of GLUE; use cola, sst2"):
        glue.task("sst")
