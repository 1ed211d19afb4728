"""The optimizer: its settings, and the update from gradients to the next parameters."""

import dataclasses
import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax
import optax
from jax import Array
from jax.tree_util import DictKey

from jaxenc import tree
from jaxenc.config import at_least
from jaxenc.errors import UserError
from jaxenc.optim import layer_decay, masks, unfreeze
from jaxenc.optim.adam import bias_correction, scale_by_adam
from jaxenc.optim.clip import clip_by_global_norm
from jaxenc.optim.schedules import learning_rate
from jaxenc.tree import Tree

CHOICES = {
    "name": ("adamw", "lamb", "adagrad", "adafactor"),
    "schedule": ("linear", "square_root", "cosine", "constant", "slanted"),
    "origin": ("warmup_end", "step_zero", "step_zero_ramp"),
    "epsilon_added": ("after_correction", "before_correction"),
    "layer_decay_of": ("rate", "gradient"),
}


@dataclasses.dataclass(frozen=True)
class OptimConfig:
    """The optimizer and its schedule. The defaults are BERT-base's numbers (google-research/bert:optimization.py), with bias correction.

    name: `adamw`, `lamb` (for batches of many thousands of rows), `adagrad` or `adafactor`. Loshchilov and Hutter 2019, You et al. 2020,
        Duchi et al. 2011, Shazeer and Stern 2018 (with optax's numbers); the last two read no beta, no epsilon and no bias_correction.
    lr: learning rate at the end of the warm-up; `phases` may have their own.
    warmup: steps of linear warm-up from 0, or under `slanted` from lr / slanted_ratio; `phases` may have their own.
    schedule: `linear`, `square_root` or `cosine` decay to 0 at the last step, `constant` after the warm-up, or `slanted`. The last is
        ULMFiT's triangle (Howard and Ruder 2018, equation 3), with `warmup` as its cut, a tenth of the steps as published.
    slanted_ratio: how many times larger the peak of `slanted` is than the rate at its two ends; 32 as published.
    origin: where the decay starts: `warmup_end`, `step_zero` or `step_zero_ramp`. `warmup_end` is fairseq's (RoBERTa) and XLNet's;
        `step_zero` is BERT's and NVIDIA's: the warm-up replaces the first steps of a decay that runs from step 0, so at its end the rate
        drops by the share already decayed; `step_zero_ramp` is ELECTRA's: the decay from step 0 times the ramp of the warm-up.
    beta1: decay of Adam's first moment.
    beta2: decay of Adam's second moment.
    epsilon: added to the root of Adam's second moment.
    bias_correction: divide Adam's moments by 1 - beta^t, as the paper does; false is the original BERT, ELECTRA and ALBERT.
    epsilon_added: when epsilon is added: `after_correction` of the second moment's bias, or `before_correction`. The first is Adam's paper
        (algorithm 1) and most libraries; the second is fairseq (fairseq/optim/adam.py), whose epsilon weighs more in the first steps.
    accumulator: where Adagrad's sums of squares start, as in tf.train.AdagradOptimizer; ELMo's is 1 (allenai/bilm-tf:bilm/training.py).
    weight_decay: weight times learning rate that each step takes off a parameter (decoupled, as AdamW's).
    decay_corrected: whether bias correction scales the weight decay too, as in openai/finetune-transformer-lm:opt.py. It makes the decay
        3.2 times smaller at the first step and 6.5 times at the tenth.
    clip: limit of the gradient's global norm; 0 = no limit.
    decay_exclude: patterns (`re.fullmatch`) of the paths of parameters without weight decay; () = every parameter decays. Under lamb these
        have no trust ratio either. fairseq excludes none.
    freeze: patterns of the paths of parameters that are not trained.
    unfreeze: `PATTERN=STEP` items: parameters that do not change before that step of the phase's schedule. Neither do their moments, and
        the gradient's norm is clipped without them. A path takes the first item that matches it, and trains from step 0 without one.
    rates: `PATTERN=FACTOR` items, which multiply the learning rate of the parameters whose whole path matches. A path takes the first item
        that matches it, and has the factor 1 without one.
    layer_decay: factor from each layer to the one below it; 1 = none. Heads keep the full rate. ULMFiT divides by 2.6 (Howard and Ruder
        2018, section 3.2), which is 0.3846.
    layer_decay_top: exponent of the top layer's factor. Each layer below has one more, and the embeddings one more than the first layer. It
        is 2 in google-research/electra:model/optimization.py, where the top layer has decay squared and the embeddings decay^(layers + 2),
        1 in ULMFiT (Howard and Ruder 2018), and 0 in XLNet (zihangdai/xlnet:model_utils.py).
    layer_decay_of: what is multiplied: the learning `rate` or the clipped `gradient`. The second is zihangdai/xlnet:model_utils.py, where
        most of the decay is lost: Adam divides by the size of the gradient, which cancels a constant factor except through epsilon.
    layer_decay_exclude: patterns of the paths that layer_decay leaves alone. XLNet's are embeddings/.*, encoder/.*/attention/[a-z]+_bias
        and encoder/.*/segment/table, which zihangdai/xlnet keeps outside its layers.
    """

    name: str = "adamw"
    lr: float = 1e-4
    warmup: int = 10_000
    schedule: str = "linear"
    slanted_ratio: float = 32.0
    origin: str = "warmup_end"
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    bias_correction: bool = True
    epsilon_added: str = "after_correction"
    accumulator: float = 1.0
    weight_decay: float = 0.01
    decay_corrected: bool = False
    clip: float = 1.0
    decay_exclude: tuple[str, ...] = (".*/bias", ".*/norm/.*")
    freeze: tuple[str, ...] = ()
    unfreeze: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    layer_decay: float = 1.0
    layer_decay_top: int = 2
    layer_decay_of: str = "rate"
    layer_decay_exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise UserError(f"optim.{field} is {getattr(self, field)!r}", fix=f"use {' or '.join(choices)}")
        at_least(0, "optim", self, "lr", "warmup", "clip", "weight_decay", "layer_decay_top")
        at_least(1, "optim", self, "slanted_ratio")
        for field in ("beta1", "beta2"):
            if not 0 < getattr(self, field) < 1:
                raise UserError(f"optim.{field} is {getattr(self, field)}", fix="use a number between 0 and 1")
        for field in ("epsilon", "accumulator"):
            if not getattr(self, field) > 0:
                raise UserError(f"optim.{field} is {getattr(self, field)}", fix="it takes a positive number")
        if not 0 < self.layer_decay <= 1:
            raise UserError(f"optim.layer_decay is {self.layer_decay}", fix="it takes a number above 0 and up to 1")

    @property
    def unused(self) -> dict[str, str]:
        """See `Run.unused`."""
        of_adam = ("beta1", "beta2", "epsilon", "bias_correction", "epsilon_added", "decay_corrected")
        unread = {"adagrad": of_adam, "adafactor": (*of_adam, "accumulator")}.get(self.name, ("accumulator",))
        out = dict.fromkeys(unread, f"optim.name={self.name} does not read it")
        if self.schedule == "constant":
            out["origin"] = "optim.schedule=constant has no decay"
        if self.schedule == "slanted":
            out["origin"] = "optim.schedule=slanted decays from the end of the warm-up"
        else:
            out["slanted_ratio"] = f"optim.schedule={self.schedule} does not read it"
        if not self.bias_correction:
            out.setdefault("epsilon_added", "optim.bias_correction=false makes both choices the same")
            out.setdefault("decay_corrected", "optim.bias_correction is false")
        if not self.weight_decay:
            out.setdefault("decay_corrected", "optim.weight_decay is 0")
            if self.name != "lamb":
                out["decay_exclude"] = "optim.weight_decay is 0"
        if self.layer_decay == 1:
            out |= dict.fromkeys(("layer_decay_top", "layer_decay_of", "layer_decay_exclude"), "optim.layer_decay is 1")
        return {f"optim.{name}": why for name, why in out.items()}


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The update rule of one phase.

    transform: an optax chain of named stages, from clipped gradients to a direction; its state, the moments, is a dict by stage, or with
    `starts` one of those for each start (`unfreeze.in_turn`). rate: the learning rate as a function of the clock, the i32 step in the
    phase's schedule. factors, of_gradient: multipliers of the rate and of the clipped gradient of each leaf, None for 1 everywhere. starts:
    the clock at which each leaf starts to train, None for 0 everywhere. clip: limit of the gradient's global norm, 0 for none.
    """

    transform: optax.GradientTransformationExtraArgs
    rate: Callable[[Array], Array]
    factors: Tree | None
    of_gradient: Tree | None
    starts: Tree | None
    clip: float

    def init(self, params: Tree) -> Any:
        """The initial moments of the trained parameters, a tree of arrays of any rank and dtype."""
        return self.transform.init(params)

    def update(self, grads: Tree, norm: Array, moments: Any, params: Tree, clock: Array) -> tuple[Tree, Any, Array]:
        """(parameters, moments, learning rate) after one update.

        norm: float32, the global norm of `grads` (`optax.tree.norm`). clock: i32, the step in the schedule, which also counts skipped
        steps. The count of Adam's bias correction is in the moments and does not count them. The norm that is clipped leaves out what does
        not train yet.
        """
        if self.starts is not None:
            grads = unfreeze.begun(grads, self.starts, clock)
            norm = optax.tree.norm(grads)
        grads = clip_by_global_norm(grads, norm, self.clip)
        if self.of_gradient is not None:
            grads = jax.tree.map(lambda grad, factor: grad * factor, grads, self.of_gradient)
        direction, moments = self.transform.update(grads, moments, params, clock=clock)
        lr = self.rate(clock)
        if self.factors is None:
            return jax.tree.map(lambda p, d: p - lr * d, params, direction), moments, lr
        return jax.tree.map(lambda p, d, factor: p - lr * factor * d, params, direction, self.factors), moments, lr


def build(config: OptimConfig, params: Tree, lr: float, warmup: int, steps: int) -> Optimizer:
    """The optimizer of a phase whose schedule has `steps` steps.

    params: all parameters of the model or their shapes, also frozen ones, so that every pattern is checked against the full model; `init`
    and `update` take only the trained ones. lr, warmup: as `schedules.learning_rate`. Raises UserError as `masks`,
    `unfreeze` and `layer_decay`.
    """
    trained = masks.trained(config.freeze, params)
    decays = masks.select(trained, masks.decay_mask(config.decay_exclude, params))
    factors, of_gradient = _multipliers(config, trained, params)
    rate = learning_rate(config.schedule, config.origin, lr, warmup, steps, config.slanted_ratio)
    chain = lambda part: optax.named_chain(*_stages(config, masks.select(part, decays)))
    starts = unfreeze.starts(config.unfreeze, trained, params) if config.unfreeze else None
    transform = chain(trained) if starts is None else unfreeze.in_turn(starts, chain)
    return Optimizer(transform, rate, factors, of_gradient, starts, config.clip)


def _multipliers(config: OptimConfig, trained: Tree, params: Tree) -> tuple[Tree | None, Tree | None]:
    """`Optimizer.factors` and `Optimizer.of_gradient`."""
    by_path = masks.select(trained, masks.factors(config.rates, params)) if config.rates else None
    if config.layer_decay == 1:
        return by_path, None
    by_layer = masks.select(trained, layer_decay.factors(config.layer_decay, config.layer_decay_top, config.layer_decay_exclude, params))
    if config.layer_decay_of == "gradient":
        return by_path, by_layer
    return by_layer if by_path is None else jax.tree.map(operator.mul, by_path, by_layer), None


def _stages(config: OptimConfig, decays: Tree) -> list[tuple[str, optax.GradientTransformation]]:
    """The named stages of a chain. decays: a tree of bool, the trained leaves that weight decay applies to.

    adamw: Adam's direction plus weight_decay · parameter (Loshchilov and Hutter 2019, algorithm 2).
    lamb: that sum times |parameter| / |sum| per leaf, 1 where either norm is 0 (You et al. 2020, algorithm 2, with φ(z) = z). Leaves
    without decay have the ratio 1, which the paper does not say and the code behind the published models does
    (google-research/albert:lamb_optimizer.py; NVIDIA/apex:csrc/multi_tensor_lamb.cu unless use_nvlamb).
    adagrad: gradient / sqrt(sum of its squares so far + accumulator), without an epsilon, as TensorFlow's ApplyAdagrad; then as adamw.
    adafactor: factored second moments, the update clipped to a root mean square of 1 and multiplied by that of the parameter
    (Shazeer and Stern 2018, algorithms 4 and 5), with the numbers of optax.adafactor; then as adamw.
    With decay_corrected, adamw and lamb multiply weight_decay by Adam's correction of the quotient m / sqrt(v).
    """
    correction = bias_correction(config.beta1, config.beta2)
    corrected = config.decay_corrected and config.bias_correction and config.name in ("adamw", "lamb")
    weight_decay = (lambda count: config.weight_decay * correction(count + 1)) if corrected else config.weight_decay
    decay = ("decay", optax.add_decayed_weights(weight_decay, decays))
    if config.name == "adagrad":
        return [("adagrad", optax.scale_by_rss(config.accumulator, eps=0.0)), decay]
    if config.name == "adafactor":
        factored = ("adafactor", optax.scale_by_factored_rms())
        return [factored, ("clip", optax.clip_by_block_rms(1.0)), ("scale", optax.scale_by_param_block_rms()), decay]
    adam = ("adam", scale_by_adam(config.beta1, config.beta2, config.epsilon, config.bias_correction, config.epsilon_added))
    if config.name == "adamw":
        return [adam, decay]
    return [adam, decay, ("ratio", optax.masked(optax.scale_by_trust_ratio(), decays))]


def moment_names(optimizer: Optimizer, params: Tree, names: Tree) -> Any:
    """The logical axis names of every leaf of the moments: those of its parameter for a moment of the same shape, () for a count, and None
    for every axis of a moment of another shape, such as Adafactor's rows and columns, which are replicated.

    params: the trained parameters or their shapes; names: the same tree with a tuple of names instead of each array.
    The result goes to `sharding.partition.shardings` beside `jax.eval_shape(optimizer.init, params)`.
    """
    leaves, axes = dict(tree.leaves(params)), dict(tree.leaves(names))

    def of(path: tuple[Any, ...], moment: Any) -> tuple[str | None, ...]:
        # The state of a stage is a named tuple, some of whose fields are trees like that of the parameters.
        own = "/".join(reversed([key.key for key in itertools.takewhile(lambda key: isinstance(key, DictKey), reversed(path))]))
        if own not in leaves:
            return ()
        return axes[own] if moment.shape == leaves[own].shape else (None,) * len(moment.shape)

    return jax.tree_util.tree_map_with_path(of, jax.eval_shape(optimizer.init, params))
