"""vocab.txt, or vocab.json with merges.txt, and the files that lie beside them. The ids are those of transformers 5.24, with which
tests/parity/test_live_folders.py compares."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers as library

from jaxenc.data.tokenizers import Tokenizer, bpe, load
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError
from tests.data.test_published import BASE, SPECIALS, folder_of, pieces_of, wordpiece_json

BERT = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
SIZE = len(BASE)
TEXT = ["the quick brown fox jumps over the lazy dog", "hello world 123"] * 4


def lines(folder: Path, pieces: list[str] = BASE, **files: Any) -> Path:
    """vocab.txt, and other files by the start of their names."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def again(tool: Tokenizer, folder: Path) -> Tokenizer:
    """`tool`, saved and loaded."""
    tool.save(folder)
    return load(folder)


def test_r09_added_tokens_decoder_beside_a_vocab_txt(tmp_path: Path) -> None:
    """As the slow tokenizers of transformers 4.34 to 4.57 wrote it, without a tokenizer.json."""
    flags = {"lstrip": False, "rstrip": False, "normalized": True, "single_word": False, "special": False}
    decoder = {str(SIZE + n): {"content": piece, **flags} for n, piece in enumerate(["E1", "E12", "new york"])}
    tool = load(lines(tmp_path / "in", tokenizer_config={**BERT, "added_tokens_decoder": decoder}))
    assert pieces_of(tool, "E1 e12 New York block") == ["E1", "E12", "new york", "block"] and tool.vocabulary.size == SIZE + 3
    assert again(tool, tmp_path / "out").vocabulary == tool.vocabulary


@pytest.mark.parametrize(
    "config, text, ids",
    [
        ({"mask_token": "hello"}, "dog hello", [2, BASE.index("dog"), BASE.index("hello"), 3]),
        ({"sep_token": "[CLS]"}, "dog", [2, BASE.index("dog"), 2]),
        ({"additional_special_tokens": ["[END]"]}, "dog [END]", [2, BASE.index("dog"), SIZE, 3]),
        ({"split_special_tokens": True}, "[MASK]", None),
    ],
)
def test_pieces_that_the_config_names_beside_a_vocab_txt(config: dict, text: str, ids: list[int] | None, tmp_path: Path) -> None:
    tool = load(lines(tmp_path, tokenizer_config={**BERT, **config}))
    assert tool.encode_prompt(text) == ids if ids else 4 not in tool.encode_prompt(text)
    if "mask_token" in config:
        assert tool.vocabulary.mask == BASE.index("hello") and tool.vocabulary.mask not in tool.encode(["hello"])[0]


def test_special_pieces_of_other_names_beside_a_vocab_txt(tmp_path: Path) -> None:
    names = dict(zip(SPECIALS, ["<pad>", "<unk>", "<s>", "</s>", "<mask>"], strict=True))
    roles = {f"{piece[1:-1].lower()}_token": name for piece, name in names.items()}
    pieces = [names.get(piece, piece) for piece in BASE]
    tool = load(lines(tmp_path, pieces, tokenizer_config={**BERT, **roles}))
    assert tool.encode_prompt("the <mask> dog 京") == [2, BASE.index("the"), 4, BASE.index("dog"), 1, 3]
    with pytest.raises(UserError, match=r"vocab.txt: lacks <mask>; put each on a line of its own"):
        load(lines(tmp_path, [piece for piece in pieces if piece != "<mask>"]))


@pytest.mark.parametrize("name", ["MPNetTokenizer", "BertJapaneseTokenizer", "RobertaTokenizer", "GPT2Tokenizer"])
def test_a_class_with_other_rules_than_berts_is_refused_beside_a_vocab_txt(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"tokenizer_config.json: tokenizer_class is '{name}'"):
        load(lines(tmp_path, tokenizer_config={"tokenizer_class": name}))


