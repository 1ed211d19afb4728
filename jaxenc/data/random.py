"""Random numbers of the host as pure functions of integers: Philox 4x32-10, evaluated for whole arrays of counters.

Nothing here has a state. Philox is the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011), also behind numpy.random.Philox, in its variant of four 32-bit words, which NumPy's 64-bit arithmetic can evaluate.
"""

import functools
from collections.abc import Callable

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)

BLOCK = 1 << 13  # places that `permuted` permutes at a time
STREAMS = {"order": 1, "pairs": 2, "trim": 3, "streams": 4}  # the last counter word; a number is never used again


def philox(counter: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], seed: int) -> tuple[np.ndarray, ...]:
    """Four random words for each counter. counter: four uint64 arrays (values below 2^32) that broadcast; seed: 64 bits, the key."""
    c0, c1, c2, c3 = np.broadcast_arrays(*counter)
    for round_ in range(10):
        k0, k1 = (np.uint64(((seed >> shift) + round_ * weyl) & 0xFFFFFFFF) for shift, weyl in zip((0, 32), _WEYL, strict=True))
        first, second = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (second >> _HALF) ^ c1 ^ k0, second & _LOW, (first >> _HALF) ^ c3 ^ k1, first & _LOW
    return c0, c1, c2, c3


def draws(seed: int, epoch: int, indices: np.ndarray, count: int, stream: str) -> np.ndarray:
    """uint64 [n, count], uniform: draw j of row i depends on (seed, epoch, indices[i], j, stream) and on nothing else.

    indices: integers [n] below 2^32; epoch below 2^32; stream: a name of STREAMS.
    """
    blocks = np.arange((count + 1) // 2, dtype=np.uint64)
    counter = (np.asarray(indices, np.uint64)[:, None], np.uint64(epoch), blocks[None], np.uint64(STREAMS[stream]))
    a, b, c, d = philox(counter, seed)
    return np.stack([a << _HALF | b, c << _HALF | d], axis=-1).reshape(len(indices), 2 * len(blocks))[:, :count]


def unit(words: np.ndarray) -> np.ndarray:
    """uint64 draws as float64 in [0, 1): their upper 53 bits."""
    return (words >> np.uint64(11)) * 2.0**-53


def below(words: np.ndarray, bound: np.ndarray | int) -> np.ndarray:
    """uint64 draws as integers in [0, bound), int64, for bounds up to 2^32: uniform up to 2^-32 of relative error."""
    bound = np.asarray(bound, np.uint64)
    high, low = words >> _HALF, words & _LOW
    return ((high * bound + (low * bound >> _HALF)) >> _HALF).astype(np.int64)


def feistel(n: int, seed: int, epoch: int, part: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    """A pseudo-random bijection of 0..n-1 as a function of arrays of int64; another one for every (seed, epoch, part). n >= 1.

    part: 0 for the order of a run, p + 1 for the rows of part p of a mixture.

    A Feistel network of eight rounds on the smallest number of bits that holds n, walked along its cycle until the value is below n:
    for n > 32 fewer than two evaluations on average. At least six bits, for on three eight rounds are visibly not uniform. An odd
    number of bits is cut in unequal halves that change places with every round. No table: memory is that of the indices.
    """
    if n < 1:
        raise ValueError(f"a permutation of {n} rows")
    bits = max((n - 1).bit_length(), 6)
    widths = tuple(np.uint64(width) for width in (bits - bits // 2, bits // 2))
    masks = tuple((np.uint64(1) << width) - np.uint64(1) for width in widths)
    keys = draws(seed, epoch, np.arange(8) + 8 * part, 1, "order")[:, 0]

    def encrypt(x: np.ndarray) -> np.ndarray:
        left, right = x >> widths[1], x & masks[1]
        for round_, key in enumerate(keys):
            left, right = right, left ^ (_mix(right ^ key) & masks[round_ % 2])
        return left << widths[1] | right

    def permute(indices: np.ndarray) -> np.ndarray:
        out = encrypt(np.asarray(indices, np.uint64))
        outside = np.flatnonzero(out >= n)
        while outside.size:
            again = encrypt(out[outside])
            out[outside] = again
            outside = outside[again >= n]
        return out.astype(np.int64)

    return permute


def permuted(n: int, seed: int, epoch: int, places: np.ndarray, part: int = 0) -> np.ndarray:
    """`feistel(n, seed, epoch, part)(places)`, fast for int64 places that are read in order, a batch after another.

    Whole blocks of BLOCK places are permuted and cached: the overhead of NumPy's calls equals the work for a thousand values.
    """
    block, offset = np.divmod(places, BLOCK)
    out = np.empty(len(places), np.int64)
    for number in np.unique(block):
        here = block == number
        out[here] = _block(n, seed, epoch, part, int(number))[offset[here]]
    return out


@functools.lru_cache(maxsize=128)  # 64 KiB each, so at most 8 MiB: two blocks of up to 64 parts
def _block(n: int, seed: int, epoch: int, part: int, number: int) -> np.ndarray:
    return feistel(n, seed, epoch, part)(np.arange(number * BLOCK, min((number + 1) * BLOCK, n)))


def _mix(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): each output bit depends on every input bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
