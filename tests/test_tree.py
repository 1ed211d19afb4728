"""Nested dicts by path."""

from jaxenc import tree

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
