"""Continues texts with a causal model: text in, text out."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.inference import inputs
from jaxenc.inference.decode import Decoder, Prompt
from jaxenc.inference.sampling import Sampling
from jaxenc.tree import Tree

DEFAULT_MAX_NEW, DEFAULT_SAMPLES = 40, 1


@dataclasses.dataclass(frozen=True)
class Completion:
    """A text and its continuation.

    prompt: the text as given; text: the prompt and the continuation; tokens: ids of the continuation, without the token that ends the text.
    finish_reason: `end`, the model ended the text; `max_new`, the requested number of tokens was reached; `positions`, the model takes no
    longer text. length: tokens of the whole text, with the one that starts it. unknown: number of unknown tokens in the prompt.
    """

    prompt: str
    text: str
    tokens: tuple[int, ...]
    finish_reason: str
    length: int
    unknown: int


def complete_texts(
    decoder: Decoder, params: Tree, tokenizer: Tokenizer, texts: Iterable[str], max_new: int, rule: Sampling, samples: int
) -> list[Completion]:
    """As `inference.model.Model.complete`."""
    texts = inputs.all_str(texts, "complete takes a list of texts", "[text] for a single one")
    for name, number in (("max_new", max_new), ("samples", samples)):
        if number < 1:
            raise UserError(f"{name} is {number}", fix="it takes 1 or more")
    if rule.top_k > tokenizer.vocabulary.size:
        raise UserError(f"top_k is {rule.top_k}", fix=f"it takes 0 to {tokenizer.vocabulary.size}, the size of the vocabulary")
    if samples > 1 and not rule.temperature:
        raise UserError(f"samples is {samples} and temperature 0, which gives one text", fix="set a temperature above 0, such as 1")
    encoded = [_encode(tokenizer, text, decoder.positions) for text in texts]
    prompts = [Prompt(ids, number, sample) for number, ids in enumerate(encoded) for sample in range(samples)]
    out = []
    for prompt, found in zip(prompts, decoder.generate(params, prompts, max_new, rule), strict=True):
        given, length = texts[prompt.number], len(prompt.ids) + len(found.ids)
        unknown = list(prompt.ids).count(tokenizer.vocabulary.unk)
        text = joined(tokenizer, given, prompt.ids, found.ids)
        out.append(Completion(given, text, found.ids, found.finish_reason, length, unknown))
    return out


def _encode(tokenizer: Tokenizer, text: str, positions: int) -> list[int]:
    """The ids of a prompt. Raises UserError for one without tokens, and for one that fills all positions."""
    ids = tokenizer.encode_start(text)
    if not ids:
        raise UserError(f"{text!r} has no tokens and this vocabulary has no token that starts a text", fix="give a text with a word")
    if 0 < positions <= len(ids):
        size = f"the text that begins with {text[:40]!r} has {len(ids)} tokens"
        raise UserError(f"{size} and the model takes {positions}, which leaves none for a continuation", fix="shorten it")
    return ids


def joined(tokenizer: Tokenizer, prompt: str, ids: Sequence[int], new: Sequence[int]) -> str:
    """`prompt` unchanged and the text that the ids `new` add after its `ids`: a new word after a space, the rest of a word without one."""
    own = list(ids)[tokenizer.vocabulary.frames :]
    before, after = tokenizer.decode(own), tokenizer.decode([*own, *new])
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    added = after[len(list(shared)) :]
    # The prompt may end with the space already, and a text does not begin with one.
    spaced = not prompt or (prompt[-1].isspace() and not before[-1:].isspace())
    return prompt + (added.lstrip() if spaced else added)