def test_the_type_of_a_model_decides_what_its_vocab_txt_is(tmp_path: Path) -> None:
    assert load(lines(tmp_path, config={"model_type": "electra"})).vocabulary.size == SIZE
    with pytest.raises(UserError, match="config.json: model_type is 'roberta', which stands for BPE, and the model in vocab.txt is WordP"):
        load(lines(tmp_path, config={"model_type": "roberta"}))


def test_a_role_that_is_another_piece_is_followed_beside_a_tokenizer_json(tmp_path: Path) -> None:
    """Padding by [SEP], as `tokenizer.pad_token = tokenizer.sep_token` leaves it."""
    tool = load(folder_of(tmp_path, wordpiece_json(BASE, {}), tokenizer_config={**BERT, "pad_token": "[SEP]"}))
    assert tool.vocabulary.pad == 3 and tool.vocabulary.reserved == (0, 1, 2, 3, 4)


def test_a_mask_or_padding_that_is_null_is_no_special_piece(tmp_path: Path) -> None:
    """As `tokenizer.mask_token = None` leaves it: AutoTokenizer opens it, and reads [MASK] as text."""
    data = wordpiece_json(BASE, {})
    data["added_tokens"] = [entry for entry in data["added_tokens"] if entry["content"] != "[MASK]"]
    tool = load(folder_of(tmp_path / "a", data, tokenizer_config={**BERT, "mask_token": None}))
    assert 4 not in tool.encode_prompt("[MASK]") and tool.encode_prompt("dog") == [2, BASE.index("dog"), 3]
    with pytest.raises(UserError, match="sep_token is null; name a piece"):
        load(folder_of(tmp_path / "b", data, tokenizer_config={**BERT, "sep_token": None}))


GAPS = {piece: index for index, piece in enumerate([*BASE[:8], None, *BASE[8:], None, "zebra"]) if piece is not None}


def gapped(folder: Path) -> Path:
    """A tokenizer.json with two ids that no piece has: transformers writes it from a vocab.txt with a piece on two lines or a blank one."""
    data = wordpiece_json(BASE, {})
    data["model"]["vocab"] = GAPS
    return folder_of(folder, data, tokenizer_config=BERT)


def test_r15_ids_without_a_piece_open(tmp_path: Path) -> None:
    tool = load(gapped(tmp_path / "a"))
    assert tool.vocabulary.size == SIZE + 3 and tool.encode(["zebra dog"]) == [[SIZE + 2, BASE.index("dog") + 1]]
    assert {8, SIZE + 1} <= set(tool.vocabulary.reserved) and tool.token(8) == "" and tool.decode([7, 8]) == BASE[7]
    assert again(tool, tmp_path / "b").vocabulary == tool.vocabulary
    more = tool.extended(["newton"])
    assert more.encode(["newton zebra dog"]) == [[SIZE + 3, SIZE + 2, BASE.index("dog") + 1]]
    back = again(more, tmp_path / "c")
    assert back.vocabulary == more.vocabulary and {8, SIZE + 1} <= set(back.vocabulary.reserved)


def test_r15_the_vocab_txt_beside_ids_without_a_piece(tmp_path: Path) -> None:
    """Its blank and repeated lines are those ids, and white space after a piece is no part of it."""
    pieces = [*BASE[:8], "zebra", *BASE[8:], "", "zebra "]
    assert load(lines(gapped(tmp_path), pieces)).vocabulary.size == SIZE + 3
    with pytest.raises(UserError, match=f"disagree: id {SIZE + 2} is 'zebra' in the first and 'tiger'"):
        load(lines(gapped(tmp_path), [*pieces[:-1], "tiger"]))


