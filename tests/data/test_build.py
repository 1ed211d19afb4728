import dataclasses
import itertools
import json
import os
import shutil

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import held_out, manifest, sentences, shard_writer
from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load, wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.errors import UserError


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_document_is_kept_with_its_sentences(corpus, tokenizer, data):
    """Against a slow loop over the file: the documents of both splits together, their sentences and their ids."""
    tool = load(tokenizer)
    expected = sorted(
        tuple(tuple(ids) for ids in tool.encode([s for line in text.split("\n") for s in sentences.split(line)]))
        for text in corpus.read_text().strip().split("\n\n")
    )
    found = []
    for split in ("train", "held_out"):
        shards = open_split(data, split, verify=True)
        tokens = shards.tokens.take(np.arange(len(shards.tokens)))
        starts = shards.sentences.take(np.arange(len(shards.sentences)))
        firsts = shards.documents.take(np.arange(len(shards.documents)))
        for a, b in itertools.pairwise(firsts):
            found.append(tuple(tuple(tokens[starts[s] : starts[s + 1]].tolist()) for s in range(a, b)))
        assert shards.manifest.splits[split].documents == len(firsts) - 1
    assert sorted(found) == expected and len(expected) > 10


def test_the_same_bytes_for_any_number_of_workers(corpus, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "GROUP_CHARACTERS", 3000)
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", 4000)
    made = [build([str(corpus)], tokenizer, tmp_path / str(workers), 0.1, workers) for workers in (1, 2, 4)]
    assert len(made[0].splits["train"].shards) > 3
    assert contents(tmp_path / "1") == contents(tmp_path / "2") == contents(tmp_path / "4")
    assert len({m.fingerprint for m in made}) == 1


def test_a_text_of_one_group_starts_no_process(corpus, tokenizer, tmp_path, monkeypatch):
    """Starting one takes longer than its work; the tokenizer is the one that is given, also where the folder had another before."""
    monkeypatch.setattr(building, "pool", None)
    (tmp_path / "text.txt").write_text("bande kilo\nnothing known\n")
    wordpiece.train(["nothing known"] * 3, 60).save(tmp_path / "other")
    for folder in (tokenizer, tmp_path / "other"):
        build([str(tmp_path / "text.txt")], folder, tmp_path / "out", 0.0)
        tokens = open_split(tmp_path / "out", "train").tokens
        wanted = [i for line in ("bande kilo", "nothing known") for i in load(folder).encode([line])[0]]
        assert tokens.take(np.arange(len(tokens))).tolist() == wanted
        shutil.rmtree(tmp_path / "out")


def test_several_shards_read_as_one(corpus, tokenizer, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    build([str(corpus)], tokenizer, whole, 0.1)
    monkeypatch.setattr(building, "GROUP_CHARACTERS", 3000)
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", 4000)
    build([str(corpus)], tokenizer, tmp_path / "cut", 0.1)
    one, many = open_split(whole, "train"), open_split(tmp_path / "cut", "train")
    assert len(one.tokens.parts) == 1 and len(many.tokens.parts) > 3
    for table in ("tokens", "sentences", "documents"):
        index = np.arange(len(getattr(one, table)))
        assert np.array_equal(getattr(one, table).take(index), getattr(many, table).take(index)), table
    values = np.arange(len(one.tokens) + 3)
    for side in ("left", "right"):
        expected = np.searchsorted(one.sentences.take(np.arange(len(one.sentences))), values, side)
        assert np.array_equal(many.sentences.search(values, side), expected)
        assert np.array_equal(one.sentences.search(values, side), expected)
    starts = np.arange(0, len(one.tokens), 17)
    flat = one.tokens.take(np.arange(len(one.tokens)))
    expected = flat[np.minimum(starts[:, None] + np.arange(50), len(flat) - 1)]
    assert np.array_equal(one.tokens.window(starts, 50), expected) and np.array_equal(many.tokens.window(starts, 50), expected)


def test_held_out_documents_do_not_depend_on_the_company(corpus, tokenizer, data, tmp_path):
    (tmp_path / "more.txt").write_text("Ban der kist lolo.\n\n" * 1 + corpus.read_text())
    build([str(tmp_path / "more.txt")], tokenizer, tmp_path / "more", 0.2)
    small, large = (open_split(path, "held_out") for path in (data, tmp_path / "more"))
    extra = len(large.documents) - len(small.documents)
    assert extra in (0, 1)
    share = (len(small.documents) - 1) / 120
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 120)


