"""What objectives let into their steps: the bound of every field that they read, written out."""

import pytest

from jaxenc.data import characters
from jaxenc.data.sources import DataConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.objectives.base import PhaseSetting
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig
from tests import tiny
from tests.objectives import contract, sentences, streams

# Of tiny.MODEL and tiny.PAIR: true rows of the token table, types, rows of the table of positions.
TEXT = {"tokens": 200, "types": 2, "positions": 64, "segments": 0}
# Without token types and with fewer positions than its teacher, tiny.MODEL.
STUDENT = DistilbertConfig(vocab_size=200, width=32, layers=1, heads=4, feed_forward=64, positions=60)
HEADS = HeadsConfig(("pooler", "classifier", "tags", "spans"), ("a", "b", "c"))
# {name: (objective, the bound of each field that it reads, 0 for none)}
OBJECTIVES = {
    "mlm": lambda: (tiny.objective(MlmConfig()), {**TEXT, "index": 0}),
    "mlm of words": lambda: (tiny.objective(MlmConfig(unit="words")), {**TEXT, "index": 0, "word_starts": 2}),
    "pair": lambda: (tiny.objective(PairConfig()), {**TEXT, "index": 0, "is_random": 2}),
    "rtd": lambda: (tiny.objective(RtdConfig(), tiny.PAIR), {**TEXT, "index": 0}),
    "uniform rtd": lambda: (tiny.objective(RtdConfig(generator="uniform"), tiny.PAIR), {**TEXT, "index": 0}),
    "replaced_mlm": lambda: (tiny.objective(ReplacedMlmConfig(), tiny.PAIR), {**TEXT, "index": 0}),
    "distillation": lambda: (tiny.objective(DistillationConfig(), STUDENT, teacher=tiny.MODEL), {**TEXT, "positions": 60, "index": 0}),
    "heads": lambda: (tiny.objective(HEADS), {**TEXT, "label": 3, "tags": 3, "start": 64, "end": 64}),
    "plm": lambda: (
        streams.objective(),
        {"tokens": 200, "types": 0, "segments": 0, "index": 0, "word_starts": 2, "direction": 2, "fresh": 2},
    ),
    "bilm": lambda: (
        sentences.objective(),
        {
            **{name: characters.SIZE for name in ("characters", "reverse_characters")},
            **{name: 200 for name in ("targets", "reverse_targets")},
            **{"segments": 0, "index": 0, "fresh": 2},
        },
    ),
    "features": lambda: (
        FeaturesConfig().build(sentences.MODEL, PhaseSetting(tiny.VOCABULARY, tiny.execution(), DataConfig())),
        {"characters": characters.SIZE, "segments": 0},
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_bound_is_right_and_kept_to_on_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contract.assert_reads(*OBJECTIVES[name](), monkeypatch)
