"""The most probable tokens for the masks of a text: ids in, guesses out. `inference.model.Model.fill_mask` runs the model in between."""

import dataclasses

import numpy as np

from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError

MASKS = ("[MASK]", "<mask>")  # what a text may call the mask, whatever the vocabulary calls it


@dataclasses.dataclass(frozen=True)
class Guess:
    """One candidate for a masked token. token: the piece in the vocabulary; text: the piece decoded, without blanks around it, or the piece
    itself where that is empty or not valid text; probability: of the softmax over the
    pieces of the tokenizer."""

    token: str
    text: str
    probability: float


def masked_ids(tokenizer: Tokenizer, text: str, k: int) -> list[int]:
    """The ids of `text`, at least one of them a mask: the vocabulary's own or, in a text without it, one of MASKS. Raises UserError without
    a mask in the vocabulary or the text, and for a `k` above the size of the vocabulary."""
    size, mask = tokenizer.vocabulary.size, tokenizer.vocabulary.mask
    if not 1 <= k <= size:
        raise UserError(f"k is {k}", fix=f"it takes 1 to {size}")
    if mask < 0:
        raise UserError("the tokenizer of this model has no mask", fix="fill_mask needs a model that was trained with one that has it")
    ids = tokenizer.encode_prompt(text)
    if mask not in ids:
        for name in MASKS:
            text = text.replace(name, tokenizer.token(mask))
        ids = tokenizer.encode_prompt(text)
    if mask not in ids:
        raise UserError(f"{text!r} holds no {tokenizer.token(mask)}", fix=f"write {tokenizer.token(mask)} in the place of a word")
    return ids


def guesses(tokenizer: Tokenizer, logits: np.ndarray, k: int) -> list[list[Guess]]:
    """The `k` most probable tokens of each mask, most probable first; logits: float32 [masks, rows of the vocabulary]."""
    logits = logits[:, : tokenizer.vocabulary.size].astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    best = np.argsort(-probabilities)[:, :k]
    return [[_guess(tokenizer, int(i), float(row[i])) for i in order] for row, order in zip(probabilities, best, strict=True)]


def _guess(tokenizer: Tokenizer, index: int, probability: float) -> Guess:
    token, text = tokenizer.token(index), tokenizer.decode([index]).strip()
    # A piece of bytes may be a part of a character, which decodes to U+FFFD.
    return Guess(token, text if text and "\ufffd" not in text else tokenizer.readable(index), probability)
