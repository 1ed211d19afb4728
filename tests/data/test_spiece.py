"""Model files of SentencePiece that lie about themselves."""

import base64
import io
import json

import numpy as np
import pytest
import sentencepiece as library

from jaxenc.data.protobuf import message
from jaxenc.data.tokenizers import load
from jaxenc.data.tokenizers.sentencepiece import charsmap
from jaxenc.data.tokenizers.sentencepiece.model_file import parsed
from jaxenc.errors import UserError

NAMES = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>", "▁", *"foxthe")


def made_up(pieces=(), trainer=(), normalizer=()):
    """The bytes of a small model with more pieces, and more settings, than it has."""
    kinds = [2, *[3] * 8, *[1] * len(NAMES)]
    known = [[(1, name.encode()), (2, -1.0 - i), (3, kinds[i])] for i, name in enumerate(NAMES)]
    parts = [(1, message(piece)) for piece in [*known, *pieces]]
    return message([*parts, (2, message([(3, 1), *trainer])), (3, message(normalizer))])


def test_a_message_in_two_parts_is_one(tmp_path):
    """As the library reads it: the second part of the normaliser leaves the first part's setting as it is, here no blank at the start."""
    (tmp_path / "spiece.model").write_bytes(made_up())
    assert load(tmp_path).encode(["the fox"]) == [[9, 13, 14, 15, 9, 10, 11, 12]]
    (tmp_path / "spiece.model").write_bytes(made_up(normalizer=[(3, 0)]) + message([(3, message([(4, 1)]))]))
    assert load(tmp_path).encode(["the fox"]) == [[13, 14, 15, 9, 10, 11, 12]]
    assert load(tmp_path).only_here.startswith("normalizer_spec.add_dummy_prefix")


NOT = "spiece.model: not a SentencePiece model; make the tokenizer again, or copy it again$"


@pytest.mark.parametrize(
    "content, said",
    [
        (made_up([[(1, b""), (2, -1.0)]]), NOT),
        (made_up([[(1, b"q" * 1_000_000), (2, -1.0)]]), NOT),
        (made_up([[(1, b""), (3, 3)]]), NOT),
        (made_up([[(2, -1.0)]]), NOT),
        (made_up([[(1, 7), (2, -1.0)]]), NOT),
        (made_up([[(1, b"\xff"), (2, -1.0)]]), NOT),
        *((made_up([[(1, b"new"), (2, score)]]), NOT) for score in (float("nan"), float("inf"), float("-inf"), b"abcd", 1 << 40)),
        (made_up([[(1, b"new"), (3, 99)]]), NOT),
        (made_up([[(1, b"new"), (3, b"a")]]), NOT),
        (made_up([[(1, b"<0x00>"), (3, 6)]]), "trainer_spec.byte_fallback"),
        (made_up([[(1, b"f")]]), "'f' twice"),
        (made_up([[(1, b"<mask>")]]), "holds '<mask>' twice"),
        (made_up(normalizer=[(2, 5)]), NOT),
        (made_up() + message([(1, 5)]), NOT),
        (made_up() + message([(2, 5)]), NOT),
        (made_up() + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", NOT),
        (made_up() + b"\x28" + b"\x80" * 1_000_000, NOT),
        (b"\xff" * 1_000_000, NOT),
    ],
)
def test_a_model_that_lies_is_one_line(content, said, tmp_path):
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(UserError, match=said) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_table_of_characters_that_leads_out_of_itself_is_one_line(tmp_path):
    """The library would end the process's thread over it, at the first text that goes there; sound tables pass."""
    folder = tmp_path / "sound"
    out = io.BytesIO()
    options = {"vocab_size": 20, "hard_vocab_limit": False, "minloglevel": 2}
    library.SentencePieceTrainer.train(sentence_iterator=iter(["the fox"]), model_writer=out, **options)
    sound = parsed("", out.getvalue()).charsmap
    (tmp_path / "spiece.model").write_bytes(made_up(normalizer=[(2, sound)]))
    load(tmp_path).save(folder)
    size = int.from_bytes(sound[:4], "little")
    random, trie = np.random.default_rng(0), np.frombuffer(sound, "<u4", size // 4, 4)
    outside = trie.copy()
    outside[int(trie[0] >> 10) ^ ord("A")] = (1 << 21) - 1 << 10 | ord("A")
    rest, head = sound[4 + size :], sound[:4]
    small = lambda data: len(data).to_bytes(4, "little") + data
    damaged = [sound[:3], sound[:4], sound[: size // 2], bytes(4), small(bytes(4)), small(random.bytes(1024)) + b"a\0", b"garbage"]
    damaged += [head + outside.tobytes() + rest, sound[: 4 + size], sound[: 4 + size] + rest[: len(rest) // 2], sound + b"\xff"]
    charsmap.check(b"")
    (tmp_path / "bare").mkdir()
    for table in damaged:
        with pytest.raises(ValueError):
            charsmap.check(table)
        (tmp_path / "bare" / "spiece.model").write_bytes(made_up(normalizer=[(2, table)]))
        with pytest.raises(UserError, match=NOT):
            load(tmp_path / "bare")
    data = json.loads((folder / "tokenizer.json").read_text())
    data["normalizer"]["normalizers"][-2]["precompiled_charsmap"] = base64.b64encode(damaged[7]).decode()
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match="tokenizer.json: normalizer: damaged .*a table of characters leads out of its texts"):
        load(folder)
