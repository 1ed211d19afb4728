"""Warns of a published learning rate that hardly changes a model, because it was published for larger ones."""

import functools
import math

import jax

from jaxenc import rng
from jaxenc.data.vocabulary import padded
from jaxenc.execution import Execution
from jaxenc.families.contract import ModelConfig
from jaxenc.objectives import encoder as encoders
from jaxenc.precision import policy

# Rates published for small models are at least this: 3e-4 for ELECTRA-small (Clark et al. 2020, appendix B), and for the 24 small BERTs
# the middle of their grid of 3e-5 to 3e-4 (google-research/bert README.md).
LOW = 1e-4
# Parameters, without the token table. The smallest model with a published rate below LOW has 7.3 million: the base model of
# google-research/albert (run_glue.sh).
SMALL = 5_000_000
# (the greatest width, a rate to try). `tasks.results` has evidence for 1e-3; 3e-4 is the highest rate named above.
RATES = ((128, 1e-3), (math.inf, 3e-4))


def warning(model: ModelConfig, rate: float) -> str:
    """The warning, with a rate to try, for a published rate that is too low for `model`, or for the network of a pair that is fine-tuned;
    '' for any other rate."""
    if rate >= LOW:
        return ""
    encoder = encoders.of("heads", model, (model.pools,), Execution(policy("float32"), "xla", "none", False))
    count = _besides_table(encoder)
    if count >= SMALL:
        return ""
    better = next(rate for width, rate in RATES if encoder.width <= width)
    larger = f"the rate {rate:g} is published for larger models, and this one has {count:,} parameters besides its token table"
    return f"warning: {larger}: try --config.optim.lr={better:g}"


def _besides_table(encoder: encoders.Encoder) -> int:
    """Parameters of an encoder, without its token table."""
    shapes = jax.eval_shape(functools.partial(encoders.init, encoder, {}), rng.init_key(0))
    every = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    return every - padded(encoder.config.vocab_size) * encoder.table_width
