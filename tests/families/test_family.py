"""The registry of families: what follows from one entry each."""

import dataclasses

import pytest

from jaxenc import families
from jaxenc.convert import hf
from jaxenc.errors import UserError
from jaxenc.families.bert import BERT
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.both_directions import BothDirections
from jaxenc.families.contract import Encodes
from jaxenc.families.elmo import ELMO
from jaxenc.families.family import Family, registry
from jaxenc.families.incremental import Incremental
from jaxenc.families.networks import NetworkPair
from jaxenc.families.two_stream import TwoStream
from tests.families.test_base import Recurrent
from tests.kinds import advised


def test_models_and_layouts_follow_from_the_entries() -> None:
    """A kind that a run directory may hold, its class, and which other projects it is read from."""
    found = {kind: cls.__name__ for kind, cls in families.MODELS.items()}
    assert found.items() >= {"bert": "BertConfig", "electra": "ElectraConfig", "xlnet": "XlnetConfig", "elmo": "ElmoConfig"}.items()
    named = lambda layout: {kind for kind, family in families.BUILT_IN.items() if getattr(family, layout)}
    assert named("transformers") & named("google") >= {"bert", "electra", "xlnet"} and named("allennlp") >= {"elmo"}
    assert hf.LAYOUTS.keys() >= {"bert", "roberta", "xlm-roberta", "camembert", "electra", "xlnet"}
    assert hf.LAYOUTS["camembert"] is BERT.transformers


@pytest.mark.parametrize(
    "capability, method",
    [
        (NetworkPair, "networks"),
        (TwoStream, "two_streams"),
        (BothDirections, "readers"),
        (Incremental, "empty_cache"),
        (Encodes, "encoder"),
    ],
)
def test_a_model_without_a_capability_is_told_the_kinds_that_have_it(capability: type, method: str) -> None:
    """Whatever kinds the registry has: they are found by the method."""
    with pytest.raises(UserError, match="^it needs one; .*, not recurrent$") as error:
        families.able(Recurrent(), capability, "it needs one")
    assert advised(error.value) == [kind for kind, cls in families.MODELS.items() if hasattr(cls(), method)]


def test_a_family_may_have_no_layout_of_others() -> None:
    class OtherConfig(BertConfig):
        kind = "other"

    assert registry((ELMO, Family(OtherConfig)))["other"] == Family(OtherConfig, None, None, None)


@pytest.mark.parametrize("field", ["config", "transformers"])
def test_two_families_of_one_name_are_a_mistake_of_ours(field: str) -> None:
    """One kind twice, or one model_type of transformers."""

    class OtherConfig(BertConfig):
        kind = "other"

    other = dataclasses.replace(BERT, transformers=None) if field == "config" else dataclasses.replace(BERT, config=OtherConfig)
    with pytest.raises(ValueError, match="two families are called bert"):
        registry((BERT, other))
