"""The optimizer of a configuration, and the logical axes of its state."""

import jax
import optax

from jaxenc.optim import masks
from jaxenc.optim.adam import scale_by_adam
from jaxenc.optim.settings import OptimConfig
from jaxenc.tree import Tree


def build(config: OptimConfig, params: Tree) -> optax.GradientTransformation:
    """A transformation from clipped gradients to the direction that the step multiplies by -lr and adds to the parameters.

    params: all parameters of the model or their shapes, frozen ones included, so that every pattern is checked against the whole
    model; the transformation's `init` and `update` take the trained ones. Its state holds moments and the count of its own updates.

    adamw: Adam's direction plus weight_decay · parameter where decay_mask holds (Loshchilov and Hutter 2019, algorithm 2).
    lamb: that sum times |parameter| / |sum| per leaf, 1 where either norm is 0 (You et al. 2020, algorithm 2, with φ(z) = z). Leaves
    without decay have the ratio 1, which the paper does not say and the code behind the published models does
    (google-research/albert:lamb_optimizer.py; NVIDIA/apex:csrc/multi_tensor_lamb.cu unless use_nvlamb).
    adagrad: gradient / sqrt(sum of its squares so far + accumulator), without an epsilon, as TensorFlow's ApplyAdagrad; then as adamw.

    Raises UserError as `masks` does.
    """
    mask = masks.trained(config, masks.decay_mask(config, params))
    decay = optax.add_decayed_weights(config.weight_decay, mask)
    if config.name == "adagrad":
        return optax.chain(optax.scale_by_rss(config.accumulator, eps=0.0), decay)
    adam = scale_by_adam(config.beta1, config.beta2, config.epsilon, config.bias_correction, config.epsilon_added)
    if config.name == "adamw":
        return optax.chain(adam, decay)
    return optax.chain(adam, decay, optax.masked(optax.scale_by_trust_ratio(), mask))


def moment_names(optimizer: optax.GradientTransformation, params: Tree, names: Tree) -> Tree:
    """The logical axis names of every leaf of the optimizer's state: its parameter's for a moment, () for a count.

    params: the trained parameters or their shapes; names: the same tree with a tuple of names in the place of each array.
    The result goes to `sharding.partition.shardings` beside `jax.eval_shape(optimizer.init, params)`.
    """
    state = jax.eval_shape(optimizer.init, params)
    return optax.tree_map_params(optimizer, lambda _, axes: axes, state, names, transform_non_params=lambda _: ())
