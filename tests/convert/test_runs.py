"""The run of a model that comes from elsewhere: its objective by its heads, its rows, and what people hear of it."""

import pytest

from jaxenc.convert import runs
from jaxenc.data.sources import DataConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.elmo.sizes import OPTIM
from jaxenc.families.foreign import Import, Structure
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.transformers import UNSTATED
from jaxenc.inference.network import objective_of
from jaxenc.objectives import OBJECTIVES
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run


@pytest.mark.parametrize(
    "model, heads, objective, rows, length",
    [
        (BertConfig(positions=96), ("mlm",), MlmConfig(), "text", 96),
        (BertConfig(positions=96), ("pooler", "mlm", "next_sentence"), PairConfig(), "pairs", 96),
        (BertConfig(positions=96), (), HeadsConfig(), "text", 96),
        (BertConfig(positions=96), ("pooler", "mlm"), HeadsConfig(("pooler", "mlm")), "text", 96),
        (BertConfig(positions=96), ("pooler", "next_sentence"), HeadsConfig(("pooler", "next_sentence")), "text", 96),
        (ElectraConfig(), ("mlm",), MlmConfig(), "text", 512),
        (ElectraConfig(), ("rtd",), HeadsConfig(("rtd",)), "text", 512),
        (ElectraConfig(), ("mlm", "rtd"), RtdConfig(), "text", 512),
        (XlnetConfig(), ("lm",), PlmConfig(), "streams", 512),
        (GptConfig(), ("next_token",), CausalConfig(), "text", 512),
        (GptConfig(), ("last_token", "next_token"), HeadsConfig(("last_token", "next_token")), "text", 512),
        (XlnetConfig(), (), HeadsConfig(), "text", 128),
        (ElmoConfig(), (), FeaturesConfig(), "sentences", 20),
    ],
)
def test_the_objective_is_the_one_that_trains_the_heads(
    model: ModelConfig, heads: tuple[str, ...], objective: ObjectiveConfig, rows: str, length: int
) -> None:
    """With its rows, as long as the model takes; everything else has its default."""
    run = runs.run_for(Structure(model, heads))
    assert run == Run(objective, model, run.data)
    assert (run.data.rows, run.data.length) == (rows, length)


def test_labels_and_the_poolers_activation_are_kept_and_found_again() -> None:
    structure = Structure(ElectraConfig(), ("pooler", "classifier"), ("a", "b"), "gelu_erf")
    run = runs.run_for(structure)
    assert run.objective == HeadsConfig(("pooler", "classifier"), ("a", "b"), "gelu_erf")
    assert runs.structure_of(run, {"embeddings": {}, "classifier": {}, "pooler": {}}) == structure


def test_no_two_objectives_are_found_by_the_same_heads() -> None:
    found = [frozenset(one.trains) for one in OBJECTIVES.values() if one.trains]
    assert len(set(found)) == len(found) >= 6


def test_people_hear_what_the_files_do_not_tell() -> None:
    """The model builds as it is, with rows of the published lengths."""
    found = Import(Structure(XlnetConfig(), ("lm",)), {}, (), unstated=UNSTATED, note="says nothing of its rows")
    run = runs.run_of(found)
    assert run.data == DataConfig(rows="streams", length=512, reuse=256) and objective_of(run, None).permutation.reuse == 256
    told = "data.length 512, data.reuse 256, objective.permutation 256, objective.memory 384, objective.predictions 85"
    assert runs.note(found, run) == f"says nothing of its rows: {told}; set your own to train on"
    assert runs.note(Import(found.structure, {}, ()), run) == ""


def test_the_optimizer_is_the_familys_where_it_names_one() -> None:
    adagrad = OptimConfig("adagrad", lr=0.2, warmup=0, schedule="constant", weight_decay=0.0, clip=10.0, decay_exclude=())
    assert runs.run_of(Import(Structure(ElmoConfig(), ()), {}, (), optim=OPTIM)).optim == adagrad
    assert runs.run_of(Import(Structure(ElmoConfig(), ()), {}, ())).optim == OptimConfig()
