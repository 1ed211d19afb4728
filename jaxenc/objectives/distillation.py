"""Distillation of a masked language model into a smaller one (Sanh et al. 2019, DistilBERT, section 3)."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from jaxenc import losses, tree
from jaxenc.config import at_least
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.families.contract import Encoder, EncoderConfig, ModelConfig
from jaxenc.families.states import States
from jaxenc.heads.contract import Fitted
from jaxenc.heads.masked_lm import MASKED_LM
from jaxenc.layers.stack import layer_name
from jaxenc.objectives import encoder as encoders
from jaxenc.objectives import parts
from jaxenc.objectives.base import TEACHER, Objective, PhaseSetting, Sums
from jaxenc.objectives.mlm import Mlm, MlmConfig, head_flops
from jaxenc.rng import Keys, init_key
from jaxenc.tree import Tree

PLACES, STARTS = ("predicted", "all"), ("teacher", "random")
# Rounding changes the divergence of float32 logits by 2e-4 at a temperature of 100, by 3 % at 1000, and makes it negative at 10000.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100.0
# Fields that decide how a model reads its parameters, but not their shapes; a model without the field counts as 0.
SAME = ("heads", "first_position")


@dataclasses.dataclass(frozen=True)
class DistillationConfig(MlmConfig):
    """Masked language modelling with a frozen teacher, whose distribution and last hidden states the model learns to match. It masks as
    MlmConfig.

    The code of DistilBERT is distiller.py in examples/research_projects/distillation of huggingface/transformers. It masks rare words more
    often (token_probs, with mlm_smoothing 0.7 in train.py). That is left out: the data set has no token counts.

    teacher: directory of the teacher's run, or one of its checkpoints. It must have the data's tokenizer and a masked-token head.
    start: the initial weights of a fresh run: evenly spaced layers of the `teacher`, or `random`. `teacher` needs its shapes
        and as many attention heads.
    soft_coef: weight of the divergence from the teacher's distribution (alpha_ce).
    mlm_coef: weight of the masked-token loss (alpha_mlm).
    cosine_coef: weight of 1 - cosine of the last hidden states of both (alpha_cos). Only with 0 may their widths differ.
    temperature: both distributions are softmax(logits / temperature); their divergence is multiplied by its square. From 0.01 to 100.
    soft_places: where the distributions are compared: at the `predicted` tokens or at `all`. `all` is every token but padding, as published
        (train.py without --restrict_ce_to_mask). It computes about seven times as many logits.
    """

    kind: ClassVar[str] = "distillation"
    trains: ClassVar[tuple[str, ...]] = ()
    has_teacher: ClassVar[bool] = True
    teacher: str = ""
    start: str = "teacher"
    soft_coef: float = 5.0
    mlm_coef: float = 2.0
    cosine_coef: float = 1.0
    temperature: float = 2.0
    soft_places: str = "predicted"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(0, "objective", self, "soft_coef", "mlm_coef", "cosine_coef")
        if not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:
            fix = f"it takes a number from {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
            raise UserError(f"objective.temperature is {self.temperature}", fix=fix)
        for name, choices in {"start": STARTS, "soft_places": PLACES}.items():
            if getattr(self, name) not in choices:
                raise UserError(f"objective.{name} is {getattr(self, name)!r}", fix=f"use {' or '.join(choices)}")

    def unused(self, model: ModelConfig) -> dict[str, str]:
        """See `Run.unused`."""
        idle = {} if self.soft_coef else dict.fromkeys(("objective.temperature", "objective.soft_places"), "objective.soft_coef is 0")
        return {**super().unused(model), **idle}

    def build(self, model: EncoderConfig, setting: PhaseSetting) -> Objective:
        """The objective of one phase; without a teacher, the student with its masked-token loss alone. Raises UserError where student,
        teacher and length of rows do not fit."""
        mlm = super().build(model, setting)
        if setting.teacher is None:
            return mlm
        try:
            encoder = encoders.of(self.kind, setting.teacher, (MASKED_LM.name,), setting.execution)
        except UserError as error:
            fix = "name a model that was trained with objective.kind=mlm"
            raise UserError(error.what, f"objective.teacher {self.teacher}", fix) from error
        self.check(mlm.encoder, encoder, setting.data.length)
        head = encoders.fit(encoder, (MASKED_LM,))[MASKED_LM.name]
        coef = {"soft": self.soft_coef, "mlm": self.mlm_coef, "cosine": self.cosine_coef}
        trained = {name: factor for name, factor in coef.items() if factor}
        return Distillation(mlm, encoder, head, self.temperature, self.soft_places == "all", self.start == "teacher", trained)

    def check(self, student: Encoder, teacher: Encoder, length: int) -> None:
        """Raises UserError where this student cannot be distilled from `teacher` on rows of `length` tokens."""
        ours, theirs, named = student.config, teacher.config, f"objective.teacher {self.teacher}"
        if theirs.pieces != ours.pieces:
            sizes = f"it predicts {theirs.pieces:,} pieces and the student {ours.pieces:,}"
            raise UserError(sizes, named, "build the data with the teacher's tokenizer")
        if self.start == "teacher" and theirs.vocab_size != ours.vocab_size:
            sizes = f"its token table has {theirs.vocab_size:,} rows and the student's {ours.vocab_size:,}"
            raise UserError(sizes, named, f"set model.spare_rows to {theirs.spare_rows}, or objective.start to random")
        if self.cosine_coef and teacher.width != student.width:
            widths = f"its hidden states are {teacher.width} wide and the student's {student.width}"
            raise UserError(widths, named, f"set model.width to {teacher.width}, or objective.cosine_coef to 0")
        if 0 < theirs.positions < length:
            raise UserError(f"it has {theirs.positions} positions and data.length is {length}", named, "shorten the rows")
        if self.start == "teacher" and ours.layers > theirs.layers:
            layers = f"it has {theirs.layers} layers and the student {ours.layers}"
            raise UserError(layers, named, "lower model.layers, or set objective.start to random")
        for field in SAME if self.start == "teacher" else ():
            own, other = getattr(ours, field, 0), getattr(theirs, field, 0)
            if own != other:
                copied = f"model.{field} is {other} in the teacher and {own} in the student, which would read its parameters otherwise"
                raise UserError(copied, named, "make them equal, or set objective.start to random")


@dataclasses.dataclass(frozen=True)
class Distillation(Objective):
    """The weighted sum of three means: over the compared tokens, T² · KL(teacher ‖ student) at temperature T (Hinton et al. 2015; torch's
    KLDivLoss with the reduction batchmean); over the predicted tokens, the masked-token loss; over all tokens but padding, 1 - cosine of
    the last hidden states (torch's CosineEmbeddingLoss).

    mlm: the student. Parameters: the student's, and the teacher's under TEACHER. The teacher reads the same corrupted rows, with their
    types, without dropout and without a gradient. all_tokens: whether the distributions are compared at all tokens, not only at the
    predicted ones; starts_from_teacher: whether a fresh student copies layers of its teacher.
    """

    mlm: Mlm
    teacher: Encoder
    teacher_head: Fitted
    temperature: float
    all_tokens: bool
    starts_from_teacher: bool
    coef: Mapping[str, float]
    frozen: tuple[str, ...] = (TEACHER,)

    @property
    def heads(self) -> encoders.FittedHeads:
        """The student's head by its name in the parameter tree."""
        return self.mlm.heads

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """As the contract says, with those of the teacher's head."""
        return (*self.mlm.vocabulary, *(f"{TEACHER}/{path}" for path in self.mlm.vocabulary))

    @property
    def reads(self) -> Mapping[str, int]:
        """The fields that either model reads, each with the lower of their bounds."""
        ours, theirs = self.mlm.reads, self.teacher.config.inputs
        bounds = {name: [bound for reads in (ours, theirs) if (bound := reads.get(name, 0))] for name in {**ours, **theirs}}
        return {name: min(bounds[name], default=0) for name in bounds}

    def init(self, key: Array) -> Tree:
        theirs = jax.eval_shape(lambda: encoders.init(self.teacher, {MASKED_LM.name: self.teacher_head}, init_key(0)))
        return {**self.mlm.init(key), TEACHER: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), theirs)}

    def init_from_teacher(self, params: Tree, teacher: Tree) -> Tree:
        """The student's parameters that the teacher has too: tables, norms and the head unchanged, layer i from the teacher's layer
        `origin(i, ...)`. As in scripts/extract_distilbert.py, token types that only the teacher has are dropped, and the head is copied
        (--vocab_transform). Raises UserError for a parameter of another shape, and for layers that the teacher does not store: one that
        shares its layers stores fewer."""
        if not self.starts_from_teacher:
            return {}
        layers, found = self.mlm.encoder.config.layers, dict(tree.leaves(teacher))
        origins = {layer_name(i): layer_name(origin(i, layers, self.teacher.config.layers)) for i in range(layers)}
        copied = {}
        for path, leaf in tree.leaves(params):
            there = "/".join(origins.get(part, part) for part in path.split("/"))
            if there not in found:
                if any(part in origins for part in path.split("/")):
                    what = f"it has no {there}, from which the student's {path} would start"
                    raise UserError(what, "objective.teacher", "set objective.start to random")
                continue
            if found[there].shape != leaf.shape:
                shapes = f"{there} is {list(found[there].shape)} in the teacher and {path} {list(leaf.shape)} in the student"
                raise UserError(shapes, "objective.teacher", "give them the same shape, or set objective.start to random")
            copied[path] = found[there]
        return tree.from_leaves(copied.items())

    def corrupt(self, key: Array, one: Mapping[str, Array], step: Array) -> dict[str, Array]:
        return self.mlm.corrupt(key, one, step)

    def weights(self, example: Mapping[str, Array]) -> dict[str, Array]:
        masked, real = jnp.sum(example["masked"]), jnp.sum(_real(example))
        return {name: real if name == "cosine" or (name == "soft" and self.all_tokens) else masked for name in self.coef}

    def terms(
        self, params: Tree, carry: Tree, example: Mapping[str, Array], keys: Keys, train: bool
    ) -> tuple[dict[str, Array], Sums, Tree]:
        states = encoders.read(self.mlm.encoder, params, example, keys if train else None)
        target = jax.lax.stop_gradient(encoders.read(self.teacher, params[TEACHER], example, None))
        logits = self.mlm.logits(params, states, example["masked_at"])
        mlm, metrics = self.mlm.score(logits, example)
        sums = {"mlm": mlm}
        if "soft" in self.coef:
            sums["soft"] = self.divergence(params, states, target, logits, example)
        if "cosine" in self.coef:
            sums["cosine"] = losses.cosine_distance(states.last, target.last, _real(example))
        counts = {name: count.astype(jnp.float32) for name, count in self.weights(example).items()}
        own = {f"{name}_loss": (sums[name], counts[name]) for name in ("soft", "cosine") if name in sums}
        return {name: sums[name] for name in self.coef}, {**metrics, **own}, carry

    def divergence(self, params: Tree, states: States, target: States, logits: Array, example: Mapping[str, Array]) -> Array:
        """The sum of T² · KL over the compared tokens. states, target: of student and teacher; logits: the student's at the predicted
        tokens. The logits of all tokens are computed in parts where they are too many to hold in memory."""
        # Two tables may have different numbers of rows without a piece, which both distributions leave out.
        both = min(len(states.table), len(target.table))

        def target_logits(hidden: Array) -> Array:
            return encoders.apply(self.teacher_head, params[TEACHER], hidden, target.table)[..., :both]

        if not self.all_tokens:
            hidden = jnp.take_along_axis(target.last, example["masked_at"][..., None], axis=1)
            return losses.divergence(logits[..., :both], target_logits(hidden), example["masked"], self.temperature)

        def part(hidden: Array, target_hidden: Array, counted: Array) -> Array:
            student = encoders.apply(self.mlm.head, params, hidden, states.table)[..., :both]
            return losses.divergence(student, target_logits(target_hidden), counted, self.temperature)

        return parts.of_logits(part, 2 * padded(self.mlm.encoder.config.vocab_size), (states.last, target.last, _real(example)))

    def outputs(self, params: Tree, example: Mapping[str, Array]) -> dict[str, Array]:
        return self.mlm.outputs(params, example)

    def attentions(self, params: Tree, example: Mapping[str, Array]) -> Array:
        return self.mlm.attentions(params, example)

    def flops(self, length: int) -> float:
        """As the contract says: three passes of the student and one of the teacher."""
        vocab, predictions = self.mlm.encoder.config.vocab_size, self.mlm.masking.predictions
        compared = length if self.all_tokens else predictions
        head = lambda encoder, places: head_flops(encoder.width, encoder.table_width, vocab, places)
        student = self.mlm.flops(length) + (3 * head(self.mlm.encoder, length) if self.all_tokens else 0)
        return student + self.teacher.forward_flops(length) + head(self.teacher, compared)


def origin(layer: int, layers: int, teacher_layers: int) -> int:
    """The teacher's layer that layer `layer` of `layers` is copied from: evenly spaced from the first to the last, halves rounded up. For 6
    of 12 these are 0, 2, 4, 7, 9, 11 (scripts/extract_distilbert.py); a single layer is the first."""
    steps = max(layers - 1, 1)
    return (2 * layer * (teacher_layers - 1) + steps) // (2 * steps)


def _real(example: Mapping[str, Array]) -> Array:
    """i32 [batch, length]: 1 for a token, 0 for padding."""
    return (example["segments"] > 0).astype(jnp.int32)
