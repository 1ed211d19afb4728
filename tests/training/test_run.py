"""What a Run checks of its parts together, and what a tokenizer changes in it."""

import dataclasses

import pytest

from jaxenc.data.sources import DataConfig
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.bert import sizes
from jaxenc.training.run import Run

ROBERTA = Run(model=sizes.roberta(2, 64))


def tokenizer(pad: int) -> Vocabulary:
    return Vocabulary(300, pad=pad, unk=4, cls=0, sep=2, mask=299, reserved=(), fingerprint="")


@pytest.mark.parametrize("pad", [1, 3])
def test_rows_of_511_and_512_fit_roberta_and_513_do_not(pad: int) -> None:
    """512 positions are usable, however many rows the table has before them. Nothing on a device would complain."""
    run = ROBERTA.with_vocabulary(tokenizer(pad))
    assert (run.model.vocab_size, run.model.first_position) == (300, pad + 1)
    for length in (511, 512):
        assert dataclasses.replace(run, data=DataConfig(length=length)).plan[0].length == length
    with pytest.raises(UserError, match="data.length is 513 and model.positions is 512; shorten the rows"):
        _ = dataclasses.replace(run, data=DataConfig(length=513)).plan


def test_a_tokenizer_changes_nothing_but_the_model() -> None:
    changed = ROBERTA.with_vocabulary(tokenizer(1))
    assert dataclasses.replace(changed, model=ROBERTA.model) == ROBERTA
