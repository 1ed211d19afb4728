"""The file of a SentencePiece model, in and out: pieces with their scores, and the table of characters."""

import dataclasses
from pathlib import Path

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2 as proto

from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.errors import Unsupported, UserError

NAME = "spiece.model"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a unigram vocabulary is made of. pieces: (piece, logarithm of its probability) by id; hidden: pieces that no text gives.

    charsmap: the compiled table by which the library changes characters, b'' for none.
    """

    pieces: tuple[tuple[str, float], ...]
    hidden: frozenset[str]
    charsmap: bytes


def parsed(path: str | Path, content: bytes) -> Facts:
    """The facts in the bytes of a model. path: what messages call it.

    Raises UserError for bytes that are none, Unsupported for a model that is not unigram, or treats white space or bytes in another way.
    """
    try:
        model = proto.ModelProto.FromString(content)
    except DecodeError as error:
        raise UserError(f"{path}: not a SentencePiece model; {AGAIN}") from error
    trainer, normalizer, kinds = model.trainer_spec, model.normalizer_spec, proto.ModelProto.SentencePiece
    if trainer.model_type != trainer.UNIGRAM or trainer.byte_fallback or trainer.treat_whitespace_as_suffix:
        raise Unsupported(f"{path}: not a unigram model without byte fallback; other kinds come later")
    if not (normalizer.add_dummy_prefix and normalizer.remove_extra_whitespaces and normalizer.escape_whitespaces):
        raise Unsupported(f"{path}: add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces must be on; other kinds come later")
    hidden = frozenset(piece.piece for piece in model.pieces if piece.type in (kinds.UNKNOWN, kinds.CONTROL, kinds.UNUSED))
    return Facts(tuple((piece.piece, piece.score) for piece in model.pieces), hidden, normalizer.precompiled_charsmap)


def written(facts: Facts, unk: int) -> bytes:
    """A model of these facts, whose unknown piece has the id `unk`. Equal facts give equal bytes.

    A piece that its trainer held apart, such as a full stop, is an ordinary one here: no longer piece holds it, so it is cut off all the
    same, and transformers would cut such pieces out of a text before its words are known.
    """
    model, kinds = proto.ModelProto(), proto.ModelProto.SentencePiece
    for index, (piece, score) in enumerate(facts.pieces):
        kind = kinds.UNKNOWN if index == unk else kinds.CONTROL if piece in facts.hidden else kinds.NORMAL
        model.pieces.add(piece=piece, score=score, type=kind)
    trainer = model.trainer_spec
    trainer.model_type, trainer.vocab_size = trainer.UNIGRAM, len(facts.pieces)
    trainer.unk_id, trainer.unk_piece = unk, facts.pieces[unk][0]
    model.normalizer_spec.precompiled_charsmap = facts.charsmap
    return model.SerializeToString(deterministic=True)
