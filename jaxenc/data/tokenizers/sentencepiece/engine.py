"""A SentencePiece model read by the sentencepiece library, as an engine of `Tokenizer` (engine.py).

The ids are those of `SentencePieceProcessor.encode` on what `Before` makes of a text. In a corpus special pieces are letters; in a prompt
they are found first, the longest one, and the text between them is encoded piece by piece.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import sentencepiece
from tokenizers import AddedToken

from jaxenc.data.frames import FIRST, SECOND
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK
from jaxenc.data.tokenizers.sentencepiece.rules import Before
from jaxenc.data.tokenizers.sentencepiece.specials import Specials
from jaxenc.data.tokenizers.templates import Pieces, fill
from jaxenc.data.tokenizers.word_cache import Encoded

EDGES = (MARK, " ")  # how pieces write a blank: as it is where escape_whitespaces is off


@dataclasses.dataclass(frozen=True)
class Writer:
    """The normalizer of an engine."""

    normalize_str: Callable[[str], str]


@dataclasses.dataclass(frozen=True)
class Words:
    """The splitter of an engine: words end at blanks."""

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """(word, (start, end)) of each."""
        return [(found[0], found.span()) for found in re.finditer("[^ ]+", sequence)]


class Literal:
    """Owns a model of the sentencepiece library; takes texts literally."""

    def __init__(self, model: sentencepiece.SentencePieceProcessor, before: Before, prefix: bool, suffix: bool):
        """before: what is done to a text before the model reads it. prefix, suffix: whether the model puts a blank before a text, or after
        it, since the pieces have it there."""
        pieces = [model.id_to_piece(index) for index in range(model.get_piece_size())]
        self.pieces, self.ids = pieces, {piece: index for index, piece in enumerate(pieces)}
        self.normalizer, self.pre_tokenizer = Writer(self._written), Words()
        self._model, self._before, self._prefix, self._suffix = model, before, prefix and not suffix, prefix and suffix
        self._starts = np.array([piece.startswith(EDGES) and not suffix for piece in pieces])
        self._ends = np.array([piece.endswith(EDGES) and suffix for piece in pieces])

    def encode(self, text: str, add_special_tokens: bool = False) -> Pieces:
        """The ids of a text and their offsets; nothing is ever added."""
        written = self._before.write(text)
        found = self._model.encode(written, out_type="offset_mapping", num_threads=1)
        ids, places = list(found["ids"]), self._before.places(text, written)
        offsets = [_trimmed(text, *places(start, end)) for start, end in found["offsets"]]
        numbers = (np.cumsum(self._first(np.array(ids, np.int64))) - 1).tolist()
        return Pieces(ids, [0] * len(ids), numbers, offsets, [0] * len(ids))

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = False) -> list[Pieces]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def encode_batch_fast(self, texts: Sequence[str], add_special_tokens: bool = False) -> list[Pieces]:
        """As `encode_batch`, with the ids alone."""
        found = self._model.encode([*map(self._before.write, texts)], out_type=int, num_threads=1)
        return [Pieces(ids, [], [], [], []) for ids in found]

    def encode_flat(self, texts: Sequence[str]) -> Encoded:
        """The ids of all texts in flat arrays. Whole texts are encoded, without a cache of words: the library adds up scores in float32
        along a text, so which of two nearly equal cuts a word gets may depend on the words before it."""
        found = self._model.encode([*map(self._before.write, texts)], out_type="numpy", num_threads=1)
        lengths = np.array([len(ids) for ids in found], np.int64)
        tokens = np.concatenate([*found, np.zeros(0, np.int32)]).astype(np.uint32)
        words = self._first(tokens)
        words[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        return Encoded(tokens, lengths, words)

    def written_places(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """See `Tokenizer.written_places`."""
        read = self._before.write(text)
        written, starts = self._model.normalize(read, with_offsets=True)
        ends = list[int]()
        for start, after in reversed([*itertools.pairwise(starts)]):  # several characters written for one start at the same place
            ends.append(after if after > start or not ends else ends[-1])
        place, kept = self._before.places(text, read), self._kept(written)
        places = [place(start, end) for start, end in zip(starts[:-1], reversed(ends), strict=True)]
        return written[kept].replace(MARK, " "), places[kept]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids that are not control pieces, as the library gives it."""
        return self._model.decode(list(ids))

    def open_start(self, index: int) -> bool:
        """Whether `decode` takes away a blank before the piece where it comes first."""
        return self._prefix and self.pieces[index].startswith(EDGES)

    def open_end(self, index: int) -> bool:
        """Whether the piece ends a word, so that `decode` leaves a blank after it."""
        return self._suffix and self.pieces[index].endswith(EDGES)

    def _first(self, ids: np.ndarray) -> np.ndarray:
        """bool: whether an id is the first of a word. The ids are those of one text, or of several whose first ids are set later."""
        out = self._starts[ids]
        out[:1] = True
        out[1:] |= self._ends[ids[:-1]]
        return out

    def _written(self, text: str) -> str:
        out = self._model.normalize(self._before.write(text))
        return out[self._kept(out)].replace(MARK, " ")

    def _kept(self, written: str) -> slice:
        """The slice of a normalised text without the blank that the model puts before or after it."""
        return slice(int(self._prefix and written.startswith(EDGES)), len(written) - (self._suffix and written.endswith(EDGES)))


