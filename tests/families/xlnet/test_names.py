"""The table of XLNet's names against lists written by hand, and where each number of a kernel goes."""

from pathlib import Path

import numpy as np
import pytest

from jaxenc import tree
from jaxenc.convert import hf, runs
from jaxenc.families.xlnet import google, names, transformers
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.names import XlnetFile
from jaxenc.formats import key_map
from jaxenc.formats.tensor import Tensor, unstacked
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests.convert import folders

CONFIG, WHERE = XlnetConfig(folders.VOCAB, 8, 2, 2, 12), Path("config.json")


def headers(wanted: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    return {name: Tensor(name, shape, np.dtype("float32"), lambda: None) for name, shape in wanted.items()}


def shapes(run: Run) -> dict[str, tuple[int, ...]]:
    return {path: leaf.shape for path, leaf in tree.leaves(parameters(objective_of(run, None))[0])}


@pytest.mark.parametrize("architecture", (*folders.XLNETS, "XLNetForMultipleChoice"))
def test_names_and_shapes_are_those_of_transformers(architecture: str) -> None:
    wanted = folders.shapes(architecture)
    found = transformers.read(folders.config(architecture), headers(wanted), WHERE)
    ours = shapes(runs.run_of(found))
    key_map.check_table(found.entries, ours)
    assert {entry.theirs: entry.transform.their_shape(ours[entry.ours]) for entry in found.entries} == wanted


def test_each_number_of_a_kernel_is_where_transformers_multiplies_with_it(tmp_path: Path) -> None:
    """The products of modeling_xlnet.py, einsum by einsum, with ours: `ibh,hnd->ibnd` of q, k, v and r, `ibnd,hnd->ibh` of o."""
    theirs = folders.tensors("XLNetModel")
    ours = hf.load(folders.write(tmp_path, theirs, folders.config("XLNetModel"))).params["encoder"]["layer_01"]
    random = np.random.default_rng(0)
    x, mixed = random.normal(size=(3, 5, 8)), random.normal(size=(3, 5, 2, 4))
    for letter, name in {"q": "query", "k": "key", "v": "value", "r": "relative"}.items():
        wanted = np.einsum("ibh,hnd->ibnd", x, theirs[f"layer.1.rel_attn.{letter}"])
        np.testing.assert_allclose((x @ np.asarray(ours["attention"][name]["kernel"])).reshape(wanted.shape), wanted, atol=1e-6)
    wanted = np.einsum("ibnd,hnd->ibh", mixed, theirs["layer.1.rel_attn.o"])
    np.testing.assert_allclose(mixed.reshape(3, 5, 8) @ np.asarray(ours["attention"]["output"]["kernel"]), wanted, atol=1e-6)
    np.testing.assert_allclose(x @ np.asarray(ours["feed_forward"]["up"]["kernel"]), x @ theirs["layer.1.ff.layer_1.weight"].T, atol=1e-6)
    for name, bias in {"content": "r_w_bias", "position": "r_r_bias", "segment": "r_s_bias"}.items():
        assert (np.asarray(ours["attention"][f"{name}_bias"]) == theirs[f"layer.1.rel_attn.{bias}"].reshape(-1)).all()
    assert (np.asarray(ours["attention"]["segment"]["table"]) == theirs["layer.1.rel_attn.seg_embed"].reshape(2, 8)).all()


def variables(heads: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the variables of zihangdai/xlnet (modeling.py) with those of `heads`."""
    base = "model/transformer/"
    out: dict[str, tuple[int, ...]] = {f"{base}r_{letter}_bias": (2, 2, 4) for letter in "wrs"}
    out |= {f"{base}seg_embed": (2, 2, 2, 4), f"{base}mask_emb/mask_emb": (1, 1, 8), f"{base}word_embedding/lookup_table": (131, 8)}
    for n in range(2):
        layer = f"{base}layer_{n}/"
        out |= {f"{layer}rel_attn/{letter}/kernel": (8, 2, 4) for letter in "qkvor"}
        out |= {f"{layer}{part}/LayerNorm/{leaf}": (8,) for part in ("rel_attn", "ff") for leaf in ("gamma", "beta")}
        out |= {f"{layer}ff/layer_1/kernel": (8, 12), f"{layer}ff/layer_1/bias": (12,)}
        out |= {f"{layer}ff/layer_2/kernel": (12, 8), f"{layer}ff/layer_2/bias": (8,)}
    return out | heads


TUNED = {
    "model/sequnece_summary/summary/kernel": (8, 8),
    "model/sequnece_summary/summary/bias": (8,),
    "model/classification_mnli/logit/kernel": (8, 3),
    "model/classification_mnli/logit/bias": (3,),
}


# function_builder.py, get_qa_outputs, whose scopes are beside the model's.
ANSWERS = {
    "start_logits/dense/kernel": (8, 1),
    "start_logits/dense/bias": (1,),
    "end_logits/dense_0/kernel": (16, 8),
    "end_logits/dense_0/bias": (8,),
    "end_logits/LayerNorm/gamma": (8,),
    "end_logits/LayerNorm/beta": (8,),
    "end_logits/dense_1/kernel": (8, 1),
    "end_logits/dense_1/bias": (1,),
    "answer_class/dense_0/kernel": (16, 8),
    "answer_class/dense_0/bias": (8,),
    "answer_class/dense_1/kernel": (8, 1),
}


@pytest.mark.parametrize("heads", [{}, {"model/lm_loss/bias": (131,)}, TUNED, ANSWERS])
def test_names_and_shapes_are_those_of_zihangdai(heads: dict[str, tuple[int, ...]]) -> None:
    """Encoder, pretraining, run_classifier.py and run_squad.py; each variable once, each layer's slice of those that are stacked."""
    wanted = headers(variables(heads))
    config = {"d_head": 4, "d_inner": 12, "d_model": 8, "ff_activation": "gelu", "n_head": 2, "n_layer": 2, "n_token": 131, "untie_r": True}
    found = google.read(config, wanted, WHERE)
    assert found.structure.model == CONFIG  # gelu is the tanh form there
    ours = shapes(runs.run_of(found))
    key_map.check_table(found.entries, ours)
    stacked = [f"model/transformer/{name}" for name in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")]
    held = {name: tensor.shape for name, tensor in unstacked(wanted, stacked).items()}
    assert {name: tensor.shape for name, tensor in found.tensors.items()} == held
    assert {entry.theirs: entry.transform.their_shape(ours[entry.ours]) for entry in found.entries} == held
    assert "model/transformer/r_w_bias[1]" in held and len(held) == len(wanted) + 4


def test_a_stacked_tensor_is_its_slices() -> None:
    """In its place among the others, each read by itself; one without a first axis has none, so that its parts are missing."""
    whole = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    one = Tensor("b", whole.shape, whole.dtype, whole.copy)
    other, flat = (Tensor(name, (), whole.dtype, lambda: None) for name in ("a", "c"))
    found = unstacked({"a": other, "b": one, "c": flat}, ("b", "c"))
    assert list(found) == ["a", "b[0]", "b[1]", "b[2]"] and found["a"] is other
    for i, name in enumerate(list(found)[1:]):
        assert found[name].name == name and found[name].shape == (2, 2) and (found[name].read() == whole[i]).all()


def test_a_head_that_a_file_does_not_have_is_a_mistake_of_ours() -> None:
    for layout, head in ((names.google_file(()), "tags"), (XlnetFile("transformer."), "mlm")):
        with pytest.raises(ValueError, match=f"no head {head}"):
            names.entries(CONFIG, (head,), layout)


def test_a_decoder_may_hold_the_table_again() -> None:
    table = names.entries(CONFIG, ("lm",), XlnetFile("transformer."))
    assert [entry.copies for entry in table if entry.copies] == [("lm_loss.weight",)]
    assert not [entry for entry in names.entries(CONFIG, ("lm",), names.google_file(())) if entry.copies]


def test_classes_are_as_many_as_the_tensors_have() -> None:
    assert names.classes_of(headers(folders.shapes("XLNetForTokenClassification")), "tags", XlnetFile("transformer.")) == folders.LABELS
    assert names.classes_of(headers(TUNED), "classifier", names.google_file(TUNED)) == 3
    assert names.classes_of({}, "classifier", XlnetFile("")) == 2
