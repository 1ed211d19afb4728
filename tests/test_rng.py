"""Keys: pure functions of seed, step, row, stream and site, all different."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import rng


def bits(keys: jax.Array) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.asarray(jax.random.key_data(keys)).reshape(-1, 2).tolist()]


def test_every_stream_and_site_has_a_number_of_its_own() -> None:
    for table in (rng.STREAMS, rng.SITES):
        assert len(set(table.values())) == len(table) and all(0 < number < 2**16 for number in table.values())


def test_keys_differ_by_seed_step_row_stream_and_site() -> None:
    found: list[tuple[int, ...]] = []
    for seed in (0, 1):
        for step in (0, 1, 2):
            keys = rng.training(seed, jnp.int32(step), 8)
            for stream in ("corrupt", "sample"):
                for site in ("mask", "final", 33):
                    found += bits(keys.per_row(stream, site)) + bits(keys.shared(stream, site))
    found += bits(rng.init_key(0)) + bits(rng.part(rng.init_key(0), "encoder")) + bits(rng.part(rng.init_key(0), 33))
    assert len(set(found)) == len(found)


def test_a_row_has_its_key_whatever_batch_it_stands_in() -> None:
    """Slot 5 of 8 is slot 5 of 64; part of a batch keeps the keys of its slots."""
    small, large = rng.training(3, jnp.int32(9), 8), rng.training(3, jnp.int32(9), 64)
    assert bits(small.per_row("corrupt", "mask")) == bits(large.per_row("corrupt", "mask"))[:8]
    part = rng.Keys(large.base, large.rows[3::4], large.step)
    assert bits(part.per_row("corrupt", "mask")) == bits(large.per_row("corrupt", "mask"))[3::4]
    for whole, some in zip(large.words("final"), part.words("final"), strict=True):
        np.testing.assert_array_equal(whole[3::4], some)


def test_evaluation_keys_follow_the_index_after_every_schedule() -> None:
    keys = rng.evaluation(0, jnp.array([7, 3, 7], jnp.uint32))
    first = bits(keys.per_row("corrupt", "mask"))
    assert first[0] == first[2] != first[1] and int(keys.step) == 2**31 - 1 and keys.step.dtype == jnp.int32
    assert first[1] not in bits(rng.training(0, jnp.int32(0), 8).per_row("corrupt", "mask"))


def test_static_keys_follow_epoch_and_index_and_not_the_slot_or_the_step() -> None:
    """Each is the key of (seed, epoch mod dupe) and the row's number, folded here one by one; rows of two epochs share a batch."""
    epoch, index = np.array([0, 1, 2, 3, 7, 0], np.uint32), np.array([5, 5, 5, 5, 9, 9], np.uint32)

    def found(rows: slice, step: int) -> list[tuple[int, ...]]:
        return bits(rng.static(4, jnp.asarray(epoch[rows]), jnp.asarray(index[rows]), 2, jnp.int32(step)).per_row("corrupt", "mask"))

    first, second = found(slice(None), 0), found(slice(None), 5)
    assert first == second and first[0] == first[2] and first[1] == first[3] and len(set(first)) == 4
    assert first[4:] == found(slice(4, None), 0)
    for e, i, key in zip(epoch.tolist(), index.tolist(), first, strict=True):
        base = jax.random.fold_in(jax.random.key(4), e % 2)
        whole = rng.Keys(base, jnp.array([i], jnp.uint32), jnp.int32(0))
        assert bits(whole.per_row("corrupt", "mask")) == [key]


def test_dropout_words_differ_by_row_site_layer_and_step() -> None:
    """Every pair of words in 64 rows, 3 sites, 3 layers and 2 steps is another one; a traced layer gives the same."""
    found = []
    for step in (0, 1):
        keys = rng.training(0, jnp.int32(step), 64)
        for site in ("embeddings", "attention_weights", "attention_output"):
            for layer in range(3):
                found += list(zip(*(word.tolist() for word in keys.words(site, layer)), strict=True))
    assert len(set(found)) == len(found)
    traced = jax.jit(lambda layer: keys.words("attention_output", layer))(jnp.int32(2))
    for word, want in zip(traced, keys.words("attention_output", 2), strict=True):
        np.testing.assert_array_equal(word, want)


def test_mix_is_a_bijection_that_spreads_every_bit() -> None:
    """No collision in 2^20 neighbours, and flipping one input bit flips 16 ± 0.5 of the 32 output bits on average (sigma 0.03)."""
    x = jnp.arange(1 << 20, dtype=jnp.uint32)
    mixed = np.asarray(rng.mix(x))
    assert len(np.unique(mixed)) == 1 << 20
    for bit in (0, 7, 19, 31):
        flipped = np.bitwise_count(mixed[: 1 << 15] ^ np.asarray(rng.mix(x[: 1 << 15] ^ jnp.uint32(1 << bit))))
        assert abs(flipped.mean() - 16) < 0.5