def test_added_pieces_that_are_read_alike_have_the_same_ids_in_every_object(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The library draws one at random: of 20 objects some would have the other id (all alike once in 10^6)."""
    flags = {"normalized": True}
    folder = folder_of(tmp_path / "in", wordpiece_json(BASE, {"Covid": flags, "covid": flags, "E1": flags, "É1": flags}))
    for _ in range(20):
        tool = load(folder)
        assert pieces_of(tool, "covid Covid COVID e1 E1 É1 é1") == ["covid", "Covid", "covid", "E1", "E1", "É1", "E1"]
        assert tool.encode_prompt("Covid COVID")[1:-1] == [SIZE, SIZE + 1]
    said = capsys.readouterr().err.splitlines()[0]
    assert "'Covid' and 'covid' are added pieces that are read alike, as 'covid' (2 such cases)" in said
    assert again(tool, tmp_path / "out").encode(["covid Covid COVID"]) == tool.encode(["covid Covid COVID"])
    saved = library.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert saved.encode("covid Covid COVID", add_special_tokens=False).ids == [SIZE + 1, SIZE, SIZE + 1], "exported so"
    more = tool.extended(["NEWTON", "newton"])
    assert pieces_of(more, "newton NEWTON Newton") == ["newton", "NEWTON", "newton"]


def pair(folder: Path, **config: Any) -> Path:
    """vocab.json and merges.txt of a RoBERTa, with a tokenizer_config.json."""
    bpe.train(TEXT, 300, Normalization("none")).save(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_a_plain_pair_of_files_is_what_it_was(tmp_path: Path) -> None:
    """Its fingerprint is that of the data folders and runs that were made with it."""
    for config in ({}, {"tokenizer_class": "RobertaTokenizer"}, {"tokenizer_class": "BartTokenizer", "mask_token": "<mask>"}):
        assert load(pair(tmp_path / "a", **config)).vocabulary == bpe.from_files(tmp_path / "a").vocabulary


def test_settings_beside_a_pair_of_files_are_followed(tmp_path: Path) -> None:
    plain = load(pair(tmp_path / "a"))
    assert load(pair(tmp_path / "b", add_prefix_space=True)).encode(["fox"]) == plain.encode([" fox"])
    tool = load(pair(tmp_path / "c", pad_token="</s>", additional_special_tokens=["<e>"]))
    assert tool.vocabulary.pad == 2 and tool.encode_prompt("<e>") == [0, 300, 2] and 300 not in tool.encode(["<e>"])[0]
    size, flags = plain.vocabulary.size, {"normalized": False, "single_word": False, "special": False, "lstrip": False, "rstrip": False}
    letters = {str(size): {"content": "é", **flags}, str(size + 1): {"content": "fox", **flags}}
    tool = load(pair(tmp_path / "d", added_tokens_decoder=letters))
    assert tool.token(size) == "fox" and tool.encode(["foxé"])[0][0] == size, "é is a byte of the vocabulary, so fox has the next id"
    with pytest.raises(UserError, match="tokenizer_class is 'GPT2Tokenizer'; save it again from AutoTokenizer"):
        load(pair(tmp_path / "e", tokenizer_class="GPT2Tokenizer"))


def test_the_mask_beside_a_vocab_json_takes_the_blank_before_it(tmp_path: Path) -> None:
    """As in fairseq and transformers 4; where a file says otherwise, it is followed."""
    assert load(pair(tmp_path / "a")).encode_prompt("fox <mask>")[-2] == 299
    assert len(load(pair(tmp_path / "a")).encode_prompt("a <mask>")) == 4
    apart = {"__type": "AddedToken", "content": "<mask>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
    assert len(load(pair(tmp_path / "a", mask_token=apart)).encode_prompt("a <mask>")) == 5


def test_flat_ids_of_such_folders(tmp_path: Path) -> None:
    for tool in (load(gapped(tmp_path / "a")), load(pair(tmp_path / "b", add_prefix_space=True))):
        texts = ["the dog", "", "zebra  fox\n", "hello 京 E1"]
        flat, ids = tool.encode_flat(texts), tool.encode(texts)
        assert np.array_equal(flat.tokens, np.concatenate(ids)) and [*map(len, ids)] == [*flat.lengths]
