from jaxenc.sharding.watch import behind


def test_nobody_is_awaited_while_the_own_step_moves() -> None:
    assert behind(0, (4, {"0": "4 3", "1": "2 3"}), (5, {"0": "5 6", "1": "2 3"})) == []


def test_the_silent_and_those_behind_are_awaited() -> None:
    before = {"0": "5 3", "1": "5 3", "2": "4 3", "3": "5 3", "10": "4 3"}
    now = {"0": "5 6", "1": "5 6", "2": "4 6", "3": "5 3", "10": "4 6"}
    assert behind(0, (5, before), (5, now)) == ["2", "3", "10"]


def test_one_that_comes_between_the_looks_is_not_silent() -> None:
    assert behind(1, (0, {}), (0, {"0": "0 1", "1": "0 3"})) == []
