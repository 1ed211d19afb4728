"""The nano runs of the baseline: recipe, overrides, kind of text and the step each one stops at. Only `make.py` reads this; tests read
the committed config.json."""

import dataclasses

STEPS = 20  # that follow the stop
ALL = (
    "train.seed=7", "log.every=1", "log.examples=true", "log.tensorboard=false",
    "checkpoint.every=1000", "eval.every=0", "eval.batch=16", "eval.rows=32",
)  # fmt: skip
ONE_PHASE = (*ALL, "data.length=24", "train.batch=16", "optim.warmup=4")
ENCODER = ("model.width=32", "model.heads=4", "model.feed_forward=64", "model.dropout=0.1", "model.attention_dropout=0.1")
PAIR = (
    "model.layers=1", "model.positions=24", "model.embedding=24", "model.generator_width=16", "model.generator_layers=1",
    "model.generator_heads=2", "model.generator_feed_forward=32",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Recipe:
    """recipe, overrides: as `jaxenc pretrain` takes them. tokenizer, seed: of the text (`tests/train/conftest.py`).

    stop: the step after which the committed run directory was stopped; 0 for a run of which only the first step is recorded.
    """

    recipe: str
    overrides: tuple[str, ...]
    tokenizer: str = "wordpiece"
    seed: int = 1
    stop: int = 0


RECIPES = {
    # Stops in the second of two phases.
    "bert": Recipe(
        "bert/tiny",
        (
            *ALL, *ENCODER, "data.rows=pairs", "objective.kind=mlm_nsp", "objective.rate=0.3", "model.layers=2", "model.positions=24",
            "phases.steps=(6,26)", "phases.length=(16,24)", "phases.batch=(8,16)", "phases.lr=(4e-3,2e-3)", "phases.warmup=(2,4)",
        ),
        stop=12,
    ),
    "electra": Recipe("electra/tiny", (*ONE_PHASE, *ENCODER, *PAIR, "train.steps=29"), seed=2, stop=9),
    "xlnet": Recipe(
        "xlnet/tiny",
        (
            *ONE_PHASE, *ENCODER, "train.steps=27", "model.layers=1", "data.reuse=8", "objective.memory=12", "objective.predictions=6",
            "objective.permutation=8",
        ),
        tokenizer="unigram",
        seed=3,
        stop=7,
    ),
    "elmo": Recipe(
        "elmo/tiny",
        (
            *ONE_PHASE, "train.steps=31", "model.width=16", "model.cells=24", "model.character_width=4", "model.filter_widths=(1,2)",
            "model.filters=(8,8)", "model.dropout=0.1", "objective.negatives=20",
        ),
        tokenizer="characters",
        seed=4,
        stop=11,
    ),
    "roberta": Recipe("roberta/tiny", (*ONE_PHASE, *ENCODER, "train.steps=20", "model.layers=1", "model.positions=24")),
    "replaced_mlm": Recipe(
        "electra/tiny",
        (
            *ONE_PHASE, *ENCODER, *PAIR, "train.steps=20", "objective.kind=replaced_mlm", "objective.mask_share=0.85",
            "objective.with_replacement=true",
        ),
    ),
}  # fmt: skip
