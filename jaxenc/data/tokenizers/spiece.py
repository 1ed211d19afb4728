"""The file of a SentencePiece model, in and out: pieces with their scores, and the table of characters."""

import dataclasses
from pathlib import Path

from jaxenc.data.protobuf import fields, floating, message, pairs
from jaxenc.data.tokenizers import charsmap
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.errors import Unsupported, UserError

NAME = "spiece.model"
# Fields and values of google/sentencepiece:src/sentencepiece_model.proto
PIECES, TRAINER, NORMALIZER = 1, 2, 3  # of a model
PIECE, SCORE, KIND = 1, 2, 3  # of a piece
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
MODEL_TYPE, VOCAB_SIZE, SUFFIX, BYTE_FALLBACK, UNK_ID, UNK_PIECE = 3, 4, 24, 35, 40, 45  # of a trainer
UNIGRAM = 1
LARGEST_SCORE = 3.4028234e38  # of the four bytes that hold it
LONGEST = 512  # characters of a piece, the most that the trainer makes; the tokenizers library ends the process over a million
CHARSMAP, DUMMY_PREFIX, EXTRA_WHITESPACES, ESCAPE = 2, 3, 4, 5  # of a normaliser; the last three are on where they are not given


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


def parsed(path: str | Path, content: bytes) -> Facts:
    """The facts in the bytes of a model. path: what messages call it.

    Raises UserError for bytes that are none, Unsupported for a model that is not unigram, or treats white space or bytes in another way.
    """
    try:
        held = list(pairs(content))
        # A message that is given twice is one, in two parts.
        trainer, normalizer = (fields(b"".join(value for field, value in held if field == part)) for part in (TRAINER, NORMALIZER))
        items = [fields(value) for field, value in held if field == PIECES]
        pieces = tuple((item[PIECE].decode(), floating(item.get(SCORE, 0))) for item in items)
        kinds = [item.get(KIND, NORMAL) for item in items]
        if not items or not set(kinds) <= set(range(NORMAL, BYTE + 1)):
            raise ValueError("no piece, or one of no known kind")
        hidden = frozenset(piece for (piece, _), kind in zip(pieces, kinds, strict=True) if kind in (UNKNOWN, CONTROL, UNUSED))
        facts = Facts(pieces, hidden, normalizer.get(CHARSMAP, b"")).check()
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"{path}: not a SentencePiece model; {AGAIN}") from error
    if trainer.get(MODEL_TYPE, UNIGRAM) != UNIGRAM or trainer.get(BYTE_FALLBACK) or trainer.get(SUFFIX) or BYTE in kinds:
        raise Unsupported(f"{path}: not a unigram model without byte fallback; other kinds come later")
    if not all(normalizer.get(setting, 1) for setting in (DUMMY_PREFIX, EXTRA_WHITESPACES, ESCAPE)):
        raise Unsupported(f"{path}: add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces must be on; other kinds come later")
    return facts


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
