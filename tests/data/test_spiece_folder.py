"""What a folder of a `.model` holds: its name, special pieces and settings, and what is saved of it."""

import json
import re
import shutil
from pathlib import Path

import pytest
import sentencepiece as library
import tokenizers

from jaxenc.data.tokenizers import load
from jaxenc.errors import Unsupported, UserError
from tests.data import spiece_models as models

SHORT = models.TEXTS[::4]


@pytest.fixture(scope="module")
def plain() -> bytes:
    """A model with the special pieces of no family."""
    return models.trained(SHORT, normalization_rule_name="identity")


@pytest.fixture(scope="module")
def xlnet() -> bytes:
    return models.trained(**models.XLNET)


@pytest.mark.parametrize("name", ["spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "my.model"])
def test_r12_a_model_of_any_name_is_opened(name: str, plain: bytes, tmp_path: Path) -> None:
    tool = load(models.folder(tmp_path, plain, name=name))
    assert tool.encode(SHORT) == library.SentencePieceProcessor(model_proto=plain).encode(SHORT)
    tool.save(tmp_path / "saved")
    assert load(tmp_path / "saved").vocabulary == tool.vocabulary


def test_two_models_of_other_names_are_refused(plain: bytes, tmp_path: Path) -> None:
    models.folder(tmp_path, plain, name="a.model")
    (tmp_path / "b.model").write_bytes(plain)
    with pytest.raises(UserError, match="holds a.model, b.model; rename the right one to spiece.model"):
        load(tmp_path)
    (tmp_path / "b.model").rename(tmp_path / "spiece.model")
    load(tmp_path)


def test_r12_special_pieces_are_named_beside_the_model(plain: bytes, tmp_path: Path) -> None:
    """In either file, as transformers writes them; the advice of the refusal works."""
    with pytest.raises(
        Unsupported, match="no piece is known to be its pad, cls, sep, mask .* name pieces of the model as pad_token, "
    ) as raised:
        load(models.folder(tmp_path, plain, {}))
    assert "tokenizer_config.json" in str(raised.value)
    entries = {role: {"content": piece, "lstrip": False} for role, piece in models.ROLES.items()}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(entries))
    tool = load(tmp_path)
    assert [tool.token(index) for index in tool.encode_prompt("<m>")] == ["<c>", "<m>", "<e>"]
    other = models.folder(tmp_path / "other", plain)
    assert load(other).vocabulary == tool.vocabulary
    for config, said in (
        (
            {"mask_token": "<none>"},
            "tokenizer_config.json: mask_token is '<none>', which is not a piece of the model; name one of its pieces",
        ),
        ({"mask_token": 7}, "mask_token is 7"),
        ({"tokenizer_class": "XLMRobertaTokenizer"}, "tokenizer_class is 'XLMRobertaTokenizer'; save it again from AutoTokenizer"),
        ({"tokenizer_class": "T5Tokenizer"}, "tokenizer_class is 'T5Tokenizer'; save it again"),
        ({"tokenizer_class": "BertTokenizer"}, "tokenizer_class is 'BertTokenizer', which reads no .model; remove the field"),
        ({"unk_token": "<c>"}, "unk_token is '<c>', and the model's unknown piece is '<unk>'; write '<unk>'"),
        ({"keep_accents": 1}, "write true or false"),
    ):
        with pytest.raises(UserError, match=said):
            load(models.folder(other, plain, models.ROLES | config))


@pytest.mark.parametrize(
    "name, content, said",
    [
        (
            "added_tokens.json",
            {"E1": 500},
            "added_tokens.json: 'E1' is added to the pieces of the .model; save the folder again from AutoTok",
        ),
        ("tokenizer_config.json", {"added_tokens_decoder": {"500": {"content": "E1"}}}, "tokenizer_config.json: 'E1' is added"),
        ("tokenizer_config.json", {"mask_token": "<eod>"}, "mask_token is '<eod>', and that of XLNet is '<mask>'"),
        ("config.json", {"model_type": "t5"}, "config.json: model_type is 't5', whose tokenizer is not known"),
    ],
)
def test_r09_what_the_files_add_to_a_model_is_refused(name: str, content: dict, said: str, xlnet: bytes, tmp_path: Path) -> None:
    """The library reads the .model alone, and these pieces would be left out in silence."""
    load(models.folder(tmp_path, xlnet, {"additional_special_tokens": ["<eop>", "<eod>"], "mask_token": "<mask>"}))
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(UserError, match=re.escape(said)):
        load(tmp_path)


def test_accents_and_case_of_other_models_stay_unless_the_settings_say_otherwise(plain: bytes, tmp_path: Path) -> None:
    text, theirs = "Café ÉTÉ ``q''", library.SentencePieceProcessor(model_proto=plain)
    assert load(models.folder(tmp_path, plain)).encode([text]) == theirs.encode([text])
    changed = load(models.folder(tmp_path, plain, models.ROLES | {"do_lower_case": True, "keep_accents": False}))
    assert changed.encode([text]) == theirs.encode(["cafe ete ``q''"])


def test_a_tokenizer_json_that_was_changed_is_read_and_compared(xlnet: bytes, tmp_path: Path) -> None:
    load(models.folder(tmp_path, xlnet, {})).save(tmp_path / "a")
    path = tmp_path / "a" / "tokenizer.json"
    data = json.loads(path.read_text())
    data["model"]["vocab"][-1][0] = "zebra"
    path.write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"tokenizer.json and .*spiece.model disagree"):
        load(tmp_path / "a")


