"""The attention mask: which keys a query sees."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax import Array

# The score of a masked key: finite, so that a softmax over masked keys alone is not NaN.
HIDDEN = -1e30


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Visible:
    """The attention mask: a query sees the keys that all the fields which are set allow, and every key where none is set.

    lengths, keys: two ways to mark padding, at most one of them set. segments: of packed texts. bias: added to the scores; it masks a key
    where it is HIDDEN or less. causal: no query sees a key after its own place. places: the key position of each query, where the keys
    come from a cache; without it query i is at key i. The constructors below give the shapes. Raises ValueError for lengths together with
    keys, and for segments, which do not describe the keys of a cache, together with places.
    """

    lengths: Array | None = None
    keys: Array | None = None
    segments: Array | None = None
    bias: Array | None = None
    places: Array | None = None
    causal: bool = dataclasses.field(default=False, metadata={"static": True})

    def __post_init__(self) -> None:
        if self.lengths is not None and self.keys is not None:
            raise ValueError("lengths and keys both mark padding: set one of them")
        if self.segments is not None and self.places is not None:
            raise ValueError("segments are of rows without a cache: set segments or places")

    @staticmethod
    def by_lengths(lengths: Array) -> "Visible":
        """Every query of a row, also one that is padding, sees its first lengths[row] keys (google-research/bert masks keys only); i32
        [batch]."""
        return Visible(lengths=lengths)

    @staticmethod
    def by_keys(keys: Array) -> "Visible":
        """Every query sees the keys that are not 0, for padding at any place; bool or i32 [batch, length]."""
        return Visible(keys=keys)

    @staticmethod
    def by_segments(segments: Array) -> "Visible":
        """A query sees the keys of its own segment only, for rows of packed texts; padding is segment 0; i32 [batch, length]."""
        return Visible(segments=segments)

    @staticmethod
    def by_bias(bias: Array) -> "Visible":
        """`bias` [batch, heads, length, length] is added to the scaled scores; HIDDEN (-1e30) or less, -inf too, hides a key."""
        return Visible(bias=bias)

    @staticmethod
    def by_places(places: Array) -> "Visible":
        """Queries at `places` of a cache; i32 [batch, queries]. With `causally` each sees the places up to its own."""
        return Visible(places=places)

    def causally(self) -> "Visible":
        """This mask without the keys after each query's own place."""
        return dataclasses.replace(self, causal=True)

    @property
    def can_hide_all(self) -> bool:
        """Whether a query in a row with tokens may see no key at all. With only one of lengths, keys or segments it cannot."""
        rules = sum(rule is not None for rule in (self.lengths, self.keys, self.segments))
        return self.causal or self.bias is not None or rules > 1

    def pairs(self, length: int) -> Array:
        """bool [batch or 1, queries or 1, length], whether each query sees each key; an axis is 1 where its entries would all be equal.

        length: of the keys, and of the queries without `places`.

        Raises ValueError for a bias, which is not boolean.
        """
        if self.bias is not None:
            raise ValueError("a bias is not a boolean mask")
        return functools.reduce(jnp.logical_and, self._rules(length))

    def sees(self, length: int) -> Array:
        """As `pairs`, with an axis of heads and with the keys that the bias masks: bool [batch or 1, heads or 1, queries or 1, length]."""
        hidden = [] if self.bias is None else [self.bias > HIDDEN]
        return functools.reduce(jnp.logical_and, [*(rule[:, None] for rule in self._rules(length)), *hidden])

    def _rules(self, length: int) -> list[Array]:
        """The mask of each field that is set but the bias, bool [batch or 1, queries or 1, length]; at least one mask."""
        rules = []
        if self.lengths is not None:
            rules.append((jnp.arange(length) < self.lengths[:, None])[:, None])
        if self.keys is not None:
            rules.append((self.keys != 0)[:, None])
        if self.segments is not None:
            rules.append(self.segments[:, :, None] == self.segments[:, None, :])
        if self.causal and self.places is None:
            rules.append(jnp.tri(length, dtype=bool)[None])
        if self.causal and self.places is not None:
            rules.append(jnp.arange(length) <= self.places[:, :, None])
        return rules or [jnp.ones((1, 1, length), bool)]
