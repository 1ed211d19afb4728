"""Distillation: loss and gradient against a float64 loop, the frozen teacher, the initial student, and what is refused."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxenc import rng, tree
from jaxenc.data.vocabulary import padded
from jaxenc.errors import UserError
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.objectives import parts
from jaxenc.objectives.base import TEACHER
from jaxenc.objectives.distillation import Distillation, DistillationConfig, origin
from jaxenc.objectives.mlm import Mlm
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.accumulate import combine
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import State, parameters
from tests import tiny
from tests.objectives import reference_distillation as reference
from tests.selection import thinned

SIZES = {"vocab_size": 200, "width": 16, "heads": 2, "feed_forward": 24, "positions": 48}
BERT = BertConfig(**SIZES, layers=2, dropout=0.1, attention_dropout=0.1)
STUDENT = DistilbertConfig(**SIZES, layers=1, activation="gelu_tanh", dropout=0.1, attention_dropout=0.1)
CONFIG = DistillationConfig(teacher="T", rate=0.3)


def objective(config: DistillationConfig = CONFIG, student: Any = STUDENT, teacher: Any = BERT, length: int = 12) -> Any:
    return tiny.objective(config, student, length, teacher=teacher)


def drawn(chosen: Distillation) -> Any:
    return tiny.filled(parameters(chosen)[0], chosen, 200)


def example_of(chosen: Distillation, lengths: tuple[int, ...] = (12, 9, 3, 0, 12)) -> tuple[Any, rng.Keys]:
    """Corrupted rows, one of them padding, and their keys."""
    rows, keys = tiny.reads(tiny.batch(lengths, 12), chosen), rng.training(0, jnp.int32(4), len(lengths))
    return jax.jit(jax.vmap(chosen.corrupt, in_axes=(0, 0, None)))(keys.per_row("corrupt", "mask"), rows, keys.step), keys


def loss_of(chosen: Distillation, example: Any, keys: rng.Keys, train: bool) -> Any:
    """(loss, metrics) of all parameters."""

    def loss(params: Any) -> Any:
        sums, metrics, _ = chosen.terms(params, {}, example, keys, train)
        return combine(chosen, sums, chosen.weights(example)), metrics

    return loss


@pytest.mark.parametrize("places, at_once", thinned([("predicted", 12), ("all", 12), ("all", 5)], ("all", 5)))
def test_loss_and_gradient_are_those_of_the_reference(places: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 1e-5, with a temperature and weights of no special value. The reference gets the outputs of both models for the corrupted
    rows, and its slopes are pulled back through the student's. `all` with the logits of all places at once, and of five."""
    monkeypatch.setattr(parts, "LOGITS", at_once * 5 * 2 * padded(200))
    config = dataclasses.replace(CONFIG, soft_places=places, temperature=1.7, soft_coef=4.0, mlm_coef=2.5, cosine_coef=1.5)
    chosen = objective(config)
    params, (example, keys) = drawn(chosen), example_of(chosen)
    teacher = Mlm(chosen.teacher, chosen.teacher_head, chosen.mlm.masking)
    said = lambda one, params: (lambda out: {"mlm": out["mlm"], "last": out["hidden"][-1]})(one.outputs(params, example))
    with jax.default_matmul_precision("highest"):
        (loss, metrics), gradient = jax.jit(jax.value_and_grad(loss_of(chosen, example, keys, False), has_aux=True))(params)
        ours, theirs = jax.jit(lambda params: (said(chosen, params), said(teacher, params[TEACHER])))(params)
        masked = zip(*np.nonzero(example["masked"]), strict=True)
        predicted = [(row, int(example["masked_at"][row, i]), int(example["masked_ids"][row, i])) for row, i in masked]
        want = reference.loss(ours, theirs, example["segments"], predicted, places == "all", 1.7, chosen.coef)
        back = jax.jit(lambda params, slopes: jax.vjp(lambda params: said(chosen, params), params)[1](slopes))
        (slopes,) = back(params, {name: np.float32(value) for name, value in want.slopes.items()})
    total = sum(chosen.coef[name] * mean for name, mean in want.parts.items())
    assert abs(float(loss) - total) <= 1e-5 * total and min(want.parts.values()) > 0.01
    for name, mean in want.parts.items():
        found, count = metrics[f"{name}_loss"]
        assert abs(found / count - mean) <= 1e-5 * mean, name
        assert count == (36 if name == "cosine" or (name, places) == ("soft", "all") else len(predicted)) == chosen.weights(example)[name]
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient[TEACHER]))
    without = lambda found: {name: branch for name, branch in found.items() if name != TEACHER}
    tiny.assert_close(without(gradient), without(slopes), 1e-5)