def total(theirs: library.SentencePieceProcessor, ids: list[int]) -> float:
    return sum(theirs.get_score(index) for index in ids)


@pytest.mark.parametrize("family", ["xlnet", "albert"])
def test_r12_an_exported_tokenizer_gives_the_same_ids(family: str, tmp_path: Path) -> None:
    """Where accents are dropped. Two cuts may differ that float32 cannot tell apart: the libraries add up scores in another order."""
    content = models.trained(**getattr(models, family.upper()))
    tool, theirs = load(models.folder(tmp_path, content, {})), library.SentencePieceProcessor(model_proto=content)
    tool.save(tmp_path / "out")
    exported = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    texts = models.lines(1500)
    different = 0
    for text, found in zip(texts, exported.encode_batch(texts), strict=True):
        ours = tool.encode_prompt(text)
        if found.ids != ours:
            different += 1
            assert len(text) > 50 and abs(total(theirs, found.ids) - total(theirs, ours)) < 1e-3, text
    assert different <= 5 and not tool.only_here


BEYOND = {
    "bpe": "trainer_spec.model_type",
    "unigram, byte_fallback": "trainer_spec.byte_fallback",
    "treat_whitespace_as_suffix": "trainer_spec.treat_whitespace_as_suffix",
    "no add_dummy_prefix": "normalizer_spec.add_dummy_prefix",
    "no remove_extra_whitespaces": "normalizer_spec.remove_extra_whitespaces",
    "a table of one's own": "normalizer_spec.precompiled_charsmap",
    "denormalizer": "denormalizer_spec",
}


@pytest.mark.parametrize("name", BEYOND)
def test_r12_what_transformers_cannot_say_is_named(name: str, tmp_path: Path) -> None:
    settings = {"control_symbols": models.XLNET["control_symbols"]} | models.SETTINGS[name]
    tool = load(models.folder(tmp_path / "a", models.trained(**settings), {}))
    assert tool.only_here.startswith(f"{BEYOND[name]} cannot be expressed in a tokenizer.json: spiece.model is written alone")
    tool.save(tmp_path / "b")
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"spiece.model", "tokenizer_config.json"}
    assert load(tmp_path / "b").vocabulary == tool.vocabulary


def test_what_transformers_reads_otherwise_in_rare_texts_is_named(xlnet: bytes, tmp_path: Path) -> None:
    tool = load(models.folder(tmp_path / "a", xlnet, {"keep_accents": True}))
    assert tool.only_here.startswith("transformers reads rare texts otherwise: normalizer_spec.precompiled_charsmap where accents are kept")
    tool.save(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    texts = models.lines(300)
    assert load(tmp_path / "c").encode(texts) == tool.encode(texts)
    (tmp_path / "c" / "spiece.model").unlink()
    assert load(tmp_path / "c").vocabulary == tool.vocabulary and load(tmp_path / "c").encode(texts) != tool.encode(texts)
