"""R08, R40: from names to sources: folders, patterns, pipes, each once and in order."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jaxenc.data import readers
from jaxenc.data.readers import Counts, Reading
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines


def fill(folder, **files):
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.fixture
def folder(tmp_path):
    """Files of several kinds: a.txt, b/c.jsonl and b/d.txt are to be read."""
    fill(tmp_path / "in", a_txt="a\n", b__c_jsonl='{"text": "c"}\n', b__d_txt="d\n", _hidden="no\n", photo_png="no", empty_txt="")
    (tmp_path / "in" / ".git").mkdir()
    (tmp_path / "in" / ".git" / "config").write_text("no\n")
    return tmp_path / "in"


def test_r08_a_folder_is_read_in_the_order_of_its_paths(folder):
    documents, counts = found(folder)
    assert [(d.source, d.lines) for d in documents] == [
        (f"{folder}/{name}:1", (name[-5 if "json" not in name else -7],)) for name in ("a.txt", "b/c.jsonl", "b/d.txt")
    ]
    assert (counts.skipped_files, counts.empty_files) == (3, 1)


def test_r08_patterns(folder):
    assert lines(folder / "*.txt") == [("a",)]
    assert lines(folder / "**" / "*.txt") == [("a",), ("d",)]
    assert lines(folder / "*") == lines(folder) == lines(folder / "**") == [("a",), ("c",), ("d",)]
    with pytest.raises(UserError, match=r"\*\.csv: no file has such a name"):
        lines(folder / "*.csv")
    (folder / "[x].txt").write_text("x\n")
    assert lines(folder / "[x].txt") == [("x",)]


def test_r40_a_file_is_read_once_whatever_it_is_called(folder, monkeypatch):
    (folder / "link.txt").symlink_to("a.txt")
    monkeypatch.chdir(folder)
    documents, counts = found("a.txt", folder / "a.txt", "./b/../a.txt", folder)
    assert [d.source for d in documents] == ["a.txt:1", f"{folder}/b/c.jsonl:1", f"{folder}/b/d.txt:1"]
    assert counts.repeated_files == 4


def test_links_in_a_circle_end_and_links_to_nothing_are_named(folder):
    (folder / "b" / "up").symlink_to(folder)
    assert lines(folder) == [("a",), ("c",), ("d",)]
    (folder / "gone.txt").symlink_to("nothing")
    with pytest.raises(UserError, match=r"gone\.txt: No such file"):
        lines(folder)


def test_a_file_without_a_suffix_is_read_under_the_name_of_its_link(tmp_path):
    """As in the cache of Hugging Face's hub; under its own name the table would be plain text."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "0a1b").write_text("text,id\none,1\n")
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "a.csv").symlink_to("../blobs/0a1b")
    documents, counts = found(tmp_path)
    assert [(d.source, d.lines) for d in documents] == [(f"{tmp_path}/snapshots/a.csv:2", ("one",))] and counts.repeated_files == 0


def test_a_pipe_in_a_folder_is_skipped_and_does_not_block(folder):
    os.mkfifo(folder / "pipe")
    documents, counts = found(folder)
    assert len(documents) == 3 and counts.skipped_files == 4


