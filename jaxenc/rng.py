"""Every random number of a run, as a pure function of (seed, step or epoch, row, stream, site).

A key is derived where it is used and never stored or split across steps, so a resume needs only the seed and the step, and a row
draws the same numbers on any device, mesh or microbatch. Streams and sites are integers of the tables below: a new one gets a new number,
and no number is ever reused. The site of a head is a field of the head (`heads/contract.py`).
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

STREAMS = {"init": 1, "corrupt": 2, "sample": 3, "dropout": 4}

# Sites of layers, of networks, and of heads that belong to a single objective. Other heads have theirs in `heads/`, from the same numbers:
# a new site takes one above all that are in use here and there, and below FIRST_OWN_SITE.
SITES = {
    "params": 1,
    "mask": 2,
    "embeddings": 16,
    "attention_weights": 17,
    "attention_output": 18,
    "feed_forward_output": 19,
    "feed_forward_inner": 20,
    "distances": 21,
    "final": 22,
    "query": 23,
    "lstm_input": 24,
    "tables": 25,
    "encoder": 32,
    "generator": 39,
    "discriminator": 40,
    "replaced_mlm": 42,
    "copy": 43,
    "softmax": 46,
    "backward": 47,
    "forward": 48,
    "features": 62,
    "probe": 63,
}
# The range of sites for heads that are defined outside of jaxenc; the last is the largest number that fits in `_code`.
FIRST_OWN_SITE, LAST_SITE = 1000, 2**16 - 1


def _number(site: str | int) -> int:
    """The integer of a site: a name of SITES, or a head's own number."""
    return SITES[site] if isinstance(site, str) else site


def _code(stream: str, site: str | int) -> int:
    return (STREAMS[stream] << 16) | _number(site)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Keys:
    """The keys of one batch.

    base: one typed key, or typed keys [batch], one a row, which only `per_row` supports; rows: u32 [batch], the number that each row's key
    is derived from; step: i32 scalar, for schedules.
    """

    base: Array
    rows: Array
    step: Array

    def per_row(self, stream: str, site: str | int) -> Array:
        """One key a row, typed keys [batch]: for corrupt and sample. site: a name of SITES or a head's integer, here and below."""
        code = _code(stream, site)
        one = lambda base, row: jax.random.fold_in(jax.random.fold_in(base, code), row)
        return jax.vmap(one, in_axes=(0 if self.base.ndim else None, 0))(self.base, self.rows)

    def shared(self, stream: str, site: str | int) -> Array:
        """One key for the whole batch, a scalar typed key: for what all rows share, such as sampled-softmax negatives."""
        return jax.random.fold_in(self.base, _code(stream, site))

    def over(self, rows: int) -> "Keys":
        """Keys for an array of `rows` rows that the whole batch shares, such as an embedding table: the draws of its row i depend only on
        the seed, the step and i."""
        return dataclasses.replace(self, rows=jnp.arange(rows, dtype=jnp.uint32))

    def apart(self, site: str) -> "Keys":
        """Keys for a second network with the same sites, independent of these."""
        return dataclasses.replace(self, base=jax.random.fold_in(self.base, SITES[site]))

    def words(self, site: str | int, layer: int | Array = 0) -> tuple[Array, Array]:
        """Two u32 [batch] words that seed the element hash of dropout at `site` of `layer`.

        The layer may be traced. Integer mixing instead of one threefry call a site: it fuses into the consumer.
        """
        data = jax.random.key_data(jax.random.fold_in(self.base, STREAMS["dropout"] << 16))
        place = mix(jnp.uint32(_number(site) << 16) + jnp.asarray(layer, jnp.uint32))
        first = mix(mix(self.rows + data[0]) ^ place)
        second = mix(first + data[1] + jnp.uint32(0x9E3779B9) * self.rows)
        return first, second


def mix(x: Array) -> Array:
    """A bijection of u32 whose output bits each depend on every input bit (the `lowbias32` constants of C. Wellons' search)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def init_key(seed: int) -> Array:
    """The key of parameter initialisation."""
    return jax.random.fold_in(jax.random.key(seed), _code("init", "params"))


def part(key: Array, site: str | int) -> Array:
    """The initialisation key of one part of an objective, such as its encoder (a name of SITES) or a head (its own integer)."""
    return jax.random.fold_in(key, _number(site))


def training(seed: int | Array, step: Array, batch: int) -> Keys:
    """Keys of training step `step` (i32 scalar): row s draws from (seed, step, slot s of the global batch)."""
    return Keys(jax.random.fold_in(jax.random.key(seed), step), jnp.arange(batch, dtype=jnp.uint32), step)


def static(seed: int | Array, epoch: Array, index: Array, dupe: int, step: Array) -> Keys:
    """Keys of static masking: a row has `dupe` corruptions and uses one an epoch, in turn. Row i draws from (seed, epoch[i] mod dupe,
    index[i]).

    epoch, index: u32 [batch]. Slot and batch size do not matter, and a batch may hold rows of two epochs.
    """
    base = jax.vmap(lambda turn: jax.random.fold_in(jax.random.key(seed), turn))(epoch % jnp.uint32(dupe))
    return Keys(base, index.astype(jnp.uint32), step)


def evaluation(seed: int | Array, index: Array) -> Keys:
    """Keys of an evaluation batch: row i draws from (seed, index[i]), so masks do not depend on the batch size or the step.

    Their step is after the end of every schedule: held-out numbers of any step and of any run are for the task that training ends with, so
    they can be compared.
    """
    return Keys(jax.random.key(seed), index.astype(jnp.uint32), jnp.int32(jnp.iinfo(jnp.int32).max))


def completion(seed: int | Array, prompts: Array, samples: Array, places: Array) -> Keys:
    """Keys of generated tokens: a row's draw depends on (seed, number of its prompt, number of its sample, place of the token in its text)
    and not on the other rows of the batch.

    prompts, samples, places: u32 or i32 [batch].
    """
    base = jax.vmap(lambda sample, place: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), sample), place))(samples, places)
    return Keys(base, prompts.astype(jnp.uint32), jnp.int32(0))
