"""GPT-1's byte-pair encoding against its definition; the comparison with transformers is in tests/parity/test_live_word_bpe.py."""

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers as library

from jaxenc.data.build import build
from jaxenc.data.sources import STREAMS, DataConfig, open_source, open_streams
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import Tokenizer, bpe, load, word_bpe
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import UserError
from tests.data import word_bpe_files
from tests.data.scripts import SENTENCES

SPECIALS = ["<unk>", "<pad>", "_start_", "_delimiter_", "_classify_"]
TEXT = ["The quick brown fox jumps over the lazy dog, again and again.", "I go to <unk> today _start_ x, don't I?", "Kantō 京都 again"] * 4
TEXTS = [
    *(
        "",
        "  ",
        "The quick  brown\tfox",
        "don't (again), and again...",
        "Kanto\u0304 京都again",
        "dogs jumped; the dog jumps!",
        "\x97a\x01b\u200e",
    ),
    "x" * 40,
]
WIDTH = 31  # of rows: no divisor of the text
Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def tool() -> Tokenizer:
    return word_bpe.train(TEXT, 120)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vocab.json and merges.txt alone."""
    return word_bpe_files.write(tmp_path_factory.mktemp("published") / "files", TEXT, 120)


@pytest.fixture
def folder(tool: Tokenizer, tmp_path: Path) -> Path:
    tool.save(tmp_path / "tok")
    return tmp_path / "tok"


def words_of(text: str, uncased: bool) -> list[str]:
    """An independent reader: BERT's uncased rule, or composed text without control characters; marks and Chinese characters are words."""
    text = unicodedata.normalize("NFD", text.lower()) if uncased else unicodedata.normalize("NFC", text)
    out = []
    for character in text:
        category = unicodedata.category(character)
        if category in ("Cc", "Cf") and character not in "\t\n\r":
            continue
        if uncased and category == "Mn":
            continue
        alone = category[0] == "P" or character in "$+<=>^`|~" or "\u4e00" <= character <= "\u9fff"
        out.append(f" {character} " if alone else character)
    return "".join(out).split()


def slow_ids(text: str, folder: Path, uncased: bool) -> list[int]:
    """Byte-pair encoding by its definition: in every word the pair of lowest rank is merged, leftmost first, until none is left."""
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:-1]
    rank, out = {tuple(line.split(" ")): n for n, line in enumerate(lines)}, []
    for word in words_of(text, uncased):
        pieces = [*word[:-1], word[-1] + "</w>"]
        while len(pieces) > 1:
            best = min(range(len(pieces) - 1), key=lambda i: rank.get((pieces[i], pieces[i + 1]), len(rank)))
            if (pieces[best], pieces[best + 1]) not in rank:
                break
            pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]
        out += [vocab.get(piece, vocab["<unk>"]) for piece in pieces]
    return out


def test_ids_follow_the_definition(folder: Path, tool: Tokenizer, published: Path) -> None:
    assert tool.encode([*TEXTS, *TEXT]) == [slow_ids(text, folder, uncased=False) for text in [*TEXTS, *TEXT]]
    opened = load(published)
    assert opened.encode([*TEXTS, *TEXT]) == [slow_ids(text, published, uncased=True) for text in [*TEXTS, *TEXT]]
    assert opened.vocabulary.unk in opened.encode(["Ω"])[0] and opened.encode(["FOX"]) == opened.encode(["fóx"])


def test_layout_of_a_new_vocabulary(tool: Tokenizer) -> None:
    """Letters at the end of a word, letters before another, merges; no letter that no word can have there."""
    facts, pieces = tool.vocabulary, [tool.token(index) for index in range(tool.vocabulary.size)]
    assert pieces[:5] == SPECIALS and facts.size == 120 == len(set(pieces))
    assert (facts.unk, facts.pad, facts.cls, facts.sep, facts.mask, facts.eod) == (0, 1, 2, 3, -1, -1) and facts.reserved == (0, 1, 2, 3, 4)
    letters = sorted({c for text in TEXT for word in words_of(text, uncased=False) for c in word})
    inner = [c for c in letters if c.isalpha() and c not in "京都"]
    assert pieces[5 : 5 + len(letters) + len(inner)] == [*(c + "</w>" for c in letters), *inner]
    assert all(len(piece.removesuffix("</w>")) > 1 for piece in pieces[5 + len(letters) + len(inner) :])


