"""Dataclasses to dicts and back."""

import dataclasses
import json
from typing import Any, ClassVar

import pytest

from jaxenc import config
from jaxenc.errors import UserError
from jaxenc.objectives.pair import PairConfig
from jaxenc.training.run import Run, from_dict


@dataclasses.dataclass(frozen=True)
class Small:
    kind: ClassVar[str] = "small"
    size: int = 1
    rate: float = 0.5


@dataclasses.dataclass(frozen=True)
class Large:
    kind: ClassVar[str] = "large"
    sizes: tuple[int, ...] = (1, 2)
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plain:
    sizes: tuple[int, ...] = (1, 2)
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Whole:
    needed: int
    part: Small | Large = dataclasses.field(default=Small(), metadata=config.kinds("part"))
    plain: Plain = Plain()
    on: bool = False
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Other:
    kind: ClassVar[str] = "other"


# A field takes the classes of its own type.
TABLES = {"part": {"small": Small, "large": Large, "other": Other}}


def test_a_round_trip_is_exact_also_through_json() -> None:
    for value in (Whole(3), Whole(3, Large((4,), ("a", "b")), Plain(()), True, "x")):
        data = config.to_dict(value)
        assert config.from_dict(Whole, data, tables=TABLES) == value
        assert config.from_dict(Whole, json.loads(json.dumps(data)), tables=TABLES) == value
    run = Run(objective=PairConfig(rate=0.2))
    assert from_dict(json.loads(json.dumps(config.to_dict(run)))) == run
    assert config.to_dict(run)["objective"]["kind"] == "mlm_nsp"


def test_missing_fields_take_their_defaults_and_numbers_their_types() -> None:
    value = config.from_dict(Whole, {"needed": 2.0, "part": {"kind": "small", "rate": 1}}, tables=TABLES)
    assert value == Whole(2, Small(1, 1.0)) and type(value.needed) is int and type(value.part.rate) is float


@pytest.mark.parametrize(
    "data, words",
    [
        ({"needed": 1, "nmae": "x"}, "config.nmae is not a field; did you mean name"),
        ({"needed": 1, "plain": {"size": (1,)}}, "config.plain.size is not a field; did you mean sizes"),
        ({"needed": 1, "qqq": 1}, "config.qqq is not a field; use one of the fields name, needed, on, part, plain"),
        ({}, "config.needed is missing and has no default"),
        ({"needed": True}, "config.needed is True; it takes a value of type int"),
        ({"needed": 1.5}, "config.needed is 1.5; it takes a value of type int"),
        ({"needed": "1"}, "config.needed is '1'; it takes a value of type int"),
        ({"needed": 1, "on": 1}, "config.on is 1; it takes a value of type bool"),
        ({"needed": 1, "name": 5}, "config.name is 5; it takes a value of type str"),
        ({"needed": 1, "part": {"kind": "smal"}}, "config.part.kind is 'smal'; did you mean small"),
        ({"needed": 1, "part": {}}, "config.part.kind is ''"),
        ({"needed": 1, "part": {"kind": "small", "rate": True}}, "config.part.rate is True; it takes a value of type float"),
        ({"needed": 1, "plain": {"sizes": 5}}, "config.plain.sizes is 5; it takes a tuple"),
        ({"needed": 1, "plain": {"sizes": (1, "b")}}, "config.plain.sizes[1] is 'b'"),
        ({"needed": 1, "plain": 7}, "config.plain is 7; it holds the fields sizes, names"),
        ({"needed": float("inf")}, "config.needed is inf; it takes a value of type int"),
        ({"needed": float("nan")}, "config.needed is nan; it takes a value of type int"),
        ({"needed": 1, "part": 3}, "config.part is 3"),
        ({"needed": 1, "part": {"kind": ["small"]}}, "config.part.kind is ['small']"),
        ({"needed": 1, "part": {"kind": "other"}}, "config.part.kind is 'other'; use one of the kinds large, small"),
        ({"needed": 2**31}, "config.needed is 2147483648; it is at most 2^31 - 1"),
        ({"needed": 1, "plain": {"sizes": (1, 1e10)}}, "config.plain.sizes[1] is 10000000000; it is at most 2^31 - 1"),
    ],
)
def test_what_does_not_fit_is_one_line_that_names_the_field(data: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        config.from_dict(Whole, data, tables=TABLES)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_differences_name_paths_with_both_values() -> None:
    left, right = {"a": {"b": 1, "c": (1, 2)}, "d": 0}, {"a": {"b": 2, "c": [1, 2]}, "e": "x"}
    assert config.differences(left, left) == []
    assert config.differences(left, right) == [("a.b", 1, 2), ("d", 0, ""), ("e", "", "x")]


def test_a_fingerprint_follows_the_values_and_not_their_order() -> None:
    one = config.fingerprint({"a": 1, "b": [1, 2]})
    assert one == config.fingerprint({"b": (1, 2), "a": 1}) and len(one) == 64
    assert one != config.fingerprint({"a": 1, "b": [2, 1]})