def test_r40_a_named_pipe_and_process_substitution(tmp_path):
    """`<(command)` is a name such as /dev/fd/63 of a pipe. The source can be opened twice, its identity is of its bytes."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("one\n\ntwo\n",))
    writer.start()
    (named,) = readers.inputs([str(tmp_path / "pipe")], Reading(), Counts())
    writer.join()
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    (file,) = readers.inputs([str(tmp_path / "a.txt")], Reading(), Counts())
    assert named.identity() == file.identity() and named.size == file.size
    for _ in range(2):
        assert [d.lines for d in readers.documents([named], Reading(), Counts())] == [("one",), ("two",)]
    read, write = os.pipe()
    os.write(write, b'{"text": "three"}\n')
    os.close(write)
    assert [(d.source, d.lines) for d in found(f"/dev/fd/{read}")[0]] == [(f"/dev/fd/{read}:1", ("three",))]
    os.close(read)


@pytest.mark.parametrize("name, more", [("-", ""), ("/dev/stdin", ""), ("/dev/stdin", ", '-'")])
def test_r40_the_standard_input(name, more):
    code = (
        "from jaxenc.data import readers as r; how, counts = r.Reading(), r.Counts();"
        f"print([d.lines for d in r.documents(r.inputs([{name!r}{more}], how, counts), how, counts)], counts.repeated_files)"
    )
    for given, out in (("one\n\ntwo\n", f"[('one',), ('two',)] {len(more[:1])}\n"), ("", "")):
        ran = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True)
        assert ran.stdout == out and (given or f"{name}: is empty" in ran.stderr)


def test_a_source_can_be_read_by_another_process(folder):
    sources = readers.inputs([str(folder), "docstrings"], Reading(), Counts())
    assert pickle.loads(pickle.dumps(sources)) == sources


def test_names_with_blanks_and_names_that_are_not_utf8(tmp_path):
    (tmp_path / "a b.txt").write_text("blank\n")
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "w") as file:
        file.write("bytes\n")
    documents, _ = found(tmp_path)
    assert [d.lines for d in documents] == [("blank",), ("bytes",)]
    assert documents[1].source == f"{tmp_path}/\\xff.txt:1"


def test_what_holds_nothing_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("x")
    for name in ("empty", "photos"):
        with pytest.raises(UserError, match=f"{name}: holds no text"):
            lines(tmp_path / name)
    with pytest.raises(UserError, match="/dev/zero: is a device"):
        lines("/dev/zero")
    with pytest.raises(UserError, match="is a folder of `jaxenc data`"):
        lines(fill(tmp_path / "data", manifest_json="{}", tokenizer__vocab_txt="x"))


def test_what_jaxenc_made_among_the_text_is_no_text(folder):
    """A tokenizer, data and a run, made in the folder of the text; a folder of other files with such names is read."""
    fill(folder / "tok", tokenizer_json="{}", vocab_txt="x")
    (folder / "tok" / "tokenizer_config.json").write_text("{}")
    fill(folder / "data", manifest_json="{}", tokenizer__vocab_txt="x", report_md="x")
    fill(folder / "run", config_json='{"objective": {}, "model": {}}', log_jsonl="{}")
    skipped = found(fill(folder / "words", vocab_txt="v\n"))[1].skipped_files
    documents, counts = found(folder)
    assert [d.lines for d in documents] == [("a",), ("c",), ("d",), ("v",)]
    assert skipped == 0 and counts.skipped_files == 3 + 3  # .git, .hidden and photo.png too


def test_at_a_url_the_same_files_are_text_as_in_a_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXENC_CACHE", str(tmp_path / "cache"))
    fill(folder / "tok", tokenizer_json="{}", vocab_txt="x")
    fill(folder / "data", manifest_json="{}", tokenizer__vocab_txt="x", report_md="x")
    fill(folder / "run", config_json='{"objective": {}, "model": {}}', checkpoints__7__manifest_json="{}", log_jsonl="{}")
    (folder / "run" / "checkpoints" / "7" / "CHECKSUMS.json").write_text("{}")
    fill(folder / "begun", config_json='{"objective": {}, "model": {}}', metrics_jsonl="{}")
    fill(folder / "words", vocab_txt="v\n")
    wanted = [("a",), ("c",), ("d",), ("v",)]
    assert lines(folder) == lines(f"file://{folder}") == lines(f"file://{folder}/") == wanted


def test_an_unreadable_file_is_named(tmp_path, monkeypatch):
    """As root every file can be read, so the refusal is made here."""
    (tmp_path / "a.txt").write_text("a\n")
    sources = readers.inputs([str(tmp_path)], Reading(), Counts())

    def refuse(*args, **how):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UserError, match=r"a\.txt: Permission denied; check that the file can be read"):
        list(readers.documents(sources, Reading(), Counts()))


def test_the_reading_belongs_to_the_identity_only_where_it_is_not_the_default():
    assert Reading().identity("x") == Reading(tfds_dir="d").identity("x") == "x"
    assert len({Reading(**how).identity("x") for how in ({}, {"field": "a"}, {"document": "line"}, {"encoding": "cp1252"})}) == 4


@pytest.mark.parametrize("names", ["ab.txt", Path("a.txt"), [Path("a.txt")], [3]])
def test_names_that_are_no_list_of_str(names):
    """The letters of a path would be read as names: `/` is every file of the machine."""
    with pytest.raises(UserError, match="; give "):
        readers.inputs(names, Reading(), Counts())
