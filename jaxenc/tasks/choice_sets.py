"""SWAG, RACE and CommonsenseQA: their columns and files, as distributed and as saved by `datasets` of Hugging Face."""

from collections.abc import Mapping
from types import MappingProxyType

from jaxenc.errors import UserError
from jaxenc.tasks.choice import Choice
from jaxenc.tasks.files import FilesConfig

# {name: (task, files)}. Texts as in utils_multiple_choice.py of huggingface/transformers.
SETS: Mapping[str, tuple[Choice, FilesConfig]] = MappingProxyType(
    {
        # Zellers et al. 2018. sent2 is the start of the sentence that an ending completes.
        "swag": (
            Choice(prompt=("sent1",), question="sent2", choices=("ending0", "ending1", "ending2", "ending3")),
            FilesConfig(train="train.csv|train", dev="val.csv|validation", test="test.csv|test|"),
        ),
        # Lai et al. 2017. As distributed, folders with a file for each article and its questions.
        "race": (
            Choice(
                prompt=("article",),
                question="question|questions",
                blank="_",
                choices=("options",),
                label="answer|answers",
                id="example_id|id",
            ),
            FilesConfig(train="train", dev="dev|validation", test="test|"),
        ),
        # Talmor et al. 2019, random split.
        "commonsense_qa": (
            Choice(
                prompt=("question.stem|question",),
                choices=("choices.text|question.choices",),
                keys="choices.label",
                label="answerKey",
                id="id",
            ),
            FilesConfig(
                train="train_rand_split.jsonl|train",
                dev="dev_rand_split.jsonl|validation",
                test="test_rand_split_no_answers.jsonl|test|",
            ),
        ),
    }
)


def task(name: str) -> tuple[Choice, FilesConfig]:
    """One of these tasks, and its files below a `data.path` that is still to be set. Raises UserError for another name."""
    if name not in SETS:
        raise UserError(f"{name} is not a known multiple-choice dataset", fix=f"use {', '.join(SETS)}")
    return SETS[name]
