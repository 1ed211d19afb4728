"""Each check on curves that are written down here: where it speaks, and just where it does not."""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import pytest

from jaxenc.findings import OK, PROBLEM, WARNING, Finding
from jaxenc.reports.normal import detection, level, masks, rates, repeats, speed, stability
from jaxenc.reports.normal.comments import judge
from jaxenc.reports.normal.evidence import Evidence
from jaxenc.reports.normal.text import Text
from jaxenc.training.phases import Phase
from tests.reports.normal.histories import BATCH, COUNTS, LENGTH, STEPS, WARMUP, changed, falling, history, reference

FLAT = lambda step: 6.95  # the frequencies of words are 7.0


def names(found: Iterable[Finding]) -> list[str]:
    return [one.check for one in found]


def test_a_run_as_good_as_the_reference_is_said_to_be_and_nothing_else() -> None:
    (only,) = judge(history(falling, falling, {"mask_rate": lambda step: 0.15}), [reference()])
    assert only.level == OK
    assert only.what == (
        "mlm_loss 4.00 at step 400 of 400, 0.8 M tokens: position 1.50, where 0 is word frequencies (7.00) and 1 neighbours (5.00); "
        "bert/test, the reference: 1.80 after as many tokens, 1.80 at its end"
    )


def test_a_plateau_is_normal_for_as_long_as_the_reference_took() -> None:
    stuck = history(FLAT, FLAT)
    half = changed(stuck, plan=(dataclasses.replace(stuck.settings.plan[0], steps=2 * STEPS),))
    assert names(level.plateau(half, reference())) == ["plateau"]  # at 0.03, where it was at 0.3 after a third of the tokens
    slower = reference(tokens_per_step=4 * BATCH * LENGTH)  # at 0.2 after as many tokens, and not yet measured after a third
    assert not [*level.plateau(half, slower)]
    assert names(level.plateau(stuck, slower)) == ["plateau"]  # no step is left
    assert not [*level.plateau(stuck, reference((0.05, 0.1), 4 * BATCH * LENGTH))]
    assert not [*level.plateau(history(FLAT, FLAT, warmup=STEPS // 2 + 1), reference())]  # hardly warmed up
    assert "raise optim.lr (0.001, the reference 0.001)" in next(iter(level.plateau(stuck, reference()))).fix
    assert "lower optim.lr (0.001, the reference 0.0001)" in next(iter(level.plateau(stuck, reference(lr=1e-4)))).fix
    leaving = lambda step: 7.0 if step < 300 else 7.0 - 0.005 * (step - 300)
    assert not [*level.plateau(history(leaving, leaving), reference())]  # it falls


def test_without_a_reference_a_plateau_is_named_at_the_end_and_without_counts_never() -> None:
    stuck = history(FLAT, FLAT)
    assert names(level.plateau(stuck, None)) == ["plateau"]
    half = changed(stuck, plan=(dataclasses.replace(stuck.settings.plan[0], steps=2 * STEPS),))
    assert not [*level.plateau(half, None)]
    assert not [*level.plateau(dataclasses.replace(stuck, text=Text(missing="gone")), reference())]


def test_half_the_position_after_three_times_the_tokens_is_slow() -> None:
    slow = lambda step: 7.0 - 1.0 * step / STEPS  # 0.5 in the end
    further = reference((1.1, 1.3, 1.5, 1.8))
    assert names(level.behind(history(slow, slow), further)) == ["slow"]
    assert not [*level.behind(history(falling, falling), further)]


def test_a_loss_that_text_does_not_allow() -> None:
    tiny = lambda step: max(0.0, 7.0 - step / 40)
    assert names(level.too_low(history(tiny, tiny))) == []  # 7 - 10 < 0, clipped at 0: a position of 3.5
    counts = {**COUNTS, "left_right": 5.6}
    assert names(level.too_low(history(tiny, tiny, text=Text(counts)))) == ["loss too low"]


def test_a_loss_that_rises_for_good_is_a_problem_and_a_single_spike_is_not() -> None:
    rises = lambda step: falling(step) if step < 300 else 5.0 + (step - 300) / 50
    found = [*stability.divergence(history(rises))]
    assert [(one.level, one.check) for one in found] == [(PROBLEM, "divergence")]
    assert "was 5.20 at step 300 and is 6.60 now" in found[0].what  # medians of five rows: those of steps 280 and 380
    spike = lambda step: 9.0 if step == 350 else falling(step)
    assert not [*stability.divergence(history(spike))] and not [*rates.too_high(history(spike), None)]


def test_a_noisy_loss_that_stands_still_has_not_diverged() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, STEPS + 1)
    assert not [*stability.divergence(history(lambda step: 6.9 + noise[step]))]


def test_skipped_steps() -> None:
    few, many = (lambda step: 1.0), (lambda step: max(0, step - 350))
    assert not [*stability.divergence(history(falling, numbers={"skipped": few}))]
    found = [*stability.divergence(history(falling, numbers={"skipped": many}))]
    assert [one.level for one in found] == [PROBLEM] and "50 of 400 steps were not finite and skipped" in found[0].what
    past = [*stability.divergence(history(falling, numbers={"skipped": lambda step: min(step, 20)}))]
    assert [one.level for one in past] == [WARNING]


def test_losses_that_are_not_finite_are_left_out() -> None:
    gone = lambda step: math.nan if step > 200 else falling(step)
    found = judge(history(gone, falling, {"skipped": lambda step: max(0, step - 200)}), [reference()])
    assert names(one for one in found if one.level == PROBLEM) == ["divergence"]


def test_a_loss_above_its_start_and_one_that_keeps_jumping() -> None:
    above = lambda step: 8.0 if step == 1 else 8.5
    assert [(one.level, one.check) for one in rates.too_high(history(above), None)] == [(PROBLEM, "learning rate too high")]
    jumps = lambda step: falling(step) + 2.0 * (step % 100 == 0 and step > 0)
    assert [(one.level, one.check) for one in rates.too_high(history(jumps), None)] == [(WARNING, "learning rate too high")]
    once = lambda step: falling(step) + 2.0 * (step in (300, 310, 320))
    assert not [*rates.too_high(history(once), None)]  # one jump of three rows
    early = lambda step: falling(step) + 2.0 * (step in (10, 20, 30, 40))  # while the rate rises
    assert not [*rates.too_high(history(early), None)]


def test_a_loss_that_has_hardly_moved_is_not_above_its_start() -> None:
    """As in the first dozen rows of a run of small batches: less than their own scatter is chance."""
    scattered = lambda step: 8.0 if step == 1 else 8.01 + 0.3 * math.sin(step)
    assert not [*rates.too_high(history(scattered), None)]


def test_a_warm_up_as_long_as_the_run() -> None:
    assert names(rates.too_low(history(falling, warmup=STEPS), None)) == ["learning rate too low"]
    assert not [*rates.too_low(history(falling, warmup=STEPS - 1), None)]


def test_a_loss_that_settles_above_word_frequencies() -> None:
    """With a rate of 1e-3, and a reference of 1e-3 or 1e-4."""
    above = lambda step: max(9.0 - step / 10, 7.1)
    low = reference(lr=1e-4)
    assert names(rates.too_high(history(above, above), low)) == ["learning rate too high"]
    assert not [*rates.too_high(history(above, above), reference())] and not [*rates.too_high(history(above, above), None)]
    assert not [*rates.too_high(history(above, lambda step: 7.03), low)]
    jumped = lambda step: above(step) + 1.5 * (step == 100)
    assert names(rates.too_high(history(jumped, above), reference())) == ["learning rate too high"]


def test_a_loss_that_is_on_its_way_to_word_frequencies_when_the_reference_was_below_them() -> None:
    slow = lambda step: 9.0 - step / 400
    assert names(rates.too_low(history(slow, slow), reference())) == ["learning rate too low"]
    assert not [*rates.too_high(history(slow, slow), reference(lr=1e-5))]
    assert not [*rates.too_low(history(slow, slow), reference(tokens_per_step=5 * BATCH * LENGTH))]
    assert not [*rates.too_low(history(falling, falling), reference())]


@pytest.mark.parametrize(
    "seen, asked, speaks", [(0.15, 0.15, 0), (0.19, 0.15, 1), (0.13, 0.15, 0), (0.4, 0.4, 0), (0.8, 0.8, 1), (0.05, 0.05, 1)]
)
def test_the_share_of_masked_tokens(seen: float, asked: float, speaks: int) -> None:
    found = [*masks.rate(history(falling, numbers={"mask_rate": lambda step: seen}, rate=asked))]
    assert len(found) == speaks


def test_too_few_places_for_predictions_are_named() -> None:
    (found,) = masks.rate(history(falling, numbers={"mask_rate": lambda step: 0.03}, max_predictions=1))
    assert found.what == "3.0% of the tokens are predicted, and the objective asks for 15.0%"
    assert found.fix.startswith("rows of 32 tokens hold 1 predictions at most: set objective.max_predictions=0")


def test_padding() -> None:
    assert names(masks.padding(history(falling, numbers={"padding": lambda step: 0.6}))) == ["padding"]
    assert not [*masks.padding(history(falling, numbers={"padding": lambda step: 0.4}))]


def electra(area: float, step: int = STEPS, **model: int) -> Evidence:
    """An ELECTRA whose discriminator has this held-out area from `step` on, and 0.7 before."""
    run = history(falling, falling, {"mask_rate": lambda step: 0.15, "replaced": lambda step: 0.13})
    rows = [{**row, "rtd_auc": area if row["step"] >= step else 0.7} if row["split"] == "held_out" else row for row in run.rows]
    shape = {"kind": "electra", "width": 64, "layers": 2, "generator_width": 32, "generator_layers": 2, **model}
    return changed(run, rows=rows, objective={"kind": "rtd", "rate": 0.15}, model=shape)


def test_a_generator_that_is_too_strong() -> None:
    assert not [*detection.generator(electra(0.7))]
    assert not [*detection.generator(electra(0.7, generator_width=64))]  # as the published ELECTRA-small
    (larger,) = detection.generator(electra(0.7, generator_width=128))
    assert "it has 4.0 times the discriminator's layers and widths" in larger.what
    (fell,) = detection.generator(electra(0.6, step=350))
    assert "fell by 0.10 from its best" in fell.what
    assert not [*detection.generator(electra(0.6, step=400))]  # one evaluation may be low
    good = dataclasses.replace(electra(0.7), rows=[{**row, "replaced": 0.02} for row in electra(0.7).rows])
    (right,) = detection.generator(good)
    assert "only 13% of the masked tokens are replaced" in right.what


def test_networks_that_a_pair_nests_are_compared_too() -> None:
    nested = {"kind": "pair", "generator": {"width": 128, "layers": 2}, "discriminator": {"width": 64, "layers": 2}}
    (found,) = detection.generator(changed(electra(0.7), model=nested))
    assert "4.0 times" in found.what


def test_a_discriminator_at_chance() -> None:
    known = reference(curves={**reference().curves, "rtd_auc": [0.5, 0.6, 0.7, 0.8]}, tokens_per_step=BATCH * LENGTH // 2, objective="rtd")
    (found,) = detection.discriminator(electra(0.5, step=0), known)
    assert "0.500: every token gets one logit" in found.what
    assert not [*detection.discriminator(electra(0.6, step=0), known)]
    later = dataclasses.replace(known, tokens_per_step=BATCH * LENGTH)
    assert not [*detection.discriminator(electra(0.5, step=0), later)]  # the reference took as long


def test_text_that_is_learned_by_heart() -> None:
    turns = lambda step: 5.0 - step / 200 if step <= 200 else 4.0 + (step - 200) / 200
    (found,) = repeats.overfitting(history(falling, turns, text=Text(COUNTS, tokens=8192)))
    assert "held-out mlm_loss was 4.00 at step 200 and is 5.00, in training 4.20, 100 times the text" in found.what
    assert not [*repeats.overfitting(history(falling, falling))]
    together = lambda step: turns(step) - 0.1
    assert not [*repeats.overfitting(history(together, turns))]  # both rise: that is not memory


def test_text_that_is_there_twice() -> None:
    assert names(repeats.duplicates(history(falling, text=Text(COUNTS, 1000, repeated=0.4)))) == ["data repeated"]
    for copied, advice in ((0.3, "--drop-duplicates exact, or near"), (0.1, "keep each line once")):
        (found,) = repeats.duplicates(history(falling, text=Text(COUNTS, 1000, repeated=0.4, copied=copied)))
        assert advice in found.fix
    assert names(repeats.duplicates(history(falling, text=Text(COUNTS, 1000, known=0.4)))) == ["held-out text"]
    assert not [*repeats.duplicates(history(falling, text=Text(COUNTS, 1000, repeated=0.1, known=0.1)))]


def test_held_out_numbers_that_are_missing_or_too_good() -> None:
    assert not [*repeats.held_out(history(falling))]  # 400 steps
    long = history(falling)
    long = dataclasses.replace(long, rows=[{**row, "step": 10 * row["step"]} for row in long.rows])
    assert names(repeats.held_out(changed(long, plan=(Phase(0, 8000, 32, 64, 0, 1e-3, WARMUP, 0, 8000),)))) == ["held-out text"]
    assert names(repeats.held_out(history(falling, lambda step: 0.8 * falling(step)))) == ["held-out text"]
    assert not [*repeats.held_out(history(falling, lambda step: 0.9 * falling(step)))]


def test_a_speed_that_fell() -> None:
    slower = {"tokens_per_second": lambda step: 1e6 if step < 250 else 4e5, "mfu": lambda step: 0.4}
    assert names(speed.throughput(history(falling, numbers=slower))) == ["speed"]
    assert not [*speed.throughput(history(falling, numbers={**slower, "mfu": lambda step: 0.0}))]  # a CPU
    assert not [*speed.throughput(history(falling, numbers={**slower, "tokens_per_second": lambda step: 1e6 - 800 * step}))]
