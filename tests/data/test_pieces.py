"""Pieces are pure: made in any order, by any process, from any part of the inputs on its own, they give the same files."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data import build as building
from jaxenc.data import groups, held_out, pieces, readers, shard_writer, workers
from jaxenc.data.build import build
from jaxenc.data.groups import Group, Text
from jaxenc.data.pieces import Work
from jaxenc.data.readers import Counts, Progress, Reading
from jaxenc.data.readers.sources import Docstrings, File
from jaxenc.data.tokenizers import lines, load

GROUP, SHARD = 1000, 2500


def text_of(*files: Path) -> Text:
    return Text(readers.inputs([str(path) for path in files], Reading(), Counts()), Reading())


def test_groups_of_a_part_do_not_depend_on_the_other_parts(write_documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads one part gives the groups that a process gives which reads all; they hold every document once, in order."""
    files = [write_documents(tmp_path / f"{number}.txt", 10, number) for number in range(7)]
    (tmp_path / "3.txt").write_text("\n \n")
    monkeypatch.setattr(groups, "PART_BYTES", files[0].stat().st_size * 3 // 2)
    text = text_of(*files)
    assert len(text.parts) == 3 and [source.name for part in text.parts for source in part] == [str(path) for path in files]
    whole = list(groups.groups(text.documents(Counts(), Progress(0)), GROUP))
    alone = [groups.groups(groups.of_part(part, Reading(), Counts(), Progress(0)), GROUP, number) for number, part in enumerate(text.parts)]
    assert list(itertools.chain.from_iterable(alone)) == whole and len(whole) > 10
    assert [group.name for group in whole] == sorted({group.name for group in whole})
    assert [lines for group in whole for lines in group.documents] == [
        document.lines for document in readers.documents(text.sources, Reading(), Counts())
    ]
    sizes = [sum(len(line) for lines in group.documents for line in lines) for group in whole]
    assert all(size >= GROUP for size, (a, b) in zip(sizes, itertools.pairwise(whole), strict=False) if a.name[:6] == b.name[:6])


def test_an_input_of_unknown_size_ends_a_part() -> None:
    a, docstrings, b, c = File("a", 10, ""), Docstrings(), File("b", 10, ""), File("c", 10, "")
    assert Text((a, docstrings, b, c), Reading()).parts == [(a, docstrings), (b, c)]


def test_pieces_in_any_order_and_process_give_the_folder(corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch) -> None:
    """Backwards, every second one in another process; their shards are those of a build."""
    monkeypatch.setattr(building, "GROUP_CHARACTERS", GROUP)
    monkeypatch.setattr(building, "pool", lambda count: workers.Here())
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", SHARD)
    result = build([str(corpus)], tokenizer, tmp_path / "out", 0.2)
    all_groups = list(groups.groups(text_of(corpus).documents(Counts(), Progress(0)), GROUP))
    work = Work(str(tokenizer), str(tmp_path / "pieces"), int(0.2 * held_out.HASHES) + 1, "uint16")
    (tmp_path / "pieces").mkdir()
    make = functools.partial(pieces.make, work)
    facts = {}
    with workers.pool(1) as other:
        for number, group in reversed(list(enumerate(all_groups))):
            facts[group.name] = other.submit(make, group).result() if number % 2 else make(group)
    (tmp_path / "new").mkdir()
    for split in ("train", "held_out"):
        shards, cuts = shard_writer.NextShard(), []
        for group in all_groups:
            cuts += [shards.add(group.name, facts[group.name][split].tokens)]
        for number, names in enumerate(filter(None, [*cuts, shards.take()])):
            paths = [pieces.path(tmp_path / "pieces", name, split) for name in names]
            shard_writer.write_shard(tmp_path / "new", f"{split}-{number:05d}", "uint16", paths)
    made = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*-0*.*")}
    assert sum(split.tokens for split in result.splits.values()) == sum(own.tokens for by in facts.values() for own in by.values())


def test_a_piece_survives_its_file(tokenizer: Path, tmp_path: Path) -> None:
    group = Group("000000-00000000", (("Ban der. Kist lolo.", "Muda"), ("\u200e",), ("Sar ban.",)))
    for split, piece in pieces.of_group(group, load(tokenizer), held_out.HASHES // 2, "uint16").items():
        path = pieces.path(tmp_path, group.name, split)
        pieces.save(piece, path)
        again = pieces.load(path)
        for name in ("tokens", "words", "sentences", "documents"):
            assert np.array_equal(getattr(piece, name), getattr(again, name)) and getattr(piece, name).dtype == getattr(again, name).dtype
        assert again.facts == piece.facts == pieces.load_facts(path)


def test_the_sentences_of_one_call_do_not_matter(corpus: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = tuple(document.lines for document in readers.documents(text_of(corpus).sources, Reading(), Counts()))
    group, tool = Group("a", (*documents, ("\u200e",))), load(tokenizer)
    whole = pieces.of_group(group, tool, held_out.HASHES // 3, "uint16")
    for batch in (1, 500):
        monkeypatch.setattr(lines, "BATCH", batch)
        for split, piece in pieces.of_group(group, tool, held_out.HASHES // 3, "uint16").items():
            for name in ("tokens", "words", "sentences", "documents"):
                assert np.array_equal(getattr(piece, name), getattr(whole[split], name)), (split, name)
            assert piece.facts == whole[split].facts


def test_facts_add_up(corpus: Path, tokenizer: Path) -> None:
    """The sum over groups is what one group of all documents has, but for what is counted in a sample of each."""
    documents = tuple(document.lines for document in readers.documents(text_of(corpus).sources, Reading(), Counts()))
    tool = load(tokenizer)
    one = pieces.of_group(Group("a", documents), tool, 0, "uint16")["train"].facts
    parts = [pieces.of_group(Group("a", documents[i : i + 7]), tool, 0, "uint16")["train"].facts for i in range(0, len(documents), 7)]
    total = sum(parts[1:], parts[0])
    for name in ("documents", "sentences", "tokens", "unknown", "single", "text_bytes", "document_lengths", "sentence_lengths"):
        assert getattr(one, name) == getattr(total, name), name
    assert one.text_bytes == len("\n".join(itertools.chain.from_iterable(documents)).encode()) - len(documents) + 1
    assert sum(one.document_lengths) == one.documents == len(documents) and sum(one.sentence_lengths) == one.sentences