class Prompt:
    """Recognises special pieces and frames a text by them."""

    def __init__(self, literal: Literal, specials: Specials, apart: Sequence[str]):
        """apart: all pieces that a prompt may hold and a corpus does not; blanks before the mask belong to it."""
        longest_first = sorted(apart, key=lambda piece: (-len(piece), piece))
        alternatives = [r"\s*" * (piece == specials.mask) + re.escape(piece) for piece in longest_first]
        self.normalizer, self.pre_tokenizer = literal.normalizer, literal.pre_tokenizer
        self._literal, self._special = literal, re.compile(f"({'|'.join(alternatives)})")
        self._apart = {literal.ids[piece] for piece in apart}
        ids = {"cls": literal.ids[specials.cls], "sep": literal.ids[specials.sep], "A": FIRST, "B": SECOND}
        self._templates = [[(ids[name], kind) for name, kind in specials.frame.parts(texts)] for texts in (1, 2)]

    def encode(self, text: str, add_special_tokens: bool = True) -> Pieces:
        """The ids of a prompt, framed, and their types; no offsets and no words."""
        ids: list[int] = []
        for number, part in enumerate(self._special.split(text)):
            if number % 2:
                ids.append(self._literal.ids[part.lstrip() if part not in self._literal.ids else part])
            elif part:
                ids += self._literal.encode_batch_fast([part])[0].ids
        bare = Pieces(ids, [0] * len(ids), [0] * len(ids), [(0, 0)] * len(ids), [0] * len(ids))
        return self.post_process(bare) if add_special_tokens else bare

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[Pieces]:
        """`encode` of each text."""
        return [self.encode(text, add_special_tokens) for text in texts]

    encode_batch_fast = encode_batch

    def post_process(self, encoding: Pieces, pair: Pieces | None = None) -> Pieces:
        """The encoding of a text, or of two, with the special pieces around them."""
        return fill(self._templates[pair is not None], [encoding] if pair is None else [encoding, pair])

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Special and unknown pieces by their names, and between them what the library decodes; the blank that starts a word stays."""
        out = ""
        for apart, run in itertools.groupby(ids, key=self._apart.__contains__):
            held = list(run)
            if apart:
                out += "" if skip_special_tokens else "".join(self._literal.pieces[index] for index in held)
            else:
                blank = " " if out and self._literal.open_start(held[0]) else ""
                out += blank + self._literal.decode(held)
        return out.removesuffix(" ") if ids and self._literal.open_end(ids[-1]) else out

    def get_added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """None: every piece is one of the model's."""
        return {}

    def id_to_token(self, index: int) -> str | None:
        """The piece of an id, None outside the vocabulary."""
        return self._literal.pieces[index] if 0 <= index < len(self._literal.pieces) else None

    def token_to_id(self, piece: str) -> int | None:
        """The id of a piece, None for a str that is not one."""
        return self._literal.ids.get(piece)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The place without the blanks around it. A piece of a blank alone, or of a part of a character, has the place of the next one."""
    held = text[start:end]
    start += len(held) - len(held.lstrip())
    if start < end:
        return start, end - len(held) + len(held.rstrip())
    start += len(text[start:]) - len(text[start:].lstrip()) if start < len(text) and text[start].isspace() else 0
    return (start, start + 1) if start < len(text) else (end, end)
