"""The registry of families: what follows from one entry each."""

import dataclasses

import pytest

from jaxenc import families
from jaxenc.convert import hf
from jaxenc.families.bert import BERT
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.elmo import ELMO
from jaxenc.families.family import Family, registry


def test_models_and_layouts_follow_from_the_entries() -> None:
    """A kind that a run directory may hold, its class, and which other projects it is read from."""
    found = {kind: cls.__name__ for kind, cls in families.MODELS.items()}
    assert found.items() >= {"bert": "BertConfig", "electra": "ElectraConfig", "xlnet": "XlnetConfig", "elmo": "ElmoConfig"}.items()
    named = lambda layout: {kind for kind, family in families.BUILT_IN.items() if getattr(family, layout)}
    assert named("transformers") >= named("google") >= {"bert", "electra", "xlnet"} and named("allennlp") == {"elmo"}
    assert hf.LAYOUTS.keys() >= {"bert", "roberta", "xlm-roberta", "camembert", "electra", "xlnet"}
    assert hf.LAYOUTS["camembert"] is BERT.transformers


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
