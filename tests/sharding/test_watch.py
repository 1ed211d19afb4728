from jaxenc.processes.watch import Sight


def test_the_silent_and_those_behind_are_awaited() -> None:
    sight = Sight(0)
    sight.look(100, 5, {"0": "5 3", "1": "5 3", "2": "4 3", "3": "5 3", "10": "4 3"})
    assert sight.look(114.9, 5, {"0": "5 5", "1": "5 3", "2": "4 5", "3": "5 5", "10": "4 5"}) == ["2", "10"]
    assert sight.look(115, 5, {"0": "5 6", "1": "5 3", "2": "4 6", "3": "5 6", "10": "5 6"}) == ["1", "2"]
    assert sight.look(120, 5, {"0": "5 7", "1": "5 4", "2": "5 7", "3": "5 7", "10": "5 7"}) == []


def test_one_that_is_ahead_is_not_awaited() -> None:
    assert Sight(1).look(0, 4, {"0": "5 1", "1": "4 1"}) == []


def test_where_nobody_answers_it_is_process_0() -> None:
    sight = Sight(2)
    sight.look(100, 4, {"0": "4 1", "1": "4 1", "2": "4 1"})
    assert sight.look(114.9, 4, {}) == []
    assert sight.look(115, 4, {}) == ["0"]
