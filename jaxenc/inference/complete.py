"""Continues texts with a causal model: text in, text out."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.inference import inputs
from jaxenc.inference.decode import Decoder, Start
from jaxenc.inference.sampling import Sampling
from jaxenc.tree import Tree

MAX_NEW, SAMPLES = 40, 1


@dataclasses.dataclass(frozen=True)
class Completion:
    """A text and its continuation.

    prompt: as it was given; text: the prompt and the continuation; tokens: ids of the continuation, without the piece that ends the text.
    ended: why it ends: `end`, by that piece; `max_new`, after as many tokens as were asked for; `positions`, since the model takes no
    longer text. length: tokens of the whole text, with the one that starts it. unknown: tokens of the prompt that the vocabulary does not
    know, which the model reads as one and the same.
    """

    prompt: str
    text: str
    tokens: tuple[int, ...]
    ended: str
    length: int
    unknown: int


def complete(
    decoder: Decoder, params: Tree, tokenizer: Tokenizer, texts: Iterable[str], max_new: int, rule: Sampling, samples: int
) -> list[Completion]:
    """As `inference.load.Model.complete`."""
    texts = inputs.all_str(texts, "complete takes a list of texts", "[text] for a single one")
    for name, number in (("max_new", max_new), ("samples", samples)):
        if number < 1:
            raise UserError(f"{name} is {number}: it takes 1 or more")
    if rule.top_k > tokenizer.vocabulary.size:
        raise UserError(f"top_k is {rule.top_k}: it takes 0 to {tokenizer.vocabulary.size}, the size of the vocabulary")
    if samples > 1 and not rule.temperature:
        raise UserError(f"samples is {samples} and temperature 0, which gives one text: set a temperature above 0, such as 1")
    prompts = [_prompt(tokenizer, text, decoder.positions) for text in texts]
    starts = [Start(ids, number, sample) for number, ids in enumerate(prompts) for sample in range(samples)]
    out = []
    for start, found in zip(starts, decoder.continued(params, starts, max_new, rule), strict=True):
        prompt = texts[start.prompt]
        text = joined(tokenizer, prompt, start.ids, found.ids)
        unknown = list(start.ids).count(tokenizer.vocabulary.unk)
        out.append(Completion(prompt, text, found.ids, found.ended, len(start.ids) + len(found.ids), unknown))
    return out


def _prompt(tokenizer: Tokenizer, text: str, positions: int) -> list[int]:
    """The ids of a text. Raises UserError for one without ids, and for one that fills all positions."""
    ids = tokenizer.encode_start(text)
    if not ids:
        raise UserError(f"{text!r} holds no token and this vocabulary has none that starts a text: give a text with a word")
    if 0 < positions <= len(ids):
        held = f"the text that begins with {text[:40]!r} has {len(ids)} tokens"
        raise UserError(f"{held} and the model takes {positions}, which leaves none for a continuation: shorten it")
    return ids


def joined(tokenizer: Tokenizer, prompt: str, ids: Sequence[int], new: Sequence[int]) -> str:
    """`prompt` as it is and what the ids `new` add to its own `ids`, decoded: a new word after a blank, the rest of a word without one."""
    own = list(ids)[tokenizer.vocabulary.frames :]
    before, after = tokenizer.decode(own), tokenizer.decode([*own, *new])
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    added = after[len(list(shared)) :]
    # The blank between words is in the prompt already, and at the start of a text there is none.
    blank = not prompt or (prompt[-1].isspace() and not before[-1:].isspace())
    return prompt + (added.lstrip() if blank else added)
