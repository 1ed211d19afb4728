"""Which words of a text are tokenised by themselves, so that their ids can be cached (word_cache.py).

A word is the text between blanks (U+0020), with the blanks before it. What may look across a blank, step by step:

- Unicode normalization never does: the blank is a starter that composes with nothing, so marks after it keep their order among themselves
  and stay there (Unicode standard annex 15, sections 9 and 10). Case, accents and replaced characters are rules for each character alone:
  the library lower-cases a sigma without looking at its neighbours.
- A model's table of characters (`Precompiled`) reads grapheme clusters, and a blank is in one with a mark after it or with a sign such as
  U+0600 before it: `by_clusters`.
- Splitters of words at white space, at punctuation, at Chinese characters and after many letters see a blank as the end of a word.
- Byte-level BPE writes the blank into the word after it, and treats the last white space before a word differently from the rest:
  `by_edges`.
- An added piece with white space in it, or that takes the blanks around it, reaches into other words: `alone`.
- The models themselves, of every kind, see one word at a time.
"""

import unicodedata
from collections.abc import Callable

import tokenizers as library

Rule = Callable[[str], bool]
# Letters that the property Grapheme_Cluster_Break joins to the character before them (SARA AM) or after them (Malayalam dot reph)
JOINED = frozenset("\u0e33\u0eb3\u0d4e")


def never(word: str) -> bool:
    """The rule of vocabularies about which nothing is known: no word, so every text is encoded whole."""
    return False


def always(word: str) -> bool:
    """The rule of vocabularies whose words end at white space and whose normalizer reads single characters: every word."""
    return True


def by_clusters(word: str) -> bool:
    """The rule of models with a table of characters: a word that no grapheme cluster joins to the blanks around it.

    It is ASCII, or its first and last characters are letters, numbers, punctuation or symbols of the basic plane that join nothing. Marks
    at its end are ignored, since the normalizer may drop them.
    """
    bare = word.strip(" ")
    if bare.isascii():
        return True
    first, last = bare[0], next((character for character in reversed(bare) if unicodedata.category(character)[0] != "M"), bare[0])
    kinds = [unicodedata.category(character) for character in (first, last)]
    plain = all(kind[0] in "LNPS" and kind not in ("Lm", "Sk") for kind in kinds)
    return plain and max(first, last) < "\U00010000" and not {first, last} & JOINED


def by_edges(written: Callable[[str], str]) -> Rule:
    """The rule of byte-level BPE, whose normalizer is `written`: a word that does not begin or end with white space after normalization.

    A pattern that finds words from left to right then finds one that starts at the blank, whatever stands before: all of its parts but
    white space itself hold a blank only as their first character, and where a run of white space is cut depends only on the next character.
    So the blanks at the end of a text are tokenised by themselves too.
    """

    def separate(word: str) -> bool:
        bare = word.strip(" ")
        if not bare:
            return True
        held = written(bare)
        return bool(held) and not held[0].isspace() and not held[-1].isspace()

    return separate


def alone(rule: Rule, tool: library.Tokenizer) -> Rule:
    """`rule`, for words that no added piece of `tool` joins to others.

    A piece with a blank in it is found where a word ends as the piece does before its first blank; one that takes the blanks around it,
    in the words that hold it. Both are looked for in the word as it is written and as it is normalized.
    """
    written = tool.normalizer.normalize_str if tool.normalizer else str
    ends, parts = set[str](), set[str]()
    for piece in tool.get_added_tokens_decoder().values():
        if piece.special and tool.encode_special_tokens:
            continue
        for text in (piece.content, written(piece.content)):
            ends |= {text.split(" ")[0]} if " " in text else set()
            parts |= {text} if piece.lstrip or piece.rstrip else set()
    if not ends and not parts:
        return rule

    def separate(word: str) -> bool:
        forms = (word, written(word))
        joined = any(form.endswith(tuple(ends)) or any(part in form for part in parts) for form in forms)
        return rule(word) and not joined

    return separate if "" not in ends else never
