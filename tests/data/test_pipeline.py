import dataclasses
import threading

import numpy as np
import pytest

from jaxenc.data.pipeline import Order, Pass, prefetch
from jaxenc.data.random import feistel
from jaxenc.data.sources import DataConfig, open_source


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Row i of epoch e is [i]; counts nothing and holds no data."""

    size: int
    fingerprint = "numbers"
    fields = ("tokens", "segments", "index", "epoch")
    length = 1

    def __len__(self):
        return self.size

    def rows(self, epoch, indices):
        tokens = np.asarray(indices, np.int32)[:, None]
        return {
            "tokens": tokens,
            "segments": np.ones_like(tokens),
            "index": np.asarray(indices, np.uint32),
            "epoch": np.full(len(indices), epoch, np.uint32),
        }


@pytest.mark.parametrize("size, batch", [(10, 4), (3, 7), (1, 2), (12, 4)])
def test_batches_are_the_epochs_one_after_another(size, batch):
    order = Order(Numbers(size), batch, seed=5)
    steps = -(-4 * size // batch)
    batches = [order.batch_at(step) for step in range(steps)]
    rows = [(int(e), int(i)) for b in batches for e, i in zip(b["epoch"], b["index"], strict=True)]
    expected = [(e, int(i)) for e in range(6) for i in feistel(size, 5, e)(np.arange(size))]
    assert rows == expected[: steps * batch]
    for epoch in range(4):
        assert sorted(i for e, i in rows if e == epoch) == list(range(size))
    assert all(np.array_equal(b["tokens"][:, 0], b["index"]) for b in batches)


def test_slots_of_any_split_are_those_of_the_whole_batch():
    order = Order(Numbers(11), 8, seed=1)
    for step in (0, 1, 5):  # steps 1 and 5 hold rows of two epochs
        whole = order.batch_at(step)
        for slots in (slice(0, 4), slice(4, 8), slice(1, None, 2), slice(7, 8)):
            part = order.batch_at(step, slots)
            assert all(np.array_equal(part[name], whole[name][slots]) for name in whole)
    with pytest.raises(ValueError, match="no slot"):
        order.batch_at(0, slice(8, 9))


def test_epochs_and_seeds_give_other_orders():
    first, again = (Order(Numbers(100), 100, seed).batch_at for seed in (1, 1))
    assert first(0)["index"].tolist() == again(0)["index"].tolist() != first(1)["index"].tolist()
    assert Order(Numbers(100), 100, 2).batch_at(0)["index"].tolist() != first(0)["index"].tolist()


@pytest.mark.parametrize("batch", [1, 7, 10, 64])
def test_an_evaluation_shows_every_row_once_and_padding_has_no_segment(batch):
    once = Pass(Numbers(10), batch)
    batches = [once.batch_at(step) for step in range(len(once))]
    assert {len(b["tokens"]) for b in batches} == {batch}
    real = np.concatenate([b["segments"][:, 0] for b in batches]) > 0
    assert np.concatenate([b["index"] for b in batches])[real].tolist() == list(range(10))
    first, second = slice(0, batch // 2), slice(batch // 2, batch)
    for step, whole in enumerate(batches):
        halves = [once.batch_at(step, slots) for slots in (first, second)]
        assert all(np.array_equal(np.concatenate([half[name] for half in halves]), whole[name]) for name in whole)


def test_an_evaluation_of_some_rows_takes_the_first():
    for rows in (4, 10, 99):
        once = Pass(Numbers(10), 3, rows)
        real = [int(b["segments"].any(1).sum()) for b in (once.batch_at(step) for step in range(len(once)))]
        assert sum(real) == min(rows, 10) and len(real) == -(-min(rows, 10) // 3)


@pytest.mark.parametrize("rows", ["text", "pairs"])
def test_reading_data_at_any_step_needs_no_history(data, rows):
    config = DataConfig(str(data), 16, rows)
    ahead = [Order(open_source(config, "train", 3, False), 6, 3).batch_at(step) for step in (40, 2)]
    order = Order(open_source(config, "train", 3, False), 6, 3)
    walked = [order.batch_at(step) for step in range(41)]
    for one, other in zip(ahead, (walked[40], walked[2]), strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_prefetch_keeps_the_order_and_stays_two_ahead():
    made = []
    results = prefetch(lambda step: made.append(step) or step * step, range(3, 50))
    assert next(results) == 9
    assert len(made) <= 5  # one given, two queued, one waiting to be queued, one of slack
    assert list(results) == [step * step for step in range(4, 50)]


def test_prefetch_raises_the_error_in_its_place():
    def function(step):
        if step == 2:
            raise ValueError("step two")
        return step

    results = prefetch(function, range(5))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="step two"):
        next(results)


def test_closing_ends_the_thread():
    before = threading.active_count()
    results = prefetch(lambda step: step, range(10**9))
    assert next(results) == 0 and threading.active_count() == before + 1
    results.close()
    assert threading.active_count() == before
