"""The step that `jaxenc bench step --peer` times is transformers' own, whichever loss computes it."""

import dataclasses
import io
import json

import pytest
import torch

from jaxenc.bench import peer_step
from jaxenc.cli import recipe
from jaxenc.training.run import to_json
from tests.selection import thinned

SIZES = {"rows": 3, "length": 20, "predictions": 3, "steps": 2}
WORK = {"gathered": False, "causal": False, "special": [0, 1, 2, 3, 4], "precision": "float32", **SIZES}
SMALL = ("width=16", "layers=1", "heads=2", "feed_forward=64", "vocab_size=1100")


def _work(config: str, **fields: object) -> dict:
    sizes = [f"--config.model.{size}" for size in SMALL]
    return {**WORK, "configs": peer_step.configs(recipe.resolve(config, sizes)), **fields}


@pytest.mark.parametrize("config", thinned(["bert/tiny", "roberta/tiny", "bert/base"], "roberta/tiny"))
def test_the_gathered_loss_is_the_loss_of_transformers(config: str) -> None:
    """In evaluation mode, on the same weights and rows, to 1e-6; bert/base has pairs too."""
    work = _work(config)
    whole = peer_step.module(work).eval()
    inputs, at = peer_step.rows(work, whole, "cpu")
    assert at.shape == (3, 3) and (torch.gather(inputs["labels"], 1, at) >= 0).all() and int((inputs["labels"] >= 0).sum()) == 9
    assert ("next_sentence_label" in inputs) == (config == "bert/base")
    with torch.no_grad():
        losses = [float(one.eval()(inputs, at)) for one in (whole, peer_step.GatheredLoss(whole.model))]
    assert losses[0] > 1 and losses[1] == pytest.approx(losses[0], rel=1e-6)


@pytest.mark.parametrize(
    "config, causal", thinned([("gpt/tiny", True), ("xlnet/tiny", False), ("electra/tiny", False), ("albert/tiny", False)], "gpt/tiny")
)
def test_every_family_of_transformers_trains(config: str, causal: bool) -> None:
    work = _work(config, causal=causal)
    model = peer_step.module(work)
    inputs, at = peer_step.rows(work, model, "cpu")
    before = [value.detach().clone() for value in model.parameters()]
    model(inputs, at).backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    changed = [bool((old != new).any()) for old, new in zip(before, model.parameters(), strict=True)]
    assert sum(changed) > len(changed) / 2


def test_a_discriminator_learns_only_from_what_the_generator_replaced() -> None:
    """With a generator that always answers the true token, no token is wrong: the discriminator's loss is that of zeros everywhere."""
    work = _work("electra/tiny")
    model = peer_step.module(work).eval()
    inputs, at = peer_step.rows(work, model, "cpu")
    answers = torch.where(inputs["labels"] >= 0, inputs["labels"], inputs["input_ids"])
    certain = torch.nn.functional.one_hot(answers, 1100) * 1e4

    class Certain(torch.nn.Module):
        def forward(self, **inputs: torch.Tensor) -> object:
            return dataclasses.make_dataclass("Found", ["loss", "logits"])(torch.zeros(()), certain)

    model.generator = Certain()
    with torch.no_grad():
        alone = model.discriminator(input_ids=answers, labels=torch.zeros(answers.shape)).loss
        assert float(model(inputs, at)) == pytest.approx(peer_step.DETECTION * float(alone), rel=1e-6)


@pytest.mark.parametrize("config, causal", [("gpt/tiny", True), ("xlnet/tiny", False), ("electra/tiny", False)])
def test_what_has_no_masked_head_is_refused(config: str, causal: bool) -> None:
    with pytest.raises(SystemExit, match="use --peer hf"):
        peer_step.module(_work(config, causal=causal, gathered=True))


@pytest.mark.parametrize("config, count", [("bert/tiny", 10), ("bert/base", 20), ("roberta/tiny", 5), ("electra/tiny", 5), ("gpt/tiny", 0)])
def test_the_peer_predicts_as_many_tokens_as_the_recipe(config: str, count: int) -> None:
    """bert/tiny masks 0.3 of 32 tokens, bert/base at most 20 of 128 in its first phase."""
    assert peer_step.predictions(recipe.resolve(config, [])) == count


def test_groups_of_queued_steps_are_waited_for_together() -> None:
    """Ten steps: three to warm up, then five groups of two, each followed by one wait."""
    calls = []
    peer_step.timed(lambda: calls.append("step"), 10, lambda: calls.append("wait"))
    assert "".join(call[0] for call in calls) == "sssw" + 5 * "ssw"


@pytest.mark.full
def test_the_work_is_that_of_the_first_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what transformers does not have ends the process with one line."""
    asked = {"gathered": False, "special": [0], "steps": 1}
    run = recipe.resolve("bert/base", ["--config.train.batch=8", "--config.data.length=64"])
    work = peer_step.work_of({**asked, "run": json.loads(to_json(run))})
    assert (work["rows"], work["length"], work["causal"], work["precision"], work["steps"]) == (8, 64, False, "bfloat16", 1)
    assert work["predictions"] == 10
    assert work["configs"][""]["hidden_dropout_prob"] == 0.1 and work["configs"][""]["num_hidden_layers"] == 12
    elmo = json.dumps({**asked, "run": json.loads(to_json(recipe.resolve("elmo/tiny", [])))})
    monkeypatch.setattr("sys.stdin", io.StringIO(elmo))
    with pytest.raises(SystemExit, match="transformers has no class for a model of kind elmo"):
        peer_step.main()
