"""Damaged files as a report and `jaxenc watch` read them: one line for each, whatever is in them and whatever they are."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxenc.cli.main import main
from jaxenc.config import to_dict
from jaxenc.reports import picture, report, watch
from jaxenc.tasks import kept, results
from jaxenc.tasks.results import Outcome, Results
from jaxenc.training import events, prepare, record
from jaxenc.training.run import Run
from tests.safety.damage import ODD, Edits, altered, bounded, byte_edits, damaged, dumped, folder_of, fuzzed, json_edits
from tests.safety.test_fuzz_runs import ROW, START, STEPS

SEEDS = (
    Outcome(0, "tuned/seed_0", 8, {"accuracy": 0.5, "loss": 1.25}, seconds=2.5, answered={"dev": "ab"}),
    Outcome(1, "tuned/seed_1", 8, {"accuracy": 0.75, "loss": math.inf}),
    Outcome(2, "tuned/seed_2", 0, {}, "3 non-finite steps in a row: lower optim.lr"),
)
RESULTS = json.loads(dumped(Results("accuracy", SEEDS, shown={"accuracy": "acc."}).to_json()))
FILES = {
    record.METRICS: dumped(ROW | {"split": "train"}) + b"\n" + dumped(ROW) + b"\n",
    events.EVENTS: dumped(START) + b"\n" + dumped(STEPS) + b"\n",
    prepare.CONFIG: dumped(to_dict(Run())),
}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture takes as long as a hundred tables."""
    monkeypatch.setattr(picture, "picture", lambda panels: b"")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


def tuned(folder: Path, content: bytes) -> Path:
    folder_of(folder, {results.NAME: content})
    folder_of(folder / "seed_0", FILES)
    return folder


def shown(folder: Path) -> None:
    """All that is made of a results.json."""
    found, _ = report.of_tuning(folder)
    assert all(line.isprintable() for line in (*results.table(found), results.quoted(found, folder)))
    kept.kept(folder)


@fuzzed(300)
@given(edits=json_edits())
def test_results(place: Path, undrawn: None, edits: Edits) -> None:
    with bounded():
        shown(tuned(place / "tuned", dumped(altered(RESULTS, edits))))


@fuzzed(100)
@given(edits=byte_edits())
def test_results_byte_by_byte(place: Path, undrawn: None, edits: Edits) -> None:
    with bounded():
        shown(tuned(place / "tuned", damaged(dumped(RESULTS), edits)))


OF_A_SEED = [f"seeds/0/{name}" for name in (*RESULTS["seeds"][0], "scores/accuracy")]


@pytest.mark.parametrize("path", ["metric", "shown", "seeds", *OF_A_SEED])
def test_every_field_of_the_results_is_checked(place: Path, undrawn: None, path: str) -> None:
    """Each odd value in the place of each field: the file is named, or the value is one that may stand there."""
    *parts, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for odd in ODD:
        data = json.loads(dumped(RESULTS))
        holder = data
        for part in parts:
            holder = holder[part]
        holder[last] = odd
        with bounded():
            shown(tuned(place / "tuned", dumped(data)))


@fuzzed(100)
@given(edits=json_edits())
def test_the_result_of_a_seed(place: Path, edits: Edits) -> None:
    with bounded():
        folder_of(place / "one", {results.RESULT: dumped(altered(RESULTS["seeds"][0], edits))})
        kept.kept(place / "one")
        results.of_other_seeds(folder_of(place, {}), ())


@fuzzed(200)
@given(edits=json_edits())
def test_the_config_of_a_run(place: Path, undrawn: None, edits: Edits) -> None:
    with bounded():
        folder = folder_of(place / "run", FILES | {prepare.CONFIG: dumped(altered(json.loads(FILES[prepare.CONFIG]), edits))})
        report.report(folder)
    with bounded():
        watch.lines(watch.look(str(place / "run")), 2e9, 80)


@fuzzed(100)
@given(name=st.sampled_from(sorted(FILES)), edits=byte_edits())
def test_files_byte_by_byte(place: Path, undrawn: None, name: str, edits: Edits) -> None:
    with bounded():
        folder = folder_of(place / "bytes", FILES | {name: damaged(FILES[name], edits)})
        report.compare([folder, folder], by="flops", with_baselines=False)
    with bounded():
        seen = [watch.look(str(place / "bytes"))] * 2
        assert all(line.isprintable() for line in (*watch.lines(seen[0], 2e9, 80), *watch.table(seen, 2e9, 80)))


@pytest.mark.parametrize("name", [*FILES, results.NAME, "checkpoints"])
def test_a_file_of_another_kind_is_one_line(tmp_path: Path, undrawn: None, name: str, capsys: pytest.CaptureFixture) -> None:
    """A folder in the place of a file, a file in that of a folder, and a link that leads nowhere."""
    for number in range(2):
        folder = tuned(tmp_path / f"tuned_{number}", dumped(RESULTS)) / ("" if name == results.NAME else "seed_0")
        (folder / name).unlink(missing_ok=True)
        if number or name == "checkpoints":
            (folder / name).symlink_to("nowhere") if number else (folder / name).write_text("mine")
        else:
            (folder / name).mkdir()
        for command in (["report", "--no-baselines"], ["watch", "--once"]):
            code = main([*command, "--workdir", str(folder)])
            said = capsys.readouterr().err
            assert code == 0 or (code == 2 and said.startswith("jaxenc: ") and said.count("\n") == 1), said
