"""Areas under the curve, of scores and of what the identity of a token alone says, against all pairs of tokens."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import metrics as metric_sums
from jaxenc import rng
from jaxenc.objectives import detection
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from tests import tiny

VOCAB = 12


def tokens(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """(what is seen, the example, labels) of 6 rows of 40 places; high ids are replacements more often, id 3 never and id 11 always."""
    random = np.random.default_rng(seed)
    seen = random.integers(0, VOCAB - 1, (6, 40)).astype(np.int32)
    labels = random.random(seen.shape) < seen / 30
    labels[seen == 3] = False
    seen[0, :5], labels[0, :5] = 11, True
    original = np.where(labels, (seen + random.integers(1, VOCAB, seen.shape)) % VOCAB, seen).astype(np.int32)
    segments = (np.arange(40)[None] < np.array([40, 40, 17, 5, 1, 0])[:, None]).astype(np.int32)
    return seen, {"original": original, "segments": segments}, labels


def pairs(scores: np.ndarray, labels: np.ndarray) -> float:
    """The share of (replaced, original) pairs whose replaced token scores higher, a tie counting half."""
    on, off = scores[labels], scores[~labels]
    return float(np.mean((on[:, None] > off) + 0.5 * (on[:, None] == off)))


def test_area_under_the_curve() -> None:
    """Against all pairs of scores: <= 1e-3, with scores past both edges. A perfect, a blind and a one-sided detector too."""
    random = np.random.default_rng(0)
    labels = (random.random((8, 100)) < 0.15).astype(np.int32)
    scores = random.normal(labels * 1.5 - 1, 1.2, labels.shape).astype(np.float32)
    scores[0, :5], real = [-40, 40, 1e9, -1e9, 16.0], (random.random(labels.shape) < 0.9).astype(np.int32)
    histogram = detection.metrics(jnp.asarray(scores), labels, real)["rtd_scores"][0]
    assert histogram.sum() == real.sum() and histogram[1].sum() == (labels * real).sum()
    exact = pairs(scores[real > 0], labels[real > 0] > 0)
    assert abs(detection.area(histogram) - exact) <= 1e-3
    counts = ([[5, 0], [0, 3]], [[5, 5], [3, 3]], [[0, 5], [3, 0]], [[5, 5], [0, 0]])
    assert [detection.area(np.array(c)) for c in counts] == [1, 0.5, 0, 0]


def test_the_area_by_identity_is_that_of_all_pairs() -> None:
    """Summed over two batches, <= 1e-12; and 200 other scores of the id, 100 near it and 100 anyhow, are nowhere above it."""
    total, ids, labels = {}, [], []
    for seed in (0, 1):
        seen, example, label = tokens(seed)
        real = example["segments"] > 0
        given = seen, np.int32(seen != example["original"]), real
        sums = jax.device_get(jax.jit(lambda *given: detection.identities(*given, VOCAB))(*given))
        total = metric_sums.add(total, sums)
        ids, labels = [*ids, *seen[real]], [*labels, *label[real]]
    ids, labels = np.array(ids), np.array(labels)
    share = np.array([labels[ids == one].mean() if (ids == one).any() else 0 for one in range(VOCAB)])
    got = detection.areas(total)
    assert set(got) == {"rtd_auc_identity"} and abs(got["rtd_auc_identity"] - pairs(share[ids], labels)) <= 1e-12
    assert 0.6 < got["rtd_auc_identity"] < 0.9 and len(ids) == total["rtd_ids"][1] == 206
    random = np.random.default_rng(2)
    others = [share + random.normal(0, 0.05, VOCAB) for _ in range(100)] + [random.random(VOCAB) for _ in range(100)]
    assert max(pairs(score[ids], labels) for score in others) <= got["rtd_auc_identity"]


def test_ids_that_tell_nothing_and_everything() -> None:
    """1 of 3 is 2 of 6: half of the pairs. Ids that tell all, nothing at all, no token, no replaced token."""
    counts = ([[2, 4], [1, 2]], [[5, 0], [0, 3]], [[4, 4, 0], [1, 1, 0]], [[0, 0], [0, 0]], [[5, 1], [0, 0]])
    assert [detection.identity_area(np.array(c)) for c in counts] == [0.5, 1, 0.5, 0, 0]


def test_where_every_token_or_none_was_replaced_there_is_no_area() -> None:
    """A number would read as a score."""
    sums = lambda counts: {"rtd_scores": (np.array(counts), 8.0), "rtd_ids": (np.array(counts), 8.0)}
    assert detection.areas(sums([[5, 3], [0, 0]])) == detection.areas(sums([[0, 0], [5, 3]])) == {}
    assert set(detection.areas(sums([[5, 0], [0, 3]]))) == {"rtd_auc", "rtd_auc_identity"}


def test_only_an_evaluation_counts_ids() -> None:
    """By hand on the tiny pair's own samples; no array is among the numbers that a run writes down."""
    model = dataclasses.replace(tiny.PAIR, layers=1)
    objective, lengths = tiny.objective(RtdConfig(rate=0.4), model, 16), (16, 9, 3, 0)
    rows, keys = tiny.reads(tiny.batch(lengths, 16), objective), rng.training(0, jnp.int32(4), 4)
    params = tiny.drawn(Run(objective=RtdConfig(), model=model))

    @jax.jit
    def run(params: dict) -> tuple:
        example = jax.vmap(objective.corrupt, in_axes=(0, 0, None))(keys.per_row("corrupt", "mask"), rows, keys.step)
        fake = objective.generator.sampled(objective.generator.logits(params, example, None), example, keys)
        return fake, *(objective.terms(params, {}, example, keys, train)[1] for train in (True, False))

    fake, trained, evaluated = jax.device_get(run(params))
    want = np.zeros((2, model.vocab_size))
    for row, at in np.argwhere(rows["segments"]):
        want[int(fake[row, at] != rows["tokens"][row, at]), fake[row, at]] += 1
    assert want[1].sum() > 5 and evaluated.keys() - trained.keys() == {"rtd_ids"}
    np.testing.assert_array_equal(evaluated["rtd_ids"][0], want)
    summary = objective.summary(evaluated)
    assert summary.keys() - objective.summary(trained).keys() == {"rtd_auc_identity"} and objective.summary({}) == {}
    assert all(type(value) is float for value in summary.values())
