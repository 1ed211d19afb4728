"""How one kind of vocabulary differs from the others, apart from its two engines."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from jaxenc.data.tokenizers import separate as separation
from jaxenc.data.tokenizers.word_cache import Encoded


@dataclasses.dataclass(frozen=True)
class Kind:
    """The rules of a kind. The defaults are those of a kind that needs nothing special.

    spelled: from a piece as a person names it to the vocabulary's spelling. readable: the way back.
    words: all words by id, of a kind that reads words by their characters.
    by_line: every line of a text is a sentence; otherwise data/sentences.py finds the ends.
    separate: which words have the same ids wherever they stand (separate.py). by_word: the ids of such words, as `encode_flat` gives them,
    if there is a faster way than `encode_words`.
    twins: {id that no text gives: id that texts give}, for pieces that the vocabulary holds twice.
    flat: `encode_flat`, of an engine that needs no cache of words.
    only_here: why transformers may give a text other ids, '' if it gives the same.
    cuts_words_alone: a word gives the same pieces whatever stands before it. True of WordPiece; other kinds mark the blank before a word.
    places: `Tokenizer.written_places`, of an engine with a normaliser of its own.
    """

    spelled: Callable[[str], str] = str
    readable: Callable[[str], str] = str
    words: Sequence[str] = ()
    by_line: bool = False
    separate: separation.Rule = separation.never
    by_word: Callable[[Sequence[str]], Encoded] | None = None
    twins: Mapping[int, int] = dataclasses.field(default_factory=dict)
    flat: Callable[[Sequence[str]], Encoded] | None = None
    only_here: str = ""
    cuts_words_alone: bool = False
    places: Callable[[str], tuple[str, list[tuple[int, int]]]] | None = None
