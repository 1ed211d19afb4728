"""What `Tokenizer` asks of the library that cuts texts into pieces: two engines over one vocabulary, one for corpora and one for prompts.

`tokenizers.Tokenizer` is one; sentencepiece/engine.py is one over the sentencepiece library.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tokenizers import AddedToken


class Encoding(Protocol):
    """The ids of a text; of each its type, the number of its word, its first character and end, and 1 for a special piece around it."""

    ids: list[int]
    type_ids: list[int]
    word_ids: list[int]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]


class Normalizer(Protocol):
    """Writes a text as the pieces have it."""

    def normalize_str(self, sequence: str) -> str:
        """The text as the pieces have it."""


class Splitter(Protocol):
    """Cuts what a `Normalizer` wrote into words."""

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """(word, (start, end)) of each."""


class Engine(Protocol):
    """The methods of `tokenizers.Tokenizer` that are used."""

    normalizer: Normalizer
    pre_tokenizer: Splitter

    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> Encoding:
        """A text's encoding, of the second engine with special pieces around it."""

    def encode_batch(self, input: Sequence[str], *, add_special_tokens: bool) -> list[Encoding]:
        """`encode` of each text."""

    def encode_batch_fast(self, input: Sequence[str], *, add_special_tokens: bool) -> list[Encoding]:
        """As `encode_batch`, where only the ids are needed."""

    def post_process(self, encoding: Encoding, pair: Encoding | None = None) -> Encoding:
        """An encoding, or two, with special pieces around them."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Readable text."""

    def get_added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """The pieces by id that are found before a text is cut into words."""

    def id_to_token(self, id: int) -> str | None:
        """The piece of an id, None outside the vocabulary."""

    def token_to_id(self, token: str) -> int | None:
        """The id of a piece, None for a str that is not one."""
