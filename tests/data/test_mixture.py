"""Mixtures: shares and quotas, which rows an epoch holds, and what is refused."""

import collections
import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from jaxenc.data import mixture as folders
from jaxenc.data.build import build
from jaxenc.data.frames import CLS_FIRST
from jaxenc.data.pipeline import Order, Pass, open_batches
from jaxenc.data.random import feistel
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.sources.mixture import Mixture, mixed, once, quotas, shares
from jaxenc.data.tokenizers import wordpiece
from jaxenc.errors import UserError
from tests.data.test_pipeline import Numbers

SIZES = (10, 3, 41)


def numbers(sizes=SIZES):
    """Parts whose rows hold 1000 · part + row."""

    @dataclasses.dataclass(frozen=True)
    class Part(Numbers):
        base: int = 0

        def rows(self, epoch, indices):
            return super().rows(epoch, indices) | {"tokens": np.asarray(indices, np.int32)[:, None] + self.base}

    return tuple(Part(size, 1000 * p) for p, size in enumerate(sizes))


@pytest.mark.parametrize("weights, exponent", [((), 1.0), ((), 0.7), ((), 0.0), ((3.0, 1.0, 2.0), 0.5)])
def test_shares_follow_weights_or_smoothed_sizes(weights, exponent):
    sizes = (9_000_000, 1_000_000, 10_000)
    raw = weights or [size**exponent for size in sizes]
    assert np.allclose(shares(sizes, weights, exponent), np.array(raw) / sum(raw), rtol=1e-12)


@pytest.mark.parametrize(
    "weights, exponent, expected",
    [((1e308, 1e308), 1.0, (0.5, 0.5)), ((5e-324, 5e-324), 1.0, (0.5, 0.5)), ((), 1000.0, (1.0, 0.0)), ((), 1e-300, (0.5, 0.5))],
)
def test_shares_of_extreme_numbers_do_not_overflow(weights, exponent, expected):
    with np.errstate(over="raise", invalid="raise"):
        assert shares((9_000_000, 1_000_000), weights, exponent).tolist() == list(expected)


