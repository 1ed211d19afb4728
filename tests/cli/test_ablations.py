"""What each ablation changes of its recipe, and nothing else."""

import pytest

from jaxenc import config
from jaxenc.cli import recipe as cli_config
from jaxenc.families.count import parameter_count
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run
from jaxenc.training.state import parameters
from tests.selection import thinned

# Heads on 256: dense, norm and output bias of a softmax over the vocabulary, and the two layers of the replaced-token head.
SOFTMAX, DETECTION = 256 * 128 + 128 + 2 * 128 + 30_522, 256 * 256 + 256 + 256 + 1
# google-research/electra's pair, and its discriminator's body.
PAIR, BODY = 14_196_219, 13_483_008
REPLACED = {"objective.kind": "replaced_mlm", "objective.replaced_mlm_coef": 1.0}
TWO_STAGE = {"model.generator_width": 256, "model.generator_heads": 4, "model.generator_feed_forward": 1024, "train.steps": 500_000}
FREEZE = {"optim.freeze": ("generator/.*", "mlm/.*"), "objective.mlm_coef": 0.0, "model.sharing": "none"}


def fields(run: Run) -> dict:
    return dict(config.flatten(config.to_dict(run)))


def count(run: Run) -> int:
    objective = objective_of(run, None)
    return parameter_count(parameters(objective)[0], run.model.vocab_size, objective.vocabulary)


@pytest.mark.parametrize(
    "name, changed, total",
    thinned(
        [
            ("electra_15", {"objective.detects": "chosen"}, PAIR),
            ("uniform_generator", {"objective.generator": "uniform"}, BODY + DETECTION),
            ("replace_mlm", {**REPLACED, "objective.predicts": "chosen"}, PAIR - DETECTION + SOFTMAX),
            ("all_tokens_mlm", {**REPLACED, "objective.predicts": "all"}, PAIR + SOFTMAX),
            ("two_stage_generator", {**TWO_STAGE, "objective.kind": "mlm"}, BODY + SOFTMAX),
            ("two_stage_discriminator", {**TWO_STAGE, **FREEZE}, 2 * BODY + SOFTMAX + DETECTION),
        ],
        "replace_mlm",
        "two_stage_discriminator",
    ),
)
def test_an_ablation_changes_what_it_is_called_after(name: str, changed: dict, total: int) -> None:
    """A field that only one of the two objectives has is no change; the parameters are counted by hand from the published ones."""
    small, run = (fields(cli_config.resolve(recipe, [])) for recipe in ("electra/small", f"ablations/{name}"))
    assert {field: value for field, value in run.items() if small.get(field) != value} == changed
    assert count(cli_config.resolve(f"ablations/{name}", [])) == total


def test_static_masks_are_ten_and_the_other_arm_is_one_override_away() -> None:
    static, dynamic = (fields(cli_config.resolve("ablations/roberta_static", more)) for more in ([], ["--config.train.dupe_factor=0"]))
    assert {field: value for field, value in static.items() if dynamic[field] != value} == {"train.dupe_factor": 10}


def test_left_to_right_is_bert_small_with_another_mask_and_loss() -> None:
    """The fields of masking, which only the loss of the other arm has, are no change; the tied softmax has no parameters."""
    small, run = (fields(cli_config.resolve(recipe, [])) for recipe in ("bert/small", "ablations/left_to_right"))
    assert {field: value for field, value in run.items() if small.get(field) != value} == {
        "model.attention": "causal",
        "objective.kind": "causal",
    }
    assert small.keys() - run.keys() == {field for field in small if field.startswith("objective.")} - {"objective.kind"}
    head = 512 * 512 + 512 + 2 * 512 + 30_522
    assert count(cli_config.resolve("bert/small", [])) - count(cli_config.resolve("ablations/left_to_right", [])) == head