def test_training_is_the_same_in_any_process(corpus: Path, tmp_path: Path) -> None:
    train = "word_bpe.train(open(sys.argv[1]).read().split('\\n'), 300).save(sys.argv[2])"
    script = f"import sys; from jaxenc.data.tokenizers import word_bpe; {train}"
    for seed, threads in (("1", "1"), ("2", "3")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", script, str(corpus), str(tmp_path / seed)], env=environment, check=True)
    names = sorted(os.listdir(tmp_path / "1"))
    assert names == ["merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.parametrize("size, texts, said", [(40, TEXT, "too small"), (10**12, TEXT, "too large"), (300, ["", " \n", "\1"], "no text")])
def test_training_on_nothing_or_for_an_impossible_size(size: int, texts: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        word_bpe.train(texts, size)


def test_special_pieces_are_text_in_a_corpus_and_special_in_a_prompt(tool: Tokenizer) -> None:
    text = "again <unk> and _start_ x <pad>"
    (ids,) = tool.encode([text])
    assert not {*ids} & {*range(5)} and tool.decode(ids) == "again < unk > and _ start _ x < pad >"
    prompt = tool.encode_prompt("again <unk> and")
    assert (
        prompt == [2, *tool.encode(["again"])[0], 0, *tool.encode(["and"])[0], 4]
        and tool.decode(prompt) == "_start_ again <unk> and _classify_"
    )
    assert tool._prompt.encode("again", "and").ids == [2, *tool.encode(["again"])[0], 3, *tool.encode(["and"])[0], 4]


def test_decoding_puts_one_blank_between_words(tool: Tokenizer) -> None:
    for text, decoded in ((" The dog,\tagain ", "The dog , again"), ("京都again", "京 都 again"), ("☃ dog", "<unk> dog"), ("", "")):
        assert tool.decode(tool.encode([text])[0]) == decoded


def test_all_files_open_as_the_same_tokenizer(folder: Path, tool: Tokenizer) -> None:
    """Without tokenizer_config.json, GPT-1's two files are read as the published ones."""
    prompts = [*TEXTS, "again <unk> _classify_ dog"]
    assert load(folder).vocabulary == tool.vocabulary
    (folder / "tokenizer.json").unlink()
    assert load(folder).vocabulary == tool.vocabulary
    assert [load(folder).encode_prompt(prompt) for prompt in prompts] == [tool.encode_prompt(prompt) for prompt in prompts]
    (folder / "tokenizer_config.json").unlink()
    (folder / "merges.txt").write_bytes((folder / "merges.txt").read_bytes().replace(b"\n", b"\r\n"))
    bare = load(folder)
    assert bare.vocabulary.fingerprint != tool.vocabulary.fingerprint and bare.encode_prompt("THE dog") == bare.encode(["the dog"])[0]


def test_the_two_kinds_of_vocab_json_are_told_apart_by_their_pieces(published: Path, tmp_path: Path) -> None:
    """Byte-level BPE has the 256 bytes, also where its pieces happen to end in </w>."""
    made = bpe.train(TEXT, 300).extended(["x</w>"])
    made.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path).vocabulary == made.vocabulary
    assert load(published).encode(["dog"]) == [[load(published)._prompt.token_to_id("dog</w>")]]


def test_a_published_vocabulary_frames_nothing(published: Path, tmp_path: Path) -> None:
    tool = load(published)
    facts = tool.vocabulary
    assert (facts.unk, facts.pad, facts.cls, facts.sep, facts.mask, facts.reserved) == (0, 0, -1, -1, -1, (0,)) and not facts.frames
    assert (
        tool.encode_prompt("the dog") == tool.encode(["the dog"])[0] == tool.encode_split(["the", "dog"])[0]
        and tool.encode_prompt("") == []
    )
    tool.save(tmp_path)
    assert load(tmp_path).vocabulary == facts


def test_rows_of_a_vocabulary_without_special_pieces_are_text_alone(published: Path, corpus: Path, tmp_path: Path) -> None:
    build([str(corpus)], published, tmp_path / "data", held_out=0.0)
    tokens = open_split(tmp_path / "data", "train").tokens
    text = tokens.take(np.arange(len(tokens)))
    source = open_source(DataConfig(str(tmp_path / "data"), WIDTH), "train", 0, False)
    rows = source.rows(0, np.arange(len(source)))
    real = rows["segments"] > 0
    assert len(source) == -(-len(text) // WIDTH) and np.array_equal(rows["tokens"][real], text) and real[:-1].all()
    last = len(text) % WIDTH
    assert last and real[-1].tolist() == [True] * last + [False] * (WIDTH - last) and (rows["tokens"][-1, last:] == 0).all()
    assert (
        rows["positions"][0].tolist() == list(range(WIDTH))
        and (rows["word_starts"][:, 0] == 1).all()
        and not rows["word_starts"][-1, last:].any()
    )


@pytest.mark.parametrize("rows", ["full_sentences", "doc_sentences", "pairs", "swapped_pairs", "streams", "sentences"])
def test_other_rows_of_such_a_vocabulary_are_refused(rows: str, published: Path, corpus: Path, tmp_path: Path) -> None:
    build([str(corpus)], published, tmp_path / "data", held_out=0.0)
    config = DataConfig(str(tmp_path / "data"), 32, rows)
    what, fix = f"data.rows={rows} puts special pieces around texts", "use data.rows=text or bucketed, or"
    with pytest.raises(UserError, match=f"{what}, .*; {fix}") as caught:
        open_streams(config, "train", 2, 0, False, 0) if rows in STREAMS else open_source(config, "train", 0, False)
    assert "\n" not in str(caught.value)


def test_special_pieces_that_are_added_frame_texts(published: Path, tmp_path: Path) -> None:
    """As the original adds them for fine-tuning, after all others."""
    old = load(published)
    tool = old.extended(["_start_", "_delimiter_", "_classify_"])
    size = old.vocabulary.size
    assert (tool.vocabulary.cls, tool.vocabulary.sep, tool.vocabulary.reserved) == (size, size + 1, (0, size, size + 1, size + 2))
    assert tool.encode_prompt("the dog") == [size, *old.encode(["the dog"])[0], size + 2] and tool.encode(TEXT) == old.encode(TEXT)
    assert old.extended(["_start_"]).encode_prompt("the dog") == [*old.encode(["the dog"])[0]]
    tool.save(tmp_path)
    assert load(tmp_path).vocabulary == tool.vocabulary
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path).vocabulary == tool.vocabulary and load(tmp_path).encode_prompt("the dog") == tool.encode_prompt("the dog")


def test_an_extended_vocabulary_finds_the_new_words_and_keeps_every_id(tool: Tokenizer, tmp_path: Path) -> None:
    more, size = tool.extended(["newton", "☃", "दुःखी"]), tool.vocabulary.size
    ids = lambda text: tool.encode([text])[0]
    assert [more.token(index) for index in range(size + 3)] == [*map(tool.token, range(size)), "newton", "☃</w>", "दुःखी"]
    text = "newton's ☃, 京newton again (newton) newtons"
    (found,) = more.encode([text])
    assert found == [size, *ids("'s"), size + 1, *ids(", 京"), size, *ids("again ("), size, *ids(") newtons")]
    assert more.decode(found[:6]) == "newton ' s ☃ , 京" and more.encode(TEXT) == tool.encode(TEXT)
    assert more.encode([unicodedata.normalize("NFD", "दुःखी")]) == [[size + 2]] and more.vocabulary.reserved == tool.vocabulary.reserved
    more.save(tmp_path)
    assert load(tmp_path).vocabulary == more.vocabulary != tool.vocabulary and load(tmp_path).encode([text]) == [found]
    (tmp_path / "tokenizer.json").unlink()
    assert load(tmp_path).vocabulary == more.vocabulary and load(tmp_path).encode([text]) == [found]
    assert more.extended(["leibniz"]).encode(["newton leibniz ☃"]) == [[size, size + 3, size + 1]]
    assert [tool._kind.spelled(piece) for piece in ("dog", "_start_")] == ["dog</w>", "_start_"]


@pytest.mark.parametrize(
    "pieces, said",
    [
        ([], "no piece is given"),
        (["newton", "newton"], "'newton' is given twice"),
        (["again"], "'again' is in the vocabulary already; leave it out"),
        (["ag"], "'ag' is in the vocabulary already, as an added word or a part of words"),
        (["_start_"], "'_start_' is in the vocabulary already"),
        (["e\u0301clair"], "is never found in a text: it is read as 'éclair'"),
        (["two words"], "it holds 2 words, 'two', 'words'; give each word as a piece of its own"),
        (["x-ray"], "it holds 3 words, 'x', '-', 'ray'"),
        (["京都町"], "it holds 3 words, '京', '都', '町'"),
        (["dog</w>"], "words, 'dog', '<', '/', 'w', '>'"),
    ],
)
def test_a_piece_that_no_text_gives_is_refused_by_name(pieces: list[str], said: str, tool: Tokenizer) -> None:
    with pytest.raises(UserError) as caught:
        tool.extended(pieces)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_quotes_and_dashes_may_become_ascii(published: Path, tmp_path: Path) -> None:
    """As in the text that GPT-1 was trained on; without the setting they are unknown, as in transformers."""
    shutil.copytree(published, tmp_path / "tok")
    (tmp_path / "tok" / "tokenizer_config.json").write_text('{"standardize": true}')
    tool, plain = load(tmp_path / "tok"), load(published)
    assert tool.written("“Don’t” — ‘so’ – ―… ´ ʼ") == "\"don't\" - 'so' - -... ' '"
    text, ascii_text = "“don’t” again—and again…", '"don\'t" again-and again...'
    assert tool.encode([text]) == plain.encode([ascii_text]) != plain.encode([text])
    tool.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    (tmp_path / "saved" / "tokenizer.json").unlink()
    assert (
        again.vocabulary == tool.vocabulary == load(tmp_path / "saved").vocabulary
        and tool.vocabulary.fingerprint != plain.vocabulary.fingerprint
    )
    (tmp_path / "tok" / "tokenizer_config.json").write_text('{"standardize": 1}')
    with pytest.raises(UserError, match="standardize is 1; write true or false"):
        load(tmp_path / "tok")


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.update(pre_tokenizer={"type": "Whitespace"}),
        lambda d: d.update(normalizer={"type": "NFD"}),
        lambda d: d.update(normalizer=None),
        lambda d: d["model"].update(end_of_word_suffix="@@", merges=[]),
        lambda d: d["model"].update(ignore_merges=True, fuse_unk=True),
        lambda d: d["model"].update(unk_token="<pad>"),
        lambda d: d["post_processor"]["single"].pop(),
    ],
)
def test_other_rules_are_those_of_the_library(folder: Path, edit: Callable[[Any], Any]) -> None:
    """With another normalizer or splitter, other settings of the merges, another unknown piece or frame."""
    data = json.loads((folder / "tokenizer.json").read_text())
    edit(data)
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "tokenizer.json").write_text(json.dumps(data))
    reference, opened = library.Tokenizer.from_file(str(folder / "tokenizer.json")), load(folder)
    for text in TEXT:
        assert opened.encode_prompt(text) == reference.encode(text).ids