def test_the_teacher_has_no_dropout_and_reads_the_corrupted_rows() -> None:
    """With itself as its teacher, and its own dropout off, a student matches it to rounding; with dropout it does not. The teacher's tokens
    are the student's, [MASK] among them."""
    for rate, bound in ((0.0, 1e-6), (0.1, None)):
        own = dataclasses.replace(BERT, dropout=rate, attention_dropout=rate)
        chosen = objective(student=own)
        params = drawn(chosen)
        params = {**params[TEACHER], TEACHER: params[TEACHER]}
        example, keys = example_of(chosen)
        assert (np.asarray(example["tokens"]) == 4).any()
        _, metrics = jax.jit(loss_of(chosen, example, keys, True))(params)
        for name in ("soft_loss", "cosine_loss"):
            found, count = metrics[name]
            assert found / count <= bound if bound else found / count > 1e-3, (rate, name)


@dataclasses.dataclass(frozen=True)
class Shown(tiny.Probe):
    """With the leaves that its vocabulary pads."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self.inner.vocabulary


def stepped(preset: str, devices: int, parts: int) -> tuple[State, State, dict[str, Any]]:
    """(the first state, the one after a step on 32 ragged rows, the report), with a teacher of one layer, which compiles faster."""
    config = TrainConfig(batch=tiny.ROWS, microbatches=parts, precision="float32")
    shown = Shown(objective(teacher=dataclasses.replace(BERT, layers=1), length=tiny.LENGTH), tiny.ROWS)
    compiled = tiny.compile_for(shown, OptimConfig(clip=0.0), config, tiny.phase(), tiny.mesh(preset, devices), preset)
    start = jax.device_get(compiled.start())
    return start, *compiled.run(tiny.reads(tiny.batch(tiny.RAGGED), shown))


@pytest.mark.full
@pytest.mark.slow
def test_the_step_of_eight_devices_and_two_parts_is_that_of_one() -> None:
    """Masks bitwise; loss and gradient <= 1e-5, float32, dropout on. The teacher has no moments and stays as it is, bit for bit."""
    (start, one, want), (_, eight, report) = stepped("dp", 1, 1), stepped("fsdp", 8, 2)
    seen, expected = ({name: total for name, (total, _) in one["metrics"].items() if name.startswith("seen_")} for one in (report, want))
    tiny.assert_bitwise(seen, expected)
    assert abs(report["loss"] - want["loss"]) <= 1e-5 * want["loss"]
    tiny.assert_close(tiny.gradient(eight), tiny.gradient(one), 1e-5)
    for state in (one, eight):
        tiny.assert_bitwise(state.frozen, start.frozen)
        assert set(state.frozen) == {TEACHER} and TEACHER not in {*state.params, *state.moments["adam"].mu}


def test_a_student_starts_from_every_second_layer() -> None:
    """6 of 12: scripts/extract_distilbert.py of the distillation example of huggingface/transformers."""
    spread = lambda layers, of: [origin(layer, layers, of) for layer in range(layers)]
    assert spread(6, 12) == [0, 2, 4, 7, 9, 11]
    assert [spread(*sizes) for sizes in ((1, 2), (2, 4), (3, 3), (4, 12), (2, 2))] == [[0], [0, 3], [0, 1, 2], [0, 4, 7, 11], [0, 1]]
    chosen = objective(student=dataclasses.replace(STUDENT, layers=2), teacher=dataclasses.replace(BERT, layers=3))
    params = drawn(chosen)
    own = {name: branch for name, branch in params.items() if name != TEACHER}
    found, teacher = dict(tree.leaves(chosen.init_from_teacher(own, params[TEACHER]))), dict(tree.leaves(params[TEACHER]))
    assert found.keys() == dict(tree.leaves(own)).keys()  # the teacher's types and its middle layer stay behind
    for path, leaf in found.items():
        assert leaf is teacher[path.replace("layer_01", "layer_02")], path
    assert objective(dataclasses.replace(CONFIG, start="random")).init_from_teacher(own, params[TEACHER]) == {}


def test_without_a_teacher_it_is_the_student_alone() -> None:
    """What is loaded, exported and counted: no parameter of a teacher, and the masked-token loss."""
    alone = tiny.objective(CONFIG, STUDENT, 12)
    assert type(alone) is Mlm and alone.coef == {"mlm": 1.0} and alone.masking.rate == 0.3
    assert set(parameters(alone)[0]) == {"embeddings", "encoder", "mlm"} and not alone.frozen


def test_flops_are_three_passes_of_the_student_and_one_of_the_teacher() -> None:
    chosen, predictions = objective(), 4
    head = 2 * predictions * 16 * (16 + 200)
    forward = lambda encoder: encoder.forward_flops(12)
    assert chosen.flops(12) == 3 * (forward(chosen.mlm.encoder) + head) + forward(chosen.teacher) + head
    everywhere = objective(dataclasses.replace(CONFIG, soft_places="all"))
    assert everywhere.flops(12) - chosen.flops(12) == 3 * 3 * head + 2 * head


def test_a_term_of_weight_0_is_not_computed() -> None:
    """Without the cosine the widths may differ, and without the divergence no place is compared."""
    wide = dataclasses.replace(BERT, width=24)
    chosen = objective(dataclasses.replace(CONFIG, cosine_coef=0, soft_coef=0, start="random"), teacher=wide)
    example, keys = example_of(chosen)
    _, metrics = jax.eval_shape(loss_of(chosen, example, keys, True), drawn(chosen))
    assert chosen.coef == {"mlm": 2.0} and not {"cosine_loss", "soft_loss"} & set(metrics)
    said = DistillationConfig(soft_coef=0).unused(STUDENT)
    assert said["objective.temperature"] == said["objective.soft_places"] == "objective.soft_coef is 0"


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: DistillationConfig(temperature=0), "objective.temperature is 0; it takes a number from 0.01 to 100"),
        (lambda: DistillationConfig(temperature=1000.0), "objective.temperature is 1000.0; it takes a number from 0.01 to 100"),
        (lambda: DistillationConfig(soft_coef=-1), "objective.soft_coef is -1; it is at least 0"),
        (lambda: DistillationConfig(start="layers"), "objective.start is 'layers'; use teacher or random"),
        (lambda: DistillationConfig(soft_places="masked"), "objective.soft_places is 'masked'; use predicted or all"),
        (lambda: objective(teacher=dataclasses.replace(BERT, width=24)), "are 24 wide and the student's 16; set model.width to 24, or obj"),
        (lambda: objective(teacher=dataclasses.replace(BERT, vocab_size=300)), "it predicts 300 pieces and the student 200; build"),
        # R13
        (
            lambda: objective(teacher=dataclasses.replace(BERT, vocab_size=300, spare_rows=100)),
            "its token table has 300 rows and the student's 200; set model.spare_rows to 100, or objective.start to random",
        ),
        (lambda: objective(teacher=dataclasses.replace(BERT, positions=8)), "it has 8 positions and data.length is 12; shorten the rows"),
        (
            lambda: objective(student=dataclasses.replace(STUDENT, layers=3)),
            "it has 2 layers and the student 3; lower model.layers, or",
        ),
        (lambda: objective(student=dataclasses.replace(STUDENT, heads=4)), "model.heads is 2 in the teacher and 4 in the student, which"),
        (lambda: objective(teacher=dataclasses.replace(BERT, first_position=2)), "model.first_position is 2 in the teacher and 0 in the"),
        (lambda: layers_that_are_shared(), "it has no encoder/layer_01/attention/key/bias, from which the student's encoder/layer_01/at"),
        (lambda: objective(teacher=XlnetConfig()), "objective.teacher T: mlm is not a head of model.kind xlnet"),
        (lambda: objective(teacher=ElmoConfig()), "objective.teacher T: objective.kind distillation takes an encoder"),
        (lambda: shapes_that_differ(), "is \\[48, 16\\] in the teacher and embeddings/position/table \\[40, 16\\] in the student; give"),
    ],
)
def test_what_does_not_fit_is_one_line(make: Any, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def shapes_that_differ() -> None:
    start(objective(student=dataclasses.replace(STUDENT, positions=40)))


def layers_that_are_shared() -> None:
    """An ALBERT stores its two layers once."""
    teacher = AlbertConfig(**SIZES, embedding=16, layers=2)
    start(objective(student=dataclasses.replace(STUDENT, layers=2), teacher=teacher))


def start(chosen: Distillation) -> None:
    params = drawn(chosen)
    chosen.init_from_teacher({name: branch for name, branch in params.items() if name != TEACHER}, params[TEACHER])
