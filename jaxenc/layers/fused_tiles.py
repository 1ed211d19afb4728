"""How much of a row each kernel of `fused_kernels.py` takes at a time: a table of sizes to measure and change."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.experimental import pallas as pl

# The smallest operand of a product of tiles.
SMALLEST = 16


class Tile(NamedTuple):
    """Queries and keys of one step of a kernel, both powers of two from 16; warps and pipeline stages of its program."""

    queries: int
    keys: int
    warps: int
    stages: int


class Tiles(NamedTuple):
    """The tile of each kernel of `fused_kernels.py`."""

    forward: Tile
    of_keys: Tile
    of_queries: Tile


# (longest row, largest d, bytes of an element, tiles): a call takes the first line that it fits into. The first two are the fastest of a
# sweep on an H200 with dropout 0.1, at 256 rows of 128 and at 64 of 512, 12 heads of 64 (29 November 2026, jax 0.11.2); the others are not
# measured.
TABLE = (
    (128, 64, 2, Tiles(Tile(64, 64, 4, 3), Tile(32, 128, 4, 1), Tile(64, 32, 4, 3))),
    (1 << 30, 64, 2, Tiles(Tile(128, 64, 8, 3), Tile(64, 64, 4, 3), Tile(64, 64, 4, 3))),
    (1 << 30, 128, 2, Tiles(Tile(128, 64, 8, 2), Tile(64, 64, 8, 2), Tile(64, 64, 8, 2))),
    (1 << 30, 64, 4, Tiles(Tile(32, 32, 4, 2), Tile(32, 32, 4, 2), Tile(32, 32, 4, 2))),
    (1 << 30, 1 << 30, 4, Tiles(Tile(16, 16, 4, 1), Tile(16, 16, 4, 1), Tile(16, 16, 4, 1))),
)

# (most queries, largest d, bytes of an element, tiles) of `fused_relative_kernels.py`. The first two are the fastest of a sweep on an H200
# with dropout 0.1, for 85 and for 512 queries over 512 keys, 32 rows, 12 heads of 64 (29 November 2026, jax 0.11.2); the others are not
# measured.
RELATIVE = (
    (128, 64, 2, Tiles(Tile(64, 64, 4, 2), Tile(32, 64, 4, 2), Tile(128, 64, 4, 2))),
    (1 << 30, 64, 2, Tiles(Tile(64, 64, 4, 2), Tile(64, 64, 4, 2), Tile(128, 64, 4, 2))),
    (1 << 30, 1 << 30, 2, Tiles(Tile(64, 32, 4, 2), Tile(32, 64, 8, 2), Tile(64, 32, 4, 2))),
    (1 << 30, 64, 4, Tiles(Tile(32, 32, 4, 2), Tile(32, 32, 4, 2), Tile(32, 32, 4, 2))),
    (1 << 30, 1 << 30, 4, Tiles(Tile(16, 16, 4, 1), Tile(16, 16, 4, 1), Tile(16, 16, 4, 1))),
)


def relative_tiles(queries: int, keys: int, d: int, dtype: jnp.dtype) -> Tiles:
    """As `tiles`, for relative attention of `queries` over `keys`."""
    most = [max(SMALLEST, pl.next_power_of_2(count)) for count in (queries, keys)]
    chosen = _line(RELATIVE, queries, d, dtype)
    return Tiles(*(tile._replace(queries=min(tile.queries, most[0]), keys=min(tile.keys, most[1])) for tile in chosen))


def _line(table: tuple[tuple[int, int, int, Tiles], ...], places: int, d: int, dtype: jnp.dtype) -> Tiles:
    return next(line[3] for line in table if places <= line[0] and d <= line[1] and jnp.dtype(dtype).itemsize <= line[2])


def tiles(length: int, d: int, dtype: jnp.dtype) -> Tiles:
    """The tiles for rows of `length` and heads of `d` numbers; a row shorter than a tile cuts it."""
    most = max(SMALLEST, pl.next_power_of_2(length))
    chosen = _line(TABLE, length, d, dtype)
    return Tiles(*(tile._replace(queries=min(tile.queries, most), keys=min(tile.keys, most)) for tile in chosen))
