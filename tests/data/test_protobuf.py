"""The wire format against messages that the sentencepiece library's own code writes and reads."""

import pytest
from sentencepiece import sentencepiece_model_pb2 as theirs

from jaxenc.data.protobuf import fields, floating, message, pairs


def test_what_is_written_is_read_by_the_real_library_and_back():
    pieces = [("a", -1.5, 1), ("▁" * 100, 0.0, 3), ("", 3.25, 1)]
    ours = message([*((1, message([(1, p.encode()), (2, s), (3, k)])) for p, s, k in pieces), (2, message([(4, 300), (40, 1 << 20)]))])
    parsed = theirs.ModelProto.FromString(ours)
    assert [(p.piece, p.score, p.type) for p in parsed.pieces] == pieces
    assert (parsed.trainer_spec.vocab_size, parsed.trainer_spec.unk_id) == (300, 1 << 20)
    read = list(pairs(parsed.SerializeToString()))
    assert [(item[1].decode(), floating(item[2]), item[3]) for item in (fields(value) for field, value in read if field == 1)] == pieces


@pytest.mark.parametrize("damaged", [b"\x0a", b"\x0a\x05ab", b"\x15\x00\x00", b"\x0b", b"\x80", b"\x08" + b"\xff" * 10 + b"\1"])
def test_what_is_no_message_is_an_error(damaged):
    with pytest.raises((ValueError, IndexError)):
        list(pairs(damaged))
