"""Each field of a `.model`, changed to two other values: the ids of the sentencepiece library, or a refusal that names the field (R12)."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as library
from sentencepiece import sentencepiece_model_pb2 as proto

from jaxenc.data.tokenizers import load
from jaxenc.errors import UserError
from tests.data import spiece_models as models

TEXTS = [*models.lines(40, seed=3), *("", " ", "  a  b ", "fox", "東京 x", "<s> <m>", "a\tb", "ß，", "\0", "3.14 , 5")]
# A piece with a number, so that no other value is already there
PIECE_VALUES: dict[str, tuple[Any, Any]] = {"piece": ("zebra1", "▁a1"), "score": (-1.5, 3.0)}
KINDS = tuple(proto.ModelProto.SentencePiece.Type.values())


def others(field: Any, value: Any) -> tuple[Any, ...]:
    """Two values of the field's type other than `value`; one of a switch, which has no more."""
    if field.type == field.TYPE_BOOL:
        return (not value,)
    if field.type == field.TYPE_ENUM:
        return tuple(number for number in field.enum_type.values_by_number if number != value)[:3]
    if field.type == field.TYPE_STRING:
        return (["x"], ["x", "y"]) if field.is_repeated else ("x", "<s>")
    if field.type == field.TYPE_BYTES:
        return tables()
    return (value + 1, value + 7)


def tables() -> tuple[bytes, bytes]:
    """The tables of characters of two other rules."""
    held = (models.trained(["fox"], normalization_rule_name="nfkc_cf"), models.trained(["fox"], rule=models.RULE))
    return tuple(proto.ModelProto.FromString(content).normalizer_spec.precompiled_charsmap for content in held)


def changes(content: bytes) -> Iterator[tuple[str, Any, bytes]]:
    """(field, value, model with it) for the fields of all parts, and for a piece of each kind."""
    for part in ("trainer_spec", "normalizer_spec", "denormalizer_spec"):
        for field in getattr(proto.ModelProto(), part).DESCRIPTOR.fields:
            model = proto.ModelProto.FromString(content)
            for value in others(field, getattr(getattr(model, part), field.name)):
                model = proto.ModelProto.FromString(content)
                if field.is_repeated:
                    getattr(getattr(model, part), field.name).extend(value)
                else:
                    setattr(getattr(model, part), field.name, value)
                yield f"{part}.{field.name}", value, model.SerializeToString()
    sizes = [len(proto.ModelProto.FromString(content).pieces) - 1, 60]
    for index in (0, 1, 3, 4, 7, *sizes):  # unknown, control, a role, a symbol of the user's, ordinary ones
        for name in ("piece", "score", "type"):
            model = proto.ModelProto.FromString(content)
            for value in PIECE_VALUES.get(name, [kind for kind in KINDS if kind != model.pieces[index].type]):
                model = proto.ModelProto.FromString(content)
                setattr(model.pieces[index], name, value)
                yield f"pieces[{index}].{name}", value, model.SerializeToString()


def outcome(path: Path, content: bytes, field: str) -> str:
    """What became of one change: `ids` or `refused`. Raises AssertionError for other ids and for a refusal that names no field."""
    models.folder(path, content)
    try:
        tool = load(path)
    except UserError as error:
        assert _named(field) in str(error), f"{field}: {error}"
        return "refused"
    theirs = library.SentencePieceProcessor(model_proto=content)
    roles = {tool.vocabulary.cls, tool.vocabulary.sep, tool.vocabulary.mask, tool.vocabulary.pad}
    for text, ids, wanted in zip(TEXTS, tool.encode(TEXTS), theirs.encode(TEXTS, out_type=int), strict=True):
        # A special piece that the model calls ordinary is letters in a text all the same.
        assert ids == wanted or roles & {*wanted}, (field, text)
    return "ids"


def _named(field: str) -> str:
    """The part of the field's name that a refusal holds."""
    part, _, name = field.rpartition(".")
    return (
        "_token is" if part in ("pieces[3]", "pieces[4]") and name == "piece" else f"pieces.{name}" if part.startswith("pieces") else field
    )


# A model without a table of characters opens in half the time.
SHORT, LONG = [("unigram", "identity")], [("unigram", "nmt_nfkc"), ("bpe", "nmt_nfkc_cf"), ("word", "identity"), ("char", "nfkc")]


@pytest.mark.parametrize("kind, rule", [*SHORT, *(pytest.param(*one, marks=pytest.mark.full) for one in LONG)])
def test_r12_each_field_is_honoured_or_named(kind: str, rule: str, tmp_path: Path, record_property: Any) -> None:
    settings = {"model_type": kind, "normalization_rule_name": rule, "user_defined_symbols": ["，"], "vocab_size": 900}
    content = models.trained(models.TEXTS[::6], **settings)
    seen = Counter[str]()
    for field, value, changed in changes(content):
        assert changed != content, (field, value)
        seen[outcome(tmp_path / "model", changed, field)] += 1
    record_property("compared", f"{seen['ids']} changes of a field give the library's ids, {seen['refused']} are refused")
    assert seen["refused"] < seen.total() / 4 and seen.total() > 100


def test_r12_a_model_that_fails_its_own_test_is_refused(tmp_path: Path) -> None:
    model = proto.ModelProto.FromString(models.trained(self_test_sample_size=2))
    models.folder(tmp_path, model.SerializeToString())
    load(tmp_path).extended(["vixen"]).save(tmp_path)
    saved = proto.ModelProto.FromString((tmp_path / "spiece.model").read_bytes())
    assert not saved.self_test_data.samples, "the test is of the model without the new word"
    assert load(tmp_path).encode(["vixen"]) == [[len(model.pieces)]]
    for field in ("input", "expected"):
        changed = proto.ModelProto.FromString(model.SerializeToString())
        setattr(changed.self_test_data.samples[0], field, "▁ x y")
        with pytest.raises(UserError, match="self_test_data"):
            load(models.folder(tmp_path, changed.SerializeToString()))
