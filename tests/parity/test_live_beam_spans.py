"""The head beam_spans against transformers' XLNetForQuestionAnswering: its search, and the published loss with all gradients.

Collected where torch and transformers are installed, as test_live.py.
"""

import copy
from pathlib import Path

import jax
import numpy as np
import torch
import transformers

from jaxenc import rng
from jaxenc.convert import hf
from tests import tiny
from tests.heads.test_span_search import assert_close
from tests.parity import ours, peer
from tests.parity.cases import FAMILIES, VOCAB
from tests.parity.family import Case

NAME = "beam_spans"
CASE = Case(FAMILIES["XLNet"], "ForQuestionAnswering", ("start_positions", "end_positions"))
# Tokens of each row, the context from its first place on, the labels: padded on the right, CLS the last token.
TOKENS, CONTEXT = np.array([11, 9, 8]), np.array([7, 5, 6])
START, END, ANSWERABLE = np.array([2, 8, 0]), np.array([4, 8, 5]), np.array([1, 0, 1])


def rows() -> dict[str, np.ndarray]:
    places = np.arange(11)[None]
    words = np.random.default_rng(2).integers(5, VOCAB, (3, 11))
    real = (places < TOKENS[:, None]).astype(np.int32)
    types = np.where(places == TOKENS[:, None] - 1, 2, (places > CONTEXT[:, None]) * real)
    fields = {"tokens": words * real, "types": types, "segments": real, "positions": places * real, "context": places < CONTEXT[:, None]}
    labels = {"start": START, "end": END, "answerable": ANSWERABLE}
    return {name: value.astype(np.int32) for name, value in {**fields, **labels}.items()}


def arguments(given: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    allowed = given["context"] + (np.arange(11) == TOKENS[:, None] - 1)
    arrays = {"input_ids": given["tokens"], "attention_mask": given["segments"], "token_type_ids": given["types"]}
    out = {name: torch.tensor(value.astype(np.int64)) for name, value in arrays.items()}
    return {**out, "p_mask": torch.tensor(1.0 - allowed), "cls_index": torch.tensor(TOKENS - 1)}


def published_loss(model: transformers.XLNetForQuestionAnswering, given: dict[str, torch.Tensor]) -> torch.Tensor:
    """Of its layers what zihangdai/xlnet adds up. Its own loss has the labelled start's state in the place of the mean over starts."""
    hidden = model.transformer(**{name: given[name] for name in ("input_ids", "attention_mask", "token_type_ids")})[0]
    first = model.start_logits(hidden, p_mask=given["p_mask"])
    last = model.end_logits(hidden, start_positions=torch.tensor(START), p_mask=given["p_mask"])
    mean = torch.einsum("blh,bl->bh", hidden, torch.softmax(first, dim=-1))
    none = model.answer_class(hidden, start_states=mean, cls_index=given["cls_index"])
    both = torch.nn.functional.cross_entropy(first, torch.tensor(START)) + torch.nn.functional.cross_entropy(last, torch.tensor(END))
    return both / 2 + torch.nn.functional.binary_cross_entropy_with_logits(none, torch.tensor(1.0 - ANSWERABLE)) / 2


def test_the_search_and_the_loss_with_its_gradients(tmp_path: Path) -> None:
    """In and out again bitwise; probabilities, places and the logit of no answer; the loss and all gradients (<= 1e-5)."""
    theirs = peer.build(CASE, "gelu", seed=3)
    theirs.save_pretrained(tmp_path / "theirs")
    model, given = hf.load(tmp_path / "theirs"), rows()
    assert hf.save(tmp_path / "out", model) == {tmp_path / "out": "XLNetForQuestionAnswering"}
    tiny.assert_bitwise(hf.load(tmp_path / "out").params, model.params)

    doubled = copy.deepcopy(theirs).double()
    with torch.no_grad():
        wanted = {name: value.numpy() for name, value in doubled(**arguments(given)).items() if name not in ("mems", "hidden_states")}
    keys = rng.evaluation(0, np.arange(3, dtype=np.uint32))
    found = jax.jit(lambda params: model.objective.predict(params, given, keys))(model.params)
    assert (found[f"{NAME}_start"] == wanted["start_top_index"]).all()
    np.testing.assert_allclose(np.exp(found[f"{NAME}_start_score"]), wanted["start_top_log_probs"], rtol=0, atol=1e-5)
    ends, probabilities = (wanted[f"end_top_{part}"].reshape(3, 5, 5).swapaxes(1, 2) for part in ("index", "log_probs"))
    np.testing.assert_allclose(np.exp(found[f"{NAME}_end_score"]), probabilities, rtol=0, atol=1e-5)
    assert (found[f"{NAME}_end"] == ends).all()
    np.testing.assert_allclose(found[f"{NAME}_no_answer"], wanted["cls_logits"], rtol=1e-5, atol=1e-5)

    loss, gradients = ours.slopes(model, given)
    target = published_loss(doubled, arguments(given))
    target.backward()
    assert abs(float(loss) - target.item()) <= 1e-5
    slopes = {name: (torch.zeros_like(p) if p.grad is None else p.grad).numpy() for name, p in doubled.named_parameters()}
    assert_close(gradients, ours.in_our_layout(model, slopes), NAME)