@pytest.mark.parametrize(
    "edit, said",
    [
        (lambda d: d.update(post_processor={"type": "RobertaProcessing"}), "post_processor: damaged"),
        (lambda d: d["model"]["vocab"].update(x=7), "ids are not 0 to"),
        (lambda d: d["model"]["merges"].append(["a", "qqq"]), "`qqq` out of vocabulary"),
        (lambda d: d["model"]["merges"].append(["a", "b", "c"]), "damaged"),
        (lambda d: d["model"].update(vocab=5), "damaged"),
        (lambda d: d["model"].pop("merges"), "damaged"),
        (lambda d: d["added_tokens"][0].pop("lstrip"), "damaged"),
        (lambda d: d.update(added_tokens=[3]), "damaged"),
        (lambda d: d.update(post_processor={"type": "TemplateProcessing", "single": [1]}), "damaged"),
    ],
)
def test_other_kinds_and_damaged_files_are_one_line(folder: Path, edit: Edit, said: str) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    edit(data)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UserError) as caught:
        load(folder)
    assert "tokenizer.json: " in str(caught.value) and said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("merges.txt", None, "merges.txt: No such file"),
        ("merges.txt", b"#version: 0.2\na b c\n", "merges.txt: damaged"),
        ("merges.txt", b"#version: 0.2\nqqq a</w>\n", "merge 1 names 'qqq'"),
        ("vocab.json", b'{"a</w>": 0, "b": 2}', "vocab.json: ids are not"),
        ("vocab.json", b'{"a</w>": 0}', "vocab.json: lacks <unk>"),
        ("vocab.json", b'{"a</w>": "x"}', "vocab.json: "),
        ("tokenizer_config.json", b'{"added_tokens_decoder": 1}', "tokenizer_config.json: damaged"),
        ("tokenizer_config.json", b'{"tokenizer_class": "XLMTokenizer"}', "tokenizer_class is 'XLMTokenizer'; only GPT-1's and ours"),
    ],
)
def test_damaged_pairs_of_files_are_one_line(published: Path, tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    shutil.copytree(published, tmp_path / "tok")
    if content is None:
        (tmp_path / "tok" / name).unlink()
    else:
        (tmp_path / "tok" / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        load(tmp_path / "tok")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_piece_of_one_letter_that_transformers_added_is_no_letter_of_words(tmp_path: Path, published: Path) -> None:
    """Its add_tokens finds such a piece before words are cut, and by its flags not inside of one."""
    load(published).save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    flags = {"single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    data["added_tokens"].append({"id": load(published).vocabulary.size, "content": "ξ", **flags})
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    tool = load(tmp_path)
    (ids,) = tool.encode(["ξ aξa"])
    assert ids[0] == tool.vocabulary.size - 1 and ids.count(tool.vocabulary.size - 1) == 1 and tool.vocabulary.unk in ids
    tool.save(tmp_path / "saved")
    (tmp_path / "saved" / "tokenizer.json").unlink()
    assert load(tmp_path / "saved").vocabulary == tool.vocabulary and load(tmp_path / "saved").encode(["ξ aξa"]) == [ids]


def test_the_last_merge_may_be_an_added_piece_too(tmp_path: Path, published: Path) -> None:
    """As add_tokens of transformers leaves a vocabulary that holds the piece already."""
    load(published).save(tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    last = max(data["model"]["vocab"], key=data["model"]["vocab"].get)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    data["added_tokens"].append({"id": data["model"]["vocab"][last], "content": last, **flags})
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    assert load(tmp_path).encode(TEXT) == load(published).encode(TEXT)
    data["model"]["merges"].append(["x", "new"])
    data["added_tokens"].append({"id": len(data["model"]["vocab"]), "content": "xnew", **flags})
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(UserError, match="`new` out of vocabulary"):
        load(tmp_path)


def test_a_vocabulary_that_is_cased_keeps_marks_and_one_that_is_not_drops_them() -> None:
    line = SENTENCES["devanagari"][0]
    kept, dropped = (word_bpe.train([line] * 3, 100, rule) for rule in (Normalization(), Normalization(strip_accents=True)))
    bare = lambda tool: tool.decode(tool.encode([line])[0]).replace(" ", "")
    assert bare(kept) == unicodedata.normalize("NFC", line).replace(" ", "") != bare(dropped)
