"""Runs a build on this machine: this process reads the text, workers make keys and pieces of it."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future

from jaxenc.data import duplicates, pieces
from jaxenc.data.duplicates import Duplicates, Index
from jaxenc.data.facts import Facts
from jaxenc.data.groups import Group
from jaxenc.data.pieces import Work
from jaxenc.data.unfinished import Unfinished
from jaxenc.data.workers import done, in_order


def run(
    groups: Iterable[Group], build: Unfinished, work: Work, rule: Duplicates, processes: Executor, ahead: int
) -> Iterator[tuple[str, dict[str, Facts]]]:
    """(name, facts by split) of each group, in order, once its pieces are in files. What was finished before is not made again.

    A split whose shards already hold the group is left out. ahead: most groups in progress at once.
    """

    def calls() -> Iterator[tuple[str, Future]]:
        for group, dropped in _without_duplicates(groups, build, rule, processes, ahead):
            found = build.found(group.name)
            yield group.name, done(found) if found is not None else processes.submit(pieces.make, work, group, dropped)

    return in_order(calls(), ahead)


def _without_duplicates(
    groups: Iterable[Group], build: Unfinished, rule: Duplicates, processes: Executor, ahead: int
) -> Iterator[tuple[Group, tuple[int, ...]]]:
    """Each group with the numbers of its documents that are duplicates."""
    if not rule.kind:
        yield from ((group, ()) for group in groups)
        return

    def calls() -> Iterator[tuple[Group, Future]]:
        for group in groups:
            found = duplicates.load_keys(build.pieces, group.name)
            yield group, done(found) if found is not None else processes.submit(duplicates.make_keys, build.pieces, group, rule)

    index = Index(rule)
    for group, keys in in_order(calls(), ahead):
        yield group, index.dropped(keys)
