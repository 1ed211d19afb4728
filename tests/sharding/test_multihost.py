import numpy as np
import pytest

from jaxenc.errors import UserError
from jaxenc.sharding.multihost import is_primary, process_slots


@pytest.mark.parametrize("batch, count", [(1, 1), (12, 1), (12, 3), (12, 12), (256, 8)])
def test_the_slots_of_all_processes_are_the_batch_in_order(batch: int, count: int) -> None:
    rows = np.arange(batch)
    parts = [rows[process_slots(batch, count, index)] for index in range(count)]
    assert len({len(part) for part in parts}) == 1
    np.testing.assert_array_equal(np.concatenate(parts), rows)


def test_a_batch_that_the_processes_cannot_share_is_one_line() -> None:
    with pytest.raises(UserError, match="train.batch is 10, which 4 processes"):
        process_slots(10, 4, 0)


def test_a_process_outside_the_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="process 4 of 4"):
        process_slots(8, 4, 4)


def test_a_single_process_is_primary() -> None:
    assert is_primary()
