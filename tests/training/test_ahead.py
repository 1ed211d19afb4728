"""A step compiled for another machine: what is refused before, the sizes in the compiler's refusal, and the largest batch."""

import dataclasses

import pytest

from jaxenc.cli import recipe as cli_config
from jaxenc.errors import UserError
from jaxenc.sharding.topology import parse
from jaxenc.training import ahead
from jaxenc.training.ahead import Forecast, Target, estimate, largest, target
from jaxenc.training.memory import StepMemory, held_beside
from jaxenc.training.roofline import Bound

NANO = ["model.width=16", "model.heads=2", "model.feed_forward=32", "model.layers=1", "data.length=24"]


def of(topology: str, *more: str) -> Target:
    run = cli_config.resolve("bert/tiny", [f"--config.{item}" for item in (*NANO, *more)])
    vocabulary = run.model.published_vocabulary
    return target(run.with_vocabulary(vocabulary), vocabulary, parse(topology))


@pytest.mark.parametrize(
    ("topology", "override", "words"),
    [
        ("v5e:16x16", "train.batch=100", "100 rows cannot be split over 256 devices"),
        ("v5p:4x4x4", "mesh.tensor=3 mesh.preset=fsdp_tp", "mesh.tensor is 3, which does not divide the 64 devices"),
        ("h100:8", "train.batch=8 train.microbatches=2", "8 rows in 2 microbatches cannot be split over 8 devices"),
        ("h100:8", "mesh.preset=zero", "mesh.preset is 'zero'"),
    ],
)
def test_what_a_run_there_would_refuse_is_refused_before_anything_compiles(topology: str, override: str, words: str) -> None:
    """Neither libtpu nor the devices are needed for it."""
    with pytest.raises(UserError, match=words):
        of(topology, *override.split())


@pytest.mark.parametrize(
    ("said", "arguments", "expected"),
    [
        ("RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (26.75G) exceeds", 7, 26.75 * 2**30),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 16.00G of 15.75G hbm. Exceeded", 2**30, 15 * 2**30),
        ("RESOURCE_EXHAUSTED: Used 512.5M of 15.75G hbm", 2**40, 0),
        ("RESOURCE_EXHAUSTED: Out of memory", 7, 0),
    ],
)
def test_the_memory_in_libtpus_message_is_read(said: str, arguments: int, expected: float) -> None:
    """Both sentences of libtpu's compiler: temporaries alone, or everything."""
    assert held_beside(said, arguments) == int(expected)


def test_the_rows_that_fit_lie_on_a_line() -> None:
    """100 bytes and 10 a row: 1,000 hold 90 rows, 99 hold none; the order of the two steps is of no account."""
    assert estimate((8, 180), (16, 260), 1000) == estimate((16, 260), (8, 180), 1000) == 90
    assert estimate((8, 180), (16, 260), 99) == 0
    with pytest.raises(ValueError, match="8 rows twice"):
        estimate((8, 180), (8, 180), 1000)


@pytest.mark.parametrize(
    ("room", "batch", "fit"),
    # A step of n rows on each of 8 devices takes 1,000 + 100 n + n² bytes: not quite a line.
    [(10_000, 64, 57), (10_000, 8, 57), (3_000, 256, 17), (1_200, 64, 1), (1_050, 64, 0), (10_000, 456, 57)],
)
@pytest.mark.parametrize("says", [True, False])
def test_the_largest_batch_is_found_in_few_compilations(
    room: int, batch: int, fit: int, says: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fit` rows on each device, or at most 4 % less (a tenth where the compiler does not say how much was missing); at most seven
    compilations, of which the first is of the phase itself."""
    found = of("h100:8", "train.batch=8")
    calls: list[int] = []

    def step(found: Target, number: int, phase: ahead.Phase) -> Forecast:
        rows = phase.batch // 8
        assert phase.batch % 8 == 0 and rows not in calls
        calls.append(rows)
        total = 1000 + 100 * rows + rows * rows
        held = StepMemory(0, 0, 0, 0, 0, total if says or total <= room else 0)
        return Forecast(phase, "xla", held, "", total <= room, 0, 0, 0, (), Bound(0, 0, 0, 0), "", 0)

    monkeypatch.setattr(ahead, "forecast", step)
    monkeypatch.setattr(Target, "room", room)
    most = largest(found, 0, step(found, 0, dataclasses.replace(found.run.plan[0], batch=batch)))
    assert most.fits == bool(fit) and len(calls) <= 7
    assert not fit or (0.96 if says else 0.9) * fit <= most.phase.batch / 8 <= fit
