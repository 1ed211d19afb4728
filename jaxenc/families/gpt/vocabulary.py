"""The published vocabulary of GPT."""

from jaxenc.data.vocabulary import Vocabulary


def published_gpt(size: int) -> Vocabulary:
    """The layout of GPT's vocabulary at `size` ids: <unk> 0, then text (encoder_bpe_40000.json of openai/finetune-transformer-lm).

    It has no other special piece: padding is known from `segments` alone and holds the id of <unk>, as text_utils.py reads unknown pieces.
    """
    return Vocabulary(size, pad=0, unk=0, cls=-1, sep=-1, mask=-1, reserved=(0,), fingerprint="")
