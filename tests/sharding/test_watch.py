from jaxenc.processes.watch import LastSeen


def test_the_silent_and_those_behind_are_awaited() -> None:
    last_seen = LastSeen(0)
    last_seen.look(100, 5, {"0": "5 3", "1": "5 3", "2": "4 3", "3": "5 3", "10": "4 3"})
    assert last_seen.look(114.9, 5, {"0": "5 5", "1": "5 3", "2": "4 5", "3": "5 5", "10": "4 5"}) == ["2", "10"]
    assert last_seen.look(115, 5, {"0": "5 6", "1": "5 3", "2": "4 6", "3": "5 6", "10": "5 6"}) == ["1", "2"]
    assert last_seen.look(120, 5, {"0": "5 7", "1": "5 4", "2": "5 7", "3": "5 7", "10": "5 7"}) == []


def test_one_that_is_ahead_is_not_awaited() -> None:
    assert LastSeen(1).look(0, 4, {"0": "5 1", "1": "4 1"}) == []


def test_where_nobody_answers_it_is_process_0() -> None:
    last_seen = LastSeen(2)
    last_seen.look(100, 4, {"0": "4 1", "1": "4 1", "2": "4 1"})
    assert last_seen.look(114.9, 4, {}) == []
    assert last_seen.look(115, 4, {}) == ["0"]
