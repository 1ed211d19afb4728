"""Parameters that take their numbers from another path of a checkpoint: pairs of prefixes, `NEW=OLD`."""

from collections.abc import Iterable, Sequence

from jaxenc.errors import UserError

# (prefix of paths in this run, prefix of paths in the checkpoint); a prefix is whole names, as `generator/embeddings`.
Moved = tuple[tuple[str, str], ...]


def parse(items: Sequence[str]) -> Moved:
    """The pairs of `NEW=OLD` items. Raises UserError for one that is not such a pair and for a NEW that comes twice."""
    pairs = []
    for item in items:
        new, equals, old = (part.strip("/") for part in item.partition("="))
        if not (new and equals and old):
            raise UserError("not NEW=OLD", f"--init-map {item}", "write both, as in discriminator=generator")
        if new in dict(pairs):
            raise UserError(f"{new} is given twice", "--init-map", "give each part of the run once")
        pairs.append((new, old))
    return tuple(pairs)


def origin(path: str, moved: Moved) -> str:
    """Where the parameter `path` of this run lies in the checkpoint: the longest NEW above it decides, and without one, at `path`."""
    above = [pair for pair in moved if under(path, pair[0])]
    new, old = max(above, key=lambda pair: len(pair[0]), default=("", ""))
    return old + path.removeprefix(new)


def under(path: str, prefix: str) -> bool:
    """Whether `path` is `prefix` or below it."""
    return f"{path}/".startswith(f"{prefix}/")


def check(moved: Moved, here: Iterable[str], there: Iterable[str], where: str) -> None:
    """Raises UserError for a NEW that no path of this run is under, and for an OLD that no path of `where` is under."""
    for side, (paths, owner) in enumerate(((list(here), "this run"), (list(there), where))):
        for pair in moved:
            if not any(under(path, pair[side]) for path in paths):
                tops = ", ".join(sorted({path.split("/")[0] for path in paths}))
                raise UserError(f"{owner} has no parameter under {pair[side]}", f"--init-map {'='.join(pair)}", f"name one of {tops}")
