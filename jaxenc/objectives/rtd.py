"""Replaced-token detection (Clark et al. 2020; google-research/electra:run_pretraining.py, PretrainingModel)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxenc import metrics as metric_sums
from jaxenc import rng
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.layers.attend import Visible
from jaxenc.layers.embed import padded
from jaxenc.layers.heads import MlmHead, RtdHead
from jaxenc.models.electra import Electra, ElectraConfig, forward_flops
from jaxenc.objectives import detection, losses
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives.base import Objective, Sums
from jaxenc.objectives.corrupt import repeated, rule, sample
from jaxenc.objectives.mlm import Mlm, MlmConfig
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# Of temperatures and weights. Beyond 1e28 noise would reach the ids that only pad the vocabulary, beyond 1e38 float32 ends.
LARGEST = 1e6


@dataclasses.dataclass(frozen=True)
class RtdConfig(MlmConfig):
    """Masking as MlmConfig says, by default with [MASK] in every chosen place, as the paper has it; [MASK] itself is never chosen.

    google-research/electra draws with_replacement and leaves 15 % of the draws as they are: mask_share 0.85.
    with_replacement: places are drawn independently, and one that is drawn twice counts twice in the generator's loss; the
    discriminator gets the sample of its first draw (`corrupt.sample.replaced`).
    temperature: of the generator's softmax when it samples.
    mlm_coef, rtd_coef: of the two losses in their sum.
    """

    kind: ClassVar[str] = "rtd"
    mask_share: float = 1.0
    random_share: float = 0.0
    with_replacement: bool = False
    temperature: float = 1.0
    mlm_coef: float = 1.0
    rtd_coef: float = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature <= LARGEST:
            raise UserError(f"objective.temperature is {self.temperature}: it takes a number above 0 and up to {LARGEST:,.0f}, such as 1.0")
        for name in ("mlm_coef", "rtd_coef"):
            if not 0 <= getattr(self, name) <= LARGEST:
                raise UserError(f"objective.{name} is {getattr(self, name)}: it weighs a loss and takes a number from 0 to {LARGEST:,.0f}")
        if self.with_replacement and self.unit != "tokens":
            raise UserError(f"objective.with_replacement draws single tokens: set objective.unit to tokens, not {self.unit}")
        if self.with_replacement and self.random_share:
            raise UserError("objective.with_replacement draws no random ids: set objective.random_share to 0")

    def build(self, model: ElectraConfig, vocabulary: Vocabulary, execution: Execution, length: int, max_predictions: int) -> "Rtd":
        """The objective at one row length. Raises UserError for a model that is no pair."""
        if not isinstance(model, ElectraConfig):
            raise UserError(f"objective.kind rtd trains a generator and a discriminator: set model.kind to electra, not {model.kind}")
        masking = self.masking(vocabulary, length, max_predictions)
        masking = dataclasses.replace(masking, never_masked=(*masking.never_masked, vocabulary.mask))
        numbers = (model.activation, model.norm_epsilon, model.initializer, execution)
        head = MlmHead(model.vocab_size, model.embedding, *numbers)
        return Rtd(
            generator=Mlm(Electra(model, "generator", execution), head, masking),
            discriminator=Electra(model, "discriminator", execution),
            head=RtdHead(model.width, model.activation, model.initializer, execution),
            with_replacement=self.with_replacement,
            temperature=self.temperature,
            coef={"mlm": self.mlm_coef, "rtd": self.rtd_coef},
        )


@dataclasses.dataclass(frozen=True)
class Rtd(Objective):
    """The generator learns to predict the masked tokens; the discriminator, which of all tokens the generator's samples replaced.

    A sample that hits the original token is not a replacement. Every real token counts in the discriminator's loss, [CLS] and [SEP]
    too. No gradient passes through the samples; both losses reach the tables that the networks share. Both networks have dropout in
    training, the generator where it samples too. Parameters: those of the two `models.electra.Electra`, `mlm` and `rtd`.
    """

    generator: Mlm
    discriminator: Electra
    head: RtdHead
    with_replacement: bool
    temperature: float
    coef: Mapping[str, float]

    @property
    def heads(self) -> Mapping[str, MlmHead | RtdHead]:
        """The heads by their names in the parameter tree."""
        return {**self.generator.heads, "rtd": self.head}

    @property
    def reads(self) -> Mapping[str, int]:
        return self.generator.reads

    def init(self, key: Array) -> Tree:
        config, compute = self.discriminator.config, self.discriminator.execution.policy.compute
        row, lengths = jax.ShapeDtypeStruct((1, 2), jnp.int32), Visible.by_lengths(jax.ShapeDtypeStruct((1,), jnp.int32))
        table = jax.ShapeDtypeStruct((padded(config.vocab_size), config.embedding), jnp.float32)
        vectors = lambda width: jax.ShapeDtypeStruct((1, 1, width), compute)
        generator, discriminator = (
            network.lazy_init(rng.part(key, network.network), row, row, row, lengths, None)["params"]
            for network in (self.generator.encoder, self.discriminator)
        )
        mlm = self.generator.head.lazy_init(rng.part(key, "mlm"), vectors(config.generator_width), table)["params"]
        rtd = self.head.lazy_init(rng.part(key, "rtd"), vectors(config.width))["params"]
        return {**generator, **discriminator, "mlm": mlm, "rtd": rtd}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        """The generator's row, and `original`, i32 [length]: the tokens before."""
        if not self.with_replacement:
            return {**self.generator.corrupt(key, one, step), "original": one["tokens"]}
        masking = self.generator.masking
        drawn = rule.draws(masking, key, one["tokens"].shape[0])
        return {**one, **repeated.apply(masking, drawn, one), "original": one["tokens"]}

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {**self.generator.weights(example), "rtd": jnp.sum(example["segments"] > 0)}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        noise = keys if train else None
        logits = self.generator_logits(params, example, noise)
        mlm, generated = self.generator.score(logits, example)
        count = jnp.sum(example["masked"]).astype(jnp.float32)
        generated = {**generated, "mlm_entropy": (losses.entropy(logits, example["masked"]), count)}
        tokens = self.corrupted(logits, example, keys)
        rtd, detected = self.detect(params, tokens, example, noise)
        return {"mlm": mlm, "rtd": rtd}, {**generated, **detected}, carry

    def generator_logits(self, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> Array:
        """float32 [batch, predictions, padded vocabulary] of the generator at the masked places."""
        params = self._of_generator(params)
        return self.generator.logits(params, encoders.hidden(self.generator.encoder, params, example, noise), example["masked_at"])

    def corrupted(self, logits: Array, example: Mapping[str, Array], keys: Keys) -> Array:
        """The discriminator's tokens, i32 [batch, length]: the original rows with samples of the generator at the masked places."""
        noise = sample.gumbel(keys.per_row("sample", "generator"), *logits.shape[1:])
        samples = sample.draw(logits, noise, self.temperature)
        return sample.replaced(example["original"], example["masked_at"], example["masked"], samples)

    def detect(self, params: Tree, tokens: Array, example: Mapping[str, Array], noise: Keys | None) -> tuple[Array, Sums]:
        """(sum of losses over the real tokens, metrics) of the discriminator on the rows `tokens`."""
        hidden = encoders.hidden(self.discriminator, params, {**example, "tokens": tokens}, noise)
        logits = self.head.apply({"params": params["rtd"]}, hidden)
        real = (example["segments"] > 0).astype(jnp.int32)
        labels = (tokens != example["original"]).astype(jnp.int32)
        loss = losses.binary_cross_entropy(logits, labels, real)
        return loss, {"rtd_loss": (loss, jnp.sum(real).astype(jnp.float32)), **detection.metrics(logits, labels, real)}

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        """`hidden` and `rtd` are the discriminator's, `mlm` is the generator's."""
        inputs = (example["tokens"], example["types"], example["positions"], Visible.by_keys(example["segments"]))
        states = self.discriminator.apply({"params": params}, *inputs, None, all_layers=True)
        of_generator = self._of_generator(params)
        generated = self.generator.encoder.apply({"params": of_generator}, *inputs, None)
        mlm = encoders.mlm_logits(self.generator.head, of_generator, generated)[..., : self.discriminator.config.vocab_size]
        rtd = self.head.apply({"params": params["rtd"]}, states[-1])
        return {name: value.astype(jnp.float32) for name, value in {"hidden": states, "mlm": mlm, "rtd": rtd}.items()}

    def flops(self, length: int) -> float:
        config, predictions = self.discriminator.config, self.generator.masking.predictions
        bodies = sum(forward_flops(config, network, length) for network in ("generator", "discriminator"))
        mlm = 2.0 * predictions * config.embedding * (config.generator_width + config.vocab_size)
        return 3 * (bodies + mlm + 2.0 * length * config.width * (config.width + 1))

    def summary(self, sums: metric_sums.Sums) -> dict[str, float]:
        """The means, and `rtd_auc` from the histograms `rtd_scores`."""
        return {**super().summary(sums), "rtd_auc": detection.area(np.asarray(sums["rtd_scores"][0]))} if sums else {}

    def _of_generator(self, params: Tree) -> Tree:
        """The parameters as the generator and its head find them: with its own tables where it shares none."""
        own = self.discriminator.config.sharing == "none"
        return {**params, "embeddings": params["generator"]["embeddings"]} if own else params