def test_quotas_are_those_of_the_largest_remainder():
    """Against exact fractions, on two hundred draws."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts, rows = rng.integers(1, 8), int(rng.integers(1, 5000))
        sizes = [int(n) for n in rng.integers(1, 10**6, parts)]
        exact = [Fraction(size * rows, sum(sizes)) for size in sizes]
        left = rows - sum(int(value) for value in exact)
        more = sorted(range(parts), key=lambda p: (-(exact[p] - int(exact[p])), p))[:left]
        assert quotas(np.array(sizes) / sum(sizes), rows) == tuple(int(value) + (p in more) for p, value in enumerate(exact))


def walked(source, epochs):
    """{part: its rows in the order that the mixture draws them}."""
    out = collections.defaultdict(list)
    for epoch in range(epochs):
        for value in source.rows(epoch, np.arange(len(source)))["tokens"][:, 0].tolist():
            out[value // 1000].append(value % 1000)
    return out


@pytest.mark.parametrize("wanted", [(27, 13, 14), (1, 52, 1), (50, 3, 1)])
def test_every_part_is_read_evenly_epoch_after_epoch_in_its_own_order(wanted):
    """Draw d of part p is the row at place d mod n of its own epoch d div n, by an independent loop; quotas above and below sizes."""
    source = Mixture(numbers(), wanted, seed=5)
    found = walked(source, 12)
    for p, (size, quota) in enumerate(zip(SIZES, wanted, strict=True)):
        orders = [feistel(size, 5, e, p + 1)(np.arange(size)).tolist() for e in range(12 * quota // size + 1)]
        assert found[p] == [row for order in orders for row in order][: 12 * quota]
        counts = collections.Counter(found[p])
        assert max(counts.values()) - min(counts[row] for row in range(size)) <= 1


def test_no_two_parts_of_one_size_are_read_in_one_order():
    found = walked(Mixture(numbers((50, 50)), (50, 50), 0), 1)
    assert found[0] != found[1] and sorted(found[0]) == sorted(found[1])


def test_an_epoch_of_a_run_holds_the_quotas_exactly():
    source = Mixture(numbers(), (27, 13, 14), seed=1)
    order = Order(source, 8, seed=1)
    seen = [value for step in range(2 * len(order)) for value in order.batch_at(step)["tokens"][:, 0].tolist()]
    for epoch in range(2):
        parts = collections.Counter(value // 1000 for value in seen[54 * epoch : 54 * (epoch + 1)])
        assert parts == {0: 27, 1: 13, 2: 14}
    # Parts are mixed within the epoch: the first half of it holds the largest part as often as chance has it, within four sigma.
    assert abs(sum(value < 1000 for value in seen[:27]) - 13.5) < 4 * np.sqrt(27 / 4)


def test_index_and_epoch_name_the_row_of_the_data():
    source = Mixture(numbers(), (27, 13, 14), seed=1)
    names = {}
    for epoch in range(30):
        batch = source.rows(epoch, np.arange(len(source)))
        for index, value in zip(batch["index"].tolist(), batch["tokens"][:, 0].tolist(), strict=True):
            assert index == value % 1000 + (0, 10, 13)[value // 1000]
            names.setdefault(value, index)
    assert sorted(names.values()) == list(range(54))
    assert source.rows(3, np.array([0]))["epoch"] == 3 * 27 // 10


def test_one_part_has_the_rows_of_that_part():
    source = mixed(numbers((41,)), ["x"], np.ones(1), 3)
    for epoch in range(3):
        batch = source.rows(epoch, np.arange(41))
        assert sorted(batch["tokens"][:, 0].tolist()) == list(range(41)) and set(batch["epoch"].tolist()) == {epoch}


def test_an_evaluation_shows_every_row_of_every_part_once_and_its_first_rows_are_of_all():
    source = once(numbers((400, 100)))

    def rows(limit):
        passed = Pass(source, 7, limit)
        batches = [passed.batch_at(step) for step in range(len(passed))]
        return [v for b in batches for v, s in zip(b["tokens"][:, 0], b["segments"][:, 0], strict=True) if s]

    assert sorted(rows(0)) == [*range(400), *range(1000, 1100)] and rows(60) == rows(0)[:60]
    assert abs(sum(value >= 1000 for value in rows(100)) - 20) < 4 * np.sqrt(100 * 0.2 * 0.8)


@pytest.fixture(scope="module")
def parts(tokenizer, write_documents, tmp_path_factory):
    """Two folders of one tokenizer, the second one smaller."""
    folder = tmp_path_factory.mktemp("parts")
    for name, documents, seed in (("large", 120, 1), ("small", 40, 2)):
        build([str(write_documents(folder / f"{name}.txt", documents, seed))], tokenizer, folder / name, held_out=0.2)
    return str(folder / "large"), str(folder / "small")


@pytest.mark.parametrize("rows", ["text", "packed", "pairs", "doc_sentences"])
def test_rows_of_folders_are_those_of_each_folder(parts, rows):
    """Also when a run resumes: any batch is made without those before it."""
    config = DataConfig(mixture=parts, length=24, rows=rows, exponent=0.5)
    alone = [open_source(DataConfig(path=folder, length=24, rows=rows), "train", 3, False) for folder in parts]
    batches = open_batches(config, "train", 16, 3, 0)
    tokens = [part.shards.manifest.splits["train"].tokens for part in alone]
    assert batches.source.quotas == quotas(shares(tokens, (), 0.5), sum(map(len, alone)))
    whole = [batches.batch_at(step) for step in range(2 * len(batches))]
    for batch in whole:
        for i, (index, epoch) in enumerate(zip(batch["index"].tolist(), batch["epoch"].tolist(), strict=True)):
            if i % 5:
                continue
            part = int(index >= len(alone[0]))
            expected = alone[part].rows(epoch, np.array([index - part * len(alone[0])]))
            assert all(np.array_equal(batch[name][i], expected[name][0]) for name in set(batch) - {"index"})
    late = open_batches(config, "train", 16, 3, 0).batch_at(len(batches) + 1)
    assert all(np.array_equal(late[name], whole[len(batches) + 1][name]) for name in late)


def test_the_checkpoint_keeps_the_facts_of_every_part(parts):
    config = DataConfig(mixture=parts)
    files = folders.checkpoint_files(config, CLS_FIRST)
    facts = json.loads(files["manifest.json"])
    wanted = folders.manifests(config)
    assert [part["fingerprint"] for part in facts["parts"]] == [one.fingerprint for one in wanted]
    assert facts["tokenizer"]["fingerprint"] == wanted[0].tokenizer.fingerprint and any(name.startswith("tokenizer/") for name in files)
    of = lambda **given: folders.checkpoint_files(dataclasses.replace(config, **given), CLS_FIRST)
    change = lambda **given: json.loads(of(**given)["manifest.json"])["fingerprint"]
    prints = [
        facts["fingerprint"],
        change(exponent=0.7),
        change(weights=(1.0, 2.0)),
        change(mixture=parts[::-1]),
        change(mixture=parts[:1]),
    ]
    assert len(set(prints)) == 5 and change(weights=(1.0, 2.0), exponent=0.7) == prints[2]


def test_an_evaluation_leaves_out_a_part_without_held_out_documents(parts, tokenizer, write_documents, tmp_path):
    build([str(write_documents(tmp_path / "a.txt", 9))], tokenizer, tmp_path / "bare", held_out=0.0)
    with_bare = open_source(DataConfig(mixture=(*parts, str(tmp_path / "bare")), length=24), "held_out", 0, True)
    assert len(with_bare) == len(open_source(DataConfig(mixture=parts, length=24), "held_out", 0, True))
    with pytest.raises(UserError, match="bare: the split held_out has no documents"):
        open_source(DataConfig(mixture=(str(tmp_path / "bare"),), length=24), "held_out", 0, True)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"path": "x", "mixture": ("a", "b")}, "data.path and data.mixture are both set"),
        ({"mixture": ("a", "b", "a")}, "data.mixture names a twice"),
        ({"mixture": ("a/b", "./a/b/")}, "data.mixture names ./a/b/ twice"),
        ({"mixture": ("a", "b"), "weights": (math.inf, 1.0)}, "data.weights is .*finite"),
        ({"mixture": ("a", "b"), "weights": (math.nan, 1.0)}, "data.weights is .*at least 0"),
        ({"mixture": ("a", "b"), "exponent": math.inf}, "data.exponent is inf; it takes finite numbers"),
        ({"mixture": ("a", "b"), "exponent": math.nan}, "data.exponent is nan; it is at least 0"),
        ({"mixture": ("a", "b"), "weights": (1.0,)}, "data.weights has 1 numbers and data.mixture 2 folders"),
        ({"mixture": ("a", "b"), "weights": (1.0, -1.0)}, "data.weights is .*at least 0"),
        ({"mixture": ("a", "b"), "weights": (0.0, 0.0)}, "it takes positive numbers"),
        ({"mixture": ("a", "b"), "exponent": -1.0}, "data.exponent is -1.0; it is at least 0"),
        ({"mixture": ("a", "b"), "rows": "streams", "reuse": 8}, "data.rows=streams follows one text"),
        ({"mixture": ("/no/such/a", "b")}, "/no/such/a.*made by `jaxenc data`"),
    ],
)
def test_what_cannot_be_mixed_is_said(given, said):
    with pytest.raises(UserError, match=said):
        open_source(DataConfig(**given), "train", 0, False)


def test_parts_of_other_tokenizers_and_of_no_share_are_refused(parts, corpus, tmp_path):
    wordpiece.train(corpus.read_text().split("\n"), 61).save(tmp_path / "other")
    build([str(corpus)], tmp_path / "other", tmp_path / "b", held_out=0.0)
    for reads in (folders.manifests, lambda config: open_source(config, "train", 0, False)):
        with pytest.raises(UserError, match="large and .*/b were made with different tokenizers"):
            reads(DataConfig(mixture=(parts[0], str(tmp_path / "b"))))
    with pytest.raises(UserError, match="small has a share of 1e-09, so no row in"):
        open_source(DataConfig(mixture=parts, length=24, weights=(1.0, 1e-9)), "train", 0, False)
