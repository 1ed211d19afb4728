"""How one kind of vocabulary differs from the others: what `Tokenizer` asks of it beside its two engines."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from jaxenc.data.tokenizers import separate as separation
from jaxenc.data.tokenizers.word_cache import Encoded


@dataclasses.dataclass(frozen=True)
class Kind:
    """spelled: how it writes a piece that a person names. readable: how a person reads a piece.

    words: of a kind whose words are read by their characters, all of them by id.
    by_line: every line of a text is a sentence; else the rule of data/sentences.py says where one ends.
    separate: which words are tokenised by themselves, wherever they are; see separate.py. by_word: the ids of such words, as `encode_flat`
    gives them, if there is a faster way than `encode_words`.
    twins: {id that no text gives: id of the same piece that texts give}, of a piece that the vocabulary holds twice.
    cuts_words_alone: whether a word gives the same pieces whatever stands before it: so of WordPiece; other kinds mark the blank there.
    places: `Tokenizer.written_places`, of an engine with a normaliser of its own.
    flat: `encode_flat`, of an engine that needs no cache of words. only_here: why transformers may read a text otherwise, '' where it
    gives the same ids.
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
