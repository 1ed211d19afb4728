"""The file of a SentencePiece model, in and out: pieces with their scores, and the table of characters."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from jaxenc.data.protobuf import fields, floating, message, pairs
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.sentencepiece import charsmap
from jaxenc.errors import UserError

NAME = "spiece.model"
MARK = "▁"  # how pieces write a blank
# Fields and values of google/sentencepiece:src/sentencepiece_model.proto
PIECES, TRAINER, NORMALIZER, SELF_TEST, DENORMALIZER = range(1, 6)  # of a model
PIECE, SCORE, KIND = 1, 2, 3  # of a piece
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MODEL_TYPE, VOCAB_SIZE, SUFFIX, BYTE_FALLBACK, UNK_ID, UNK_PIECE = 3, 4, 24, 35, 40, 45  # of a trainer
UNIGRAM = 1
LARGEST_SCORE = 3.4028234e38  # of the four bytes that hold it
LONGEST = 512  # characters of a piece, the most that the trainer makes; the tokenizers library ends the process over a million
TABLE_NAME, CHARSMAP, DUMMY_PREFIX, EXTRA_WHITESPACES, ESCAPE = range(1, 6)  # of a normaliser; the last three are on by default


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a unigram vocabulary is made of. pieces: (piece, logarithm of its probability) by id; hidden: pieces that no text gives.

    charsmap: the compiled table by which the library changes characters, b'' for none.
    """

    pieces: tuple[tuple[str, float], ...]
    hidden: frozenset[str]
    charsmap: bytes

    def check(self) -> "Facts":
        """Itself. Raises ValueError for a piece that is empty or longer than LONGEST, a score that float32 does not hold, and a table that
        leads out of itself."""
        for piece, score in self.pieces:
            if not 0 < len(piece) <= LONGEST or not abs(score) <= LARGEST_SCORE:
                raise ValueError(f"the piece {piece[:20]!r} has {len(piece)} characters and the score {score}")
        charsmap.check(self.charsmap)
        return self


@dataclasses.dataclass(frozen=True)
class Model:
    """A model file. content: its bytes. pieces: (piece, score) by id; kinds: of each, NORMAL to BYTE; trainer, normalizer, denormalizer:
    {field: value} of its three parts with settings."""

    content: bytes
    pieces: tuple[tuple[str, float], ...]
    kinds: tuple[int, ...]
    trainer: Mapping[int, int | bytes]
    normalizer: Mapping[int, int | bytes]
    denormalizer: Mapping[int, int | bytes]

    def of_kinds(self, *kinds: int) -> frozenset[str]:
        """The pieces of these kinds."""
        return frozenset(piece for (piece, _), kind in zip(self.pieces, self.kinds, strict=True) if kind in kinds)

    @property
    def facts(self) -> Facts:
        """What it is made of, as a unigram vocabulary."""
        return Facts(self.pieces, self.of_kinds(UNKNOWN, CONTROL, UNUSED), _bytes(self.normalizer.get(CHARSMAP, b"")))


def opened(path: str | Path, content: bytes) -> Model:
    """The model in the bytes of a file. path: what messages call it. Raises UserError for bytes that are none."""
    try:
        held = list(pairs(content))
        # A message that is given twice is one, in two parts.
        parts = [fields(b"".join(value for field, value in held if field == part)) for part in (TRAINER, NORMALIZER, DENORMALIZER)]
        items = [fields(value) for field, value in held if field == PIECES]
        pieces = tuple((item[PIECE].decode(), floating(item.get(SCORE, 0))) for item in items)
        kinds = tuple(item.get(KIND, NORMAL) for item in items)
        if not items or not set(kinds) <= set(range(NORMAL, BYTE + 1)):
            raise ValueError("no piece, or one of no known kind")
        model = Model(content, pieces, kinds, *parts)
        model.facts.check()
        charsmap.check(_bytes(model.denormalizer.get(CHARSMAP, b"")))
        return model
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError("not a SentencePiece model", path, AGAIN) from error


def parsed(path: str | Path, content: bytes) -> Facts:
    """The facts in the bytes of a model. Raises as `opened`."""
    return opened(path, content).facts


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError(f"a number, {value}, in the place of a table")
    return value


def as_read(model: Model, controls: Collection[str], more: Sequence[tuple[str, float, int]] = (), ordinary: Collection[str] = ()) -> bytes:
    """The bytes of `model` with `controls` as control pieces, which no text gives, `ordinary` as ordinary ones, and `more` (piece, score,
    kind) after its own.

    Where that changes anything its self-test is left out, since it is of the model as it was.
    """
    kinds = [
        kind if kind == UNKNOWN else CONTROL if piece in controls else NORMAL if piece in ordinary else kind
        for (piece, _), kind in zip(model.pieces, model.kinds, strict=True)
    ]
    if not more and kinds == list(model.kinds):
        return model.content
    held = [(piece, score, kind) for (piece, score), kind in zip(model.pieces, kinds, strict=True)]
    items = [(PIECES, message([(PIECE, piece.encode()), (SCORE, score), (KIND, kind)])) for piece, score, kind in (*held, *more)]
    rest = [(field, value) for field, value in pairs(model.content) if field not in (PIECES, SELF_TEST)]
    return message([*items, *rest])


def written(facts: Facts, unk: int) -> bytes:
    """A model of these facts, whose unknown piece has the id `unk`. Equal facts give equal bytes.

    A piece that its trainer held apart, such as a full stop, is an ordinary one here: no longer piece holds it, so it is cut off all the
    same, and transformers would cut such pieces out of a text before its words are known.
    """

    def piece(index: int, name: str, score: float) -> bytes:
        kind = UNKNOWN if index == unk else CONTROL if name in facts.hidden else NORMAL
        return message([(PIECE, name.encode()), (SCORE, score), (KIND, kind)])

    size, name = len(facts.pieces), facts.pieces[unk][0].encode()
    trainer = message([(MODEL_TYPE, UNIGRAM), (VOCAB_SIZE, size), (UNK_ID, unk), (UNK_PIECE, name)])
    pieces = [(PIECES, piece(index, *item)) for index, item in enumerate(facts.pieces)]
    return message([*pieces, (TRAINER, trainer), (NORMALIZER, message([(CHARSMAP, facts.charsmap)]))])
