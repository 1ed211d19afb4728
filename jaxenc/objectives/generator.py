"""A generator, which masks tokens of a row and replaces them by samples (ELECTRA, Clark et al. 2020, section 2;
google-research/electra:run_pretraining.py, PretrainingModel). `rtd.py` and `replaced_mlm.py` train another network on its rows."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxenc import families, losses
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.execution import Execution
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.families.networks import NetworkPair, Networks
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives import mlm as mlms
from jaxenc.objectives.base import Sums
from jaxenc.objectives.corrupt import masking as masks
from jaxenc.objectives.corrupt import rule, sample
from jaxenc.objectives.corrupt import with_replacement as repeats
from jaxenc.objectives.corrupt.rule import Masking
from jaxenc.objectives.mlm import Mlm, MlmConfig
from jaxenc.rng import Keys
from jaxenc.tree import Tree

# The largest temperature and weight of a loss. From 1e28 on the noise could pick ids that only pad the vocabulary; float32 ends at 3e38.
LARGEST = 1e6


@dataclasses.dataclass(frozen=True)
class ReplacingConfig(MlmConfig):
    """Masking as MlmConfig says, by default with [MASK] at every chosen place, as in the paper; a [MASK] in the text is never chosen.

    google-research/electra draws with replacement and leaves 15 % of the chosen tokens unchanged: mask_share 0.85.

    with_replacement: draw the masked places independently, so that a place may be drawn twice. Such a place counts twice in the generator's
        loss and once in the other; its token is the sample of its first draw (`corrupt.sample.replaced`).
    temperature: of the generator's softmax when it samples.
    mlm_coef: weight of the generator's loss.
    """

    mask_share: float = 1.0
    random_share: float = 0.0
    with_replacement: bool = False
    temperature: float = 1.0
    mlm_coef: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature <= LARGEST:
            raise UserError(
                f"objective.temperature is {self.temperature}", fix=f"it takes a number above 0 and up to {LARGEST:,.0f}, such as 1.0"
            )
        for name in (field.name for field in dataclasses.fields(self) if field.name.endswith("_coef")):
            if not 0 <= getattr(self, name) <= LARGEST:
                raise UserError(
                    f"objective.{name} is {getattr(self, name)}", fix=f"it weighs a loss and takes a number from 0 to {LARGEST:,.0f}"
                )
        if self.with_replacement and self.unit != "tokens":
            raise UserError("objective.with_replacement draws single tokens", fix=f"set objective.unit to tokens, not {self.unit}")
        if self.with_replacement and self.random_share:
            raise UserError("objective.with_replacement draws no random ids", fix="set objective.random_share to 0")

    def networks(self, model: ModelConfig, execution: Execution) -> Networks:
        """Both networks of the pair `model`. Raises UserError for a model that is not a pair."""
        return families.able(model, NetworkPair, f"objective.kind {self.kind} takes a pair of networks").networks(execution)

    def learned(self, network: Encoder, vocabulary: Vocabulary, length: int, max_predictions: int) -> "LearnedGenerator":
        """`network` as a generator for rows of `length` tokens. Raises UserError as `MlmConfig.masking`."""
        head = encoders.fit(network, (MASKED_LM,))[MASKED_LM.name]
        mlm = Mlm(network, head, self.places(vocabulary, length, max_predictions))
        return LearnedGenerator(mlm, self.with_replacement, self.temperature)

    def uniform(self, model: EncoderConfig, vocabulary: Vocabulary, length: int, max_predictions: int) -> "UniformGenerator":
        """A generator without a network, for a discriminator `model` that is trained alone. Raises UserError as `learned`."""
        return UniformGenerator(model, self.places(vocabulary, length, max_predictions), self.with_replacement)

    def places(self, vocabulary: Vocabulary, length: int, max_predictions: int) -> Masking:
        """The masking rule: as `MlmConfig.masking`, but a [MASK] in the text is never chosen."""
        masking = self.masking(vocabulary, length, max_predictions)
        return dataclasses.replace(masking, never_masked=(*masking.never_masked, vocabulary.mask))


@dataclasses.dataclass(frozen=True)
class LearnedGenerator:
    """A generator that is trained to predict the masked tokens and replaces them by samples from its softmax.

    No gradient flows through the samples. In training it has dropout, also when it samples. Parameters: its network's and `mlm`.
    """

    mlm: Mlm
    with_replacement: bool
    temperature: float

    @property
    def heads(self) -> encoders.FittedHeads:
        """The head by its name in the parameter tree."""
        return self.mlm.heads

    @property
    def masking(self) -> Masking:
        """The masking rule."""
        return self.mlm.masking

    @property
    def reads(self) -> Mapping[str, int]:
        return self.mlm.reads

    def init(self, key: Array) -> Tree:
        return encoders.init(self.mlm.encoder, self.heads, key, "generator")

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return _masked(self.masking, self.with_replacement, key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return self.mlm.weights(example)

    def replace(self, params: Tree, example: Mapping[str, Array], keys: Keys, train: bool) -> tuple[Array, dict[str, Array], Sums]:
        """(rows i32 [batch, length] with samples in the masked places, {`mlm`: sum of losses}, metrics)."""
        logits = self.logits(params, example, keys if train else None)
        loss, metrics = self.mlm.score(logits, example)
        count = jnp.sum(example["masked"]).astype(jnp.float32)
        metrics["mlm_entropy"] = (losses.entropy(logits, example["masked"]), count)
        return self.sampled(logits, example, keys), {"mlm": loss}, metrics

    def logits(self, params: Tree, example: Mapping[str, Array], noise: Keys | None) -> Array:
        """float32 [batch, predictions, padded vocabulary] at the masked places; noise: None without dropout."""
        return self.mlm.logits(params, encoders.read(self.mlm.encoder, params, example, noise), example["masked_at"])

    def sampled(self, logits: Array, example: Mapping[str, Array], keys: Keys) -> Array:
        """The original rows with samples of softmax(logits / temperature) at the masked places, i32 [batch, length]."""
        noise = sample.gumbel(keys.per_row("sample", "generator"), *logits.shape[1:])
        samples = sample.draw(logits, noise, self.temperature)
        return sample.replaced(example["original"], example["masked_at"], example["masked"], samples)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return {"mlm": encoders.outputs(self.mlm.encoder, self.heads, params, example)["mlm"]}

    def flops(self, length: int) -> float:
        return self.mlm.flops(length)


@dataclasses.dataclass(frozen=True)
class UniformGenerator:
    """A generator that samples all ids with equal probability, also special and unused ones, as google-research/electra with
    `uniform_generator` does (zero logits), but never one without a piece.

    It has no parameters and no loss, and only the metrics of the masking.
    """

    config: EncoderConfig
    masking: Masking
    with_replacement: bool
    heads: ClassVar[encoders.FittedHeads] = MappingProxyType({})

    @property
    def reads(self) -> Mapping[str, int]:
        return mlms.reads(self.config, self.masking)

    def init(self, key: Array) -> Tree:
        return {}

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return _masked(self.masking, self.with_replacement, key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        return {}

    def replace(self, params: Tree, example: Mapping[str, Array], keys: Keys, train: bool) -> tuple[Array, dict[str, Array], Sums]:
        """As `LearnedGenerator.replace`, without a loss."""
        at = example["masked_at"]
        samples = sample.uniform(keys.per_row("sample", "generator"), at.shape[1], self.config.pieces)
        return sample.replaced(example["original"], at, example["masked"], samples), {}, masks.statistics(example)

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return {}

    def flops(self, length: int) -> float:
        return 0.0


def _masked(masking: Masking, with_replacement: bool, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
    """The masked row, and `original`, i32 [length]: the tokens before masking."""
    apply = repeats.apply if with_replacement else masks.apply
    drawn = rule.draws(masking, key, one["tokens"].shape[0], step)
    return {**one, **apply(masking, drawn, one), "original": one["tokens"]}
