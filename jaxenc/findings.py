"""What a check of `jaxenc doctor` found: one line."""

import dataclasses
from collections.abc import Iterable, Sequence

from jaxenc.errors import one_line

OK, WARNING, PROBLEM = "ok", "warning", "problem"
SHOWN = 8  # processes, files or values named in a line


@dataclasses.dataclass(frozen=True)
class Finding:
    """level: OK, WARNING (a run works, but slower or less safely) or PROBLEM (it fails, or is wrong). check: its name, with its place if
    there is one. fix: what to do, '' for OK. stuck: whether a thread of this process hangs, so that it cannot end as usual."""

    level: str
    check: str
    what: str
    fix: str = ""
    stuck: bool = False

    @property
    def line(self) -> str:
        """The finding as it is printed."""
        return one_line(f"{self.level:<8} {self.check}: {self.what}{f'; {self.fix}' if self.fix else ''}")


def processes(indices: Iterable[int]) -> str:
    """`process 3`, or `processes 0, 1, 5 and 12 more`."""
    ranks = sorted(indices)
    return f"process{'es' if len(ranks) > 1 else ''} {listed(list(map(str, ranks)))}"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def by_value(values: Sequence[str]) -> str:
    """The values by process, such as `3.11 in processes 0, 1, 3.12 in process 2`. values: one a process, in order."""
    where = {value: [rank for rank, other in enumerate(values) if other == value] for value in dict.fromkeys(values)}
    return ", ".join(f"{value or 'none'} in {processes(ranks)}" for value, ranks in where.items())
