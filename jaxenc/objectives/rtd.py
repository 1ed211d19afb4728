"""Replaced-token detection (Clark et al. 2020; google-research/electra:run_pretraining.py, PretrainingModel)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import losses
from jaxenc import metrics as metric_sums
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, ModelConfig
from jaxenc.families.networks import NetworkPair
from jaxenc.heads.contract import Fitted
from jaxenc.heads.replaced import REPLACED
from jaxenc.objectives import detection
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, PhaseSetting, Sums
from jaxenc.objectives.corrupt import sample
from jaxenc.objectives.generator import LearnedGenerator, ReplacingConfig, UniformGenerator
from jaxenc.rng import Keys
from jaxenc.tree import Tree

CHOICES = {"generator": ("learned", "uniform"), "detects": ("all", "chosen")}


@dataclasses.dataclass(frozen=True)
class RtdConfig(ReplacingConfig):
    """Replaced-token detection by a discriminator, on rows of a generator (ELECTRA). Replaced tokens are as ReplacingConfig says.

    generator: `learned`, trained with the discriminator, or `uniform`, which draws all ids with equal probability. `uniform` is
        `uniform_generator` of google-research/electra:configure_pretraining.py; mask_share then has no effect, and temperature and mlm_coef
        must have their defaults.
    detects: tokens in the discriminator's loss: `all` but padding, or only the `chosen` ones (ELECTRA 15%, section 3.4).
    rtd_coef: weight of the discriminator's loss.
    """

    kind: ClassVar[str] = "rtd"
    trains: ClassVar[tuple[str, ...]] = ("mlm", "rtd")
    generator: str = "learned"
    detects: str = "all"
    rtd_coef: float = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UserError(f"objective.{name} is {getattr(self, name)!r}", fix=f"use {' or '.join(choices)}")
        if self.generator == "uniform" and (self.temperature != 1 or self.mlm_coef != 1):
            raise UserError(
                "objective.generator=uniform has no softmax and no loss", fix="leave objective.temperature and objective.mlm_coef at 1"
            )

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        if self.generator == "learned":
            return super().unused(model)
        of_masks = [f"objective.{name}" for name in ("mask_share", "random_share", "replacements", "action")]
        of_network = model.of_generator if isinstance(model, NetworkPair) else ()
        return super().unused(model) | dict.fromkeys([*of_masks, *of_network], "objective.generator=uniform has no network")

    def predicted(self, length: int, max_predictions: int = 0) -> float:
        """That of the generator's loss; without one, of the tokens in the discriminator's."""
        every = self.generator == "uniform" and self.detects == "all"
        return 1.0 if every else super().predicted(length, max_predictions)

    def build(self, model: ModelConfig, setting: PhaseSetting) -> "Rtd":
        """The objective of one phase. Raises UserError for a model that is not a pair."""
        networks = self.networks(model, setting.execution)
        discriminator, rows = networks.discriminator, (setting.vocabulary, setting.data.length, setting.max_predictions)
        if self.generator == "uniform":
            generator, coef = self.uniform(discriminator.config, *rows), {}
        else:
            generator, coef = self.learned(networks.generator, *rows), {"mlm": self.mlm_coef}
        head = encoders.fit(discriminator, (REPLACED,))[REPLACED.name]
        return Rtd(generator, discriminator, head, self.detects, {**coef, "rtd": self.rtd_coef})


@dataclasses.dataclass(frozen=True)
class Rtd(Objective):
    """The generator learns to predict the masked tokens, the discriminator to detect the tokens that the generator's samples replaced.

    A sample that equals the original token is not a replacement. With `detects` all, every token but padding counts in the discriminator's
    loss, also [CLS] and [SEP]. Gradients of both losses reach shared tables. Both networks have dropout in training. Parameters: the
    generator's, the discriminator's and `rtd`.
    """

    generator: LearnedGenerator | UniformGenerator
    discriminator: Encoder
    head: Fitted
    detects: str
    coef: Mapping[str, float]

    @property
    def heads(self) -> encoders.FittedHeads:
        """The heads by their names in the parameter tree."""
        return {**self.generator.heads, "rtd": self.head}

    @property
    def scaffold(self) -> tuple[str, ...]:
        """The generator and its head."""
        return ("generator", *self.generator.heads)

    @property
    def reads(self) -> Mapping[str, int]:
        return self.generator.reads

    def init(self, key: Array) -> Tree:
        return {**self.generator.init(key), **encoders.init(self.discriminator, {"rtd": self.head}, key, "discriminator")}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        """The generator's masked row, and `original`, i32 [length]: the tokens before masking."""
        return self.generator.corrupt(key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {**self.generator.weights(example), "rtd": jnp.sum(self.counted(example))}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        tokens, terms, metrics = self.generator.replace(params, example, keys, train)
        states = encoders.read(self.discriminator, params, {**example, "tokens": tokens}, keys if train else None)
        logits = encoders.apply(self.head, params, states.last)
        labels, counted = (tokens != example["original"]).astype(jnp.int32), self.counted(example)
        loss = losses.binary_cross_entropy(logits, labels, counted)
        own = {"rtd_loss": (loss, jnp.sum(counted).astype(jnp.float32)), **detection.metrics(logits, labels, counted)}
        if not train:
            own |= detection.identities(tokens, labels, counted, self.discriminator.config.vocab_size)
        return {**terms, "rtd": loss}, {**metrics, **own}, carry

    def counted(self, example: Mapping[str, Array]) -> Array:
        """i32 [batch, length], 1 for the tokens in the discriminator's loss and metrics."""
        if self.detects == "chosen":
            return sample.places(example["masked_at"], example["masked"], example["segments"].shape[1])
        return (example["segments"] > 0).astype(jnp.int32)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """`hidden` and `rtd` of the discriminator, and `mlm` of a learned generator."""
        of_discriminator = encoders.outputs(self.discriminator, {"rtd": self.head}, params, example)
        return {**of_discriminator, **self.generator.outputs(params, example)}

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return encoders.attentions(self.discriminator, params, example)

    def flops(self, length: int) -> float:
        width = self.discriminator.width
        discriminator = self.discriminator.forward_flops(length) + 2.0 * length * width * (width + 1)
        return self.generator.flops(length) + 3 * discriminator

    def summary(self, sums: metric_sums.Sums) -> dict[str, float]:
        """The means, and the areas under the ROC curve from the histograms among the sums."""
        return {**super().summary(sums), **detection.areas(sums)}
