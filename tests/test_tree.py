"""Nested dicts by path."""

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.errors import UserError

TREE = {"b": {"y": 2, "x": {"k": 1}}, "a": 0}


def test_leaves_come_sorted_by_path_and_go_back() -> None:
    assert list(tree.leaves(TREE)) == [("a", 0), ("b/x/k", 1), ("b/y", 2)]
    assert tree.from_leaves(tree.leaves(TREE)) == TREE
    assert tree.map_with_path(lambda path, leaf: (path, leaf + 1), TREE)["b"]["x"]["k"] == ("b/x/k", 2)


def test_split_and_merge_are_inverse_and_leave_no_empty_branch() -> None:
    chosen, rest = tree.split(TREE, lambda path: path.startswith("b/x"))
    assert (chosen, rest) == ({"b": {"x": {"k": 1}}}, {"a": 0, "b": {"y": 2}})
    assert tree.merge(chosen, rest) == TREE == tree.merge(TREE, {})
    assert tree.split(TREE, lambda path: False) == ({}, TREE)


def test_assign_covers_every_leaf_exactly_once() -> None:
    assert tree.assign(TREE, [("a", "one"), ("b/.*", "two")], "rules") == {"a": "one", "b": {"y": "two", "x": {"k": "two"}}}
    for rules, words in (
        ([("a", 1)], "rules: b/x/k is matched by 0 rules"),
        ([("a", 1), ("b/.*", 2), (".*y", 3)], "rules: b/y is matched by 2 rules"),
        ([(".*", 1), ("c", 2)], "rules: no parameter's path matches 'c'"),
    ):
        with pytest.raises(UserError) as error:
            tree.assign(TREE, rules, "rules")
        assert words in str(error.value)


def test_a_pattern_matches_the_whole_path() -> None:
    with pytest.raises(UserError, match="b/x/k is matched by 0"):
        tree.assign(TREE, [("a", 1), ("b", 2)], "rules")


def test_count_is_the_number_of_elements() -> None:
    assert tree.count({"a": np.zeros((2, 3)), "b": {"c": np.zeros(())}}) == 7
