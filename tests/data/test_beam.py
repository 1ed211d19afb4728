"""A build under Apache Beam writes the bytes of one on this machine. bash tests/run.sh --full runs this in .venv-beam."""

from pathlib import Path

import pytest

from jaxenc.data import beam, groups, shard_writer
from jaxenc.data import build as building
from jaxenc.data.build import build
from jaxenc.data.duplicates import Duplicates
from jaxenc.data.workers import Here
from tests.data.test_restart import contents

DIRECT = ["--runner", "DirectRunner"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "GROUP_CHARACTERS", 3000)
    monkeypatch.setattr(shard_writer, "SHARD_TOKENS", 4000)
    monkeypatch.setattr(building, "pool", lambda count: Here())


@pytest.mark.full
@pytest.mark.parametrize("rule", [Duplicates(), Duplicates("exact"), Duplicates("near", words=2, permutations=32)])
def test_the_bytes_of_beam_are_those_of_this_machine(
    rule: Duplicates, write_documents, corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several parts; one input is blank, and two are equal."""
    files = [str(corpus), *(str(write_documents(tmp_path / f"{number}.txt", 40, number % 2)) for number in (1, 2, 3, 4))]
    (tmp_path / "2.txt").write_text("\n \n")
    monkeypatch.setattr(groups, "PART_BYTES", 10_000)
    build(files, tokenizer, tmp_path / "here", 0.2, duplicates=rule)
    build(files, tokenizer, tmp_path / "beam", 0.2, duplicates=rule, beam_options=DIRECT)
    assert contents(tmp_path / "here") == contents(tmp_path / "beam")


@pytest.mark.full
def test_a_pipeline_goes_on_from_what_is_finished(corpus: Path, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build([str(corpus)], tokenizer, tmp_path / "here", 0.2)
    real, made = beam._pieces, []

    def failing(group, **rest):
        if len(made) == 10:
            raise RuntimeError("a machine went away")
        made.append(group.name)
        real(group, **rest)

    monkeypatch.setattr(beam, "_pieces", failing)
    with pytest.raises(RuntimeError, match="a machine went away"):
        build([str(corpus)], tokenizer, tmp_path / "beam", 0.2, beam_options=DIRECT)
    (place,) = tmp_path.glob(".beam.unfinished-*")
    before = {path.name: path.stat().st_ino for path in place.rglob("*.train.npz")}
    monkeypatch.setattr(beam, "_pieces", real)
    inodes = {}
    monkeypatch.setattr(
        building,
        "write_shard",
        lambda *given: [inodes.update({p.name: p.stat().st_ino}) for p in given[3]] and shard_writer.write_shard(*given),
    )
    build([str(corpus)], tokenizer, tmp_path / "beam", 0.2, beam_options=DIRECT)
    assert len(before) >= 10 and before.items() <= inodes.items()
    assert contents(tmp_path / "here") == contents(tmp_path / "beam")