def test_sentences_without_tokens_are_dropped_and_counted(tokenizer, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Ban der.\n\u200e\nKist lolo.\n\n\ufeff\u200f\n\u00ad\n\nMuda sar.\n", encoding="utf-8")
    split = build([str(path)], tokenizer, tmp_path / "out", 0.0).splits["train"]
    assert (split.documents, split.sentences, split.empty_sentences, split.empty_documents) == (2, 3, 3, 1)
    shards = open_split(tmp_path / "out", "train")
    assert shards.documents.take(np.arange(3)).tolist() == [0, 2, 3]


def test_many_unknown_tokens_are_told(tmp_path, capsys):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nBerlin\nist\nParis\n")
    (tmp_path / "a.txt").write_text("Berlin ist Paris\n")
    wordpiece.from_vocab(tmp_path / "vocab.txt", PublishedRules(False, False)).save(tmp_path / "cased")
    wordpiece.from_vocab(tmp_path / "vocab.txt", PublishedRules(True, True)).save(tmp_path / "lower")
    assert build([str(tmp_path / "a.txt")], tmp_path / "cased", tmp_path / "fits", 0.0).splits["train"].unknown == 0
    assert "[UNK]" not in capsys.readouterr().err
    assert build([str(tmp_path / "a.txt")], tmp_path / "lower", tmp_path / "not", 0.0).splits["train"].unknown == 2
    assert "warning: 66.7% of the tokens are [UNK]" in capsys.readouterr().err
    assert json.loads((tmp_path / "not" / manifest.NAME).read_text())["unknown_share"] == pytest.approx(2 / 3)


def test_large_vocabularies_are_stored_in_32_bits(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(70_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    (tmp_path / "a.txt").write_text("w1 w69999")
    assert build([str(tmp_path / "a.txt")], tmp_path, tmp_path / "out", 0.0).dtype == "uint32"
    assert open_split(tmp_path / "out", "train").tokens.take(np.arange(2)).tolist() == [6, 70_004]


def test_a_finished_folder_is_kept_and_another_one_refused(corpus, tokenizer, data, tmp_path, capsys):
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    assert build([str(corpus)], tokenizer, data, 0.2) == manifest.read(data)
    assert "holds this data already" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before
    with pytest.raises(UserError, match="another --held-out"):
        build([str(corpus)], tokenizer, data, 0.1)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="exists already, a folder with thesis.tex; choose another --out"):
        build([str(corpus)], tokenizer, tmp_path / "other", 0.2)
    assert (tmp_path / "other" / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize("content, said", [(b"\xc2\xad\n", "no token came out of 1 document"), (b'{"x": 1}', "a.jsonl:1")])
def test_a_build_that_fails_leaves_nothing(tokenizer, tmp_path, content, said):
    name = "a.jsonl" if content.startswith(b"{") else "a.txt"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        build([str(tmp_path / name)], tokenizer, tmp_path / "out")
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("change", ["append", "same size", "touch"])
def test_an_input_that_changes_while_it_is_read_is_refused(corpus, tokenizer, tmp_path, monkeypatch, capsys, change):
    """Else the manifest would name one text and the shards hold another."""
    text = tmp_path / "text.txt"
    text.write_bytes(corpus.read_bytes())
    scanned = held_out.scanned

    def changed(*given):
        content = {"append": text.read_bytes() + b"More.\n", "same size": text.read_bytes().replace(b"b", b"d"), "touch": text.read_bytes()}
        text.write_bytes(content[change])
        os.utime(text, ns=(0, 0))
        return scanned(*given)

    monkeypatch.setattr(held_out, "scanned", changed)
    if change == "touch":
        build([str(text)], tokenizer, tmp_path / "out")
        return
    with pytest.raises(UserError, match=r"text\.txt: changed while it was read; run the command again when nothing writes to it any more"):
        build([str(text)], tokenizer, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"] and "kept" not in capsys.readouterr().err


def test_a_full_disk_is_one_line_and_loses_nothing(corpus, tokenizer, tmp_path, monkeypatch, capsys):
    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(building, "write_shard", full)
        with pytest.raises(UserError, match="No space left on device; free some space"):
            build([str(corpus)], tokenizer, tmp_path / "out")
    assert "1 group is finished and kept in" in capsys.readouterr().err and not (tmp_path / "out").exists()
    build([str(corpus)], tokenizer, tmp_path / "out")
    assert "1 group was finished before" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["out"]


def test_a_place_that_cannot_be_written_is_one_line(corpus, tokenizer, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        build([str(corpus)], tokenizer, tmp_path / "file" / "out")


@pytest.mark.parametrize("held_out, workers", [(1.0, 1), (-0.1, 1), (0.1, 0), (0.1, 10**8)])
def test_impossible_settings(corpus, tokenizer, tmp_path, held_out, workers):
    with pytest.raises(UserError, match="; use "):
        build([str(corpus)], tokenizer, tmp_path / "out", held_out, workers)


@pytest.fixture
def copy(data, tmp_path):
    shutil.copytree(data, tmp_path / "copy")
    return tmp_path / "copy"


def test_missing_truncated_and_changed_shards_are_named(copy):  # T12
    path = copy / "train-00000.sentences"
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    open_split(copy, "train")
    with pytest.raises(UserError, match="train-00000.sentences: its content changed"):
        open_split(copy, "train", verify=True)
    path.write_bytes(content[:-4])
    with pytest.raises(UserError, match="train-00000.sentences: has .* bytes, not the"):
        open_split(copy, "train")
    path.unlink()
    with pytest.raises(UserError, match="train-00000.sentences: missing"):
        open_split(copy, "train")


def test_a_manifest_that_does_not_fit_is_named(copy, tmp_path):
    (copy / "manifest.json").write_text((copy / "manifest.json").read_text().replace('"cls": 2', '"cls": 7'))
    with pytest.raises(UserError, match="names another tokenizer"):
        open_split(copy, "train")
    (copy / "manifest.json").write_text('{"version": 1}')
    with pytest.raises(UserError, match="manifest.json: damaged"):
        open_split(copy, "train")
    (copy / "manifest.json").write_text('{"version": 99}')
    with pytest.raises(UserError, match="version 99"):
        open_split(copy, "train")
    with pytest.raises(UserError, match="made by `jaxenc data`"):
        open_split(tmp_path, "train")


def test_ids_outside_the_vocabulary_are_refused(copy):
    facts = json.loads((copy / "manifest.json").read_text())
    facts["splits"]["train"]["shards"][0]["highest"] = 60
    (copy / "manifest.json").write_text(json.dumps(facts))
    with pytest.raises(UserError, match="train-00000.tokens: holds id 60, and the vocabulary has 60"):
        open_split(copy, "train")


def test_the_fingerprint_of_data_covers_its_files_its_tokenizer_and_its_format(data):
    """Two folders of equal shards mean other words under another tokenizer."""
    facts = manifest.read(data)
    name = next(iter(facts.files))
    changed = [
        dataclasses.replace(facts, tokenizer=dataclasses.replace(facts.tokenizer, fingerprint="other")),
        dataclasses.replace(facts, files={**facts.files, name: dataclasses.replace(facts.files[name], sha256="0")}),
        dataclasses.replace(facts, files={**facts.files, "more": facts.files[name]}),
        dataclasses.replace(facts, version=facts.version - 1),
    ]
    assert len({facts.fingerprint, *(other.fingerprint for other in changed)}) == 5
