"""Mixes the rows of several data folders in given shares."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from jaxenc.config import fingerprint
from jaxenc.data.batch import Batch
from jaxenc.data.manifest import Manifest
from jaxenc.data.random import permuted
from jaxenc.data.sources.source import Source
from jaxenc.errors import UserError


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Each epoch has quotas[p] rows of part p, which is read in epochs of its own, one after another.

    Draw d of part p is the row at place d mod n of the part's own epoch d div n, shuffled within it (n is the number of its rows), and
    epoch e of the mixture has the draws from e · quotas[p] on. So each part is read evenly, whatever its quota and its size, and no table
    of rows is needed. `index` and `epoch` of a row are those of its part, and `index` also counts the rows of the parts before it: they
    identify the text, so static masks (train.dupe_factor) repeat with it.
    """

    parts: tuple[Source, ...]
    quotas: tuple[int, ...]
    seed: int

    @property
    def length(self) -> int:
        """Tokens in a row of any part."""
        return self.parts[0].length

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that all parts have."""
        return tuple(name for name in self.parts[0].fields if all(name in part.fields for part in self.parts))

    @property
    def fingerprint(self) -> str:
        return fingerprint([[part.fingerprint for part in self.parts], self.quotas, self.seed])

    def __len__(self) -> int:
        return sum(self.quotas)

    @functools.cached_property
    def _before(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows of an epoch, rows of the data) of the parts before each, int64 [parts] both."""
        return tuple(np.cumsum([0, *sizes])[:-1] for sizes in (self.quotas, map(len, self.parts)))

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """tokens [n, length] and the other fields; see Source."""
        indices, (first, counted) = np.asarray(indices, np.int64), self._before
        owner = np.searchsorted(np.cumsum(self.quotas), indices, "right")
        out: Batch = {}
        for p in np.unique(owner).tolist():
            here, size = np.flatnonzero(owner == p), len(self.parts[p])
            epochs, places = np.divmod(epoch * self.quotas[p] + indices[here] - first[p], size)
            for own in np.unique(epochs).tolist():
                rows = permuted(size, self.seed, own, places[epochs == own], p + 1)
                batch = self.parts[p].rows(own, rows)
                batch["index"] = (rows + counted[p]).astype(np.uint32)
                for name in self.fields:
                    array = batch[name]
                    out.setdefault(name, np.empty((len(indices), *array.shape[1:]), array.dtype))[here[epochs == own]] = array
        return out


@dataclasses.dataclass(frozen=True)
class Once:
    """The rows of all parts once each, mixed in one fixed order, so that the first rows of an evaluation are from all parts."""

    mixture: Mixture

    @property
    def length(self) -> int:
        """As the mixture's."""
        return self.mixture.length

    @property
    def fields(self) -> tuple[str, ...]:
        """As the mixture's."""
        return self.mixture.fields

    @property
    def fingerprint(self) -> str:
        return self.mixture.fingerprint

    def __len__(self) -> int:
        return len(self.mixture)

    def rows(self, epoch: int, indices: np.ndarray) -> Batch:
        """See Source. Every epoch is the same."""
        return self.mixture.rows(0, permuted(len(self), 0, 0, np.asarray(indices, np.int64)))


def check_tokenizers(folders: Sequence[str], manifests: Sequence[Manifest]) -> None:
    """Raises UserError for two folders that were not made with the same tokenizer: their ids would mean different pieces."""
    for folder, manifest in zip(folders, manifests, strict=True):
        if manifest.tokenizer.fingerprint != manifests[0].tokenizer.fingerprint:
            both = f"{folders[0]} and {folder} were made with different tokenizers"
            raise UserError(both, "data.mixture", "build all its folders with one --tokenizer")


def shares(tokens: Sequence[int], weights: Sequence[float], exponent: float) -> np.ndarray:
    """The share of each part in the rows of an epoch, float64 [parts], 1 in all: by its weight, or by its number of tokens raised to the
    exponent where there are no weights."""
    sizes = np.array(weights or tokens, np.float64)
    sizes /= sizes.max()  # so that neither a power nor the sum overflows
    sizes = sizes if weights else sizes**exponent
    return sizes / sizes.sum()


def quotas(wanted: np.ndarray, rows: int) -> tuple[int, ...]:
    """`rows` divided in these shares (float64 [parts]) by the method of the largest remainder: within one row of rows · share, in all
    exactly `rows`. Of equal remainders the first part's counts as larger."""
    exact = wanted * rows
    out = np.floor(exact).astype(np.int64)
    out[np.argsort(out - exact, kind="stable")[: rows - out.sum()]] += 1
    return tuple(out.tolist())


def mixed(parts: Sequence[Source], names: Sequence[str], wanted: np.ndarray, seed: int) -> Mixture:
    """The mixture of a run, with as many rows in an epoch as the parts have in all. names: of the parts. Raises UserError, which names the
    part, if one has no row in an epoch."""
    out = Mixture(tuple(parts), quotas(wanted, sum(map(len, parts))), seed)
    for name, share, quota in zip(names, wanted, out.quotas, strict=True):
        if not quota:
            raise UserError(
                f"{name} has a share of {share:.2g}, so no row in {len(out):,}", "data.mixture", "raise its weight or leave it out"
            )
    return out


def once(parts: Sequence[Source]) -> Once:
    """The rows of an evaluation."""
    return Once(Mixture(tuple(parts), tuple(map(len, parts)), 0))
