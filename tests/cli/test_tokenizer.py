import dataclasses
import functools
from collections import Counter

import pytest

from jaxenc.cli import tokenizer
from jaxenc.cli.parser import Parser
from jaxenc.data.tokenizers import fit, from_text, load
from jaxenc.data.tokenizers.lines import thinned
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.errors import UserError
from tests.data.scripts import SENTENCES


def run(*arguments):
    parser = Parser()
    tokenizer.add_arguments(parser)
    return tokenizer.run(parser.parse_args([str(argument) for argument in arguments]))


SIZES = {"wordpiece": 80, "bpe": 280, "word_bpe": 80, "unigram": 60, "characters": 20}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"Ångström number {i} is here. It is not there." for i in range(60)))
    return path


@pytest.mark.parametrize(
    "flags, decoded",
    [
        ([], "Ångström"),
        (["--no-lowercase", "--no-strip-accents", "--normalize", "nfc"], "Ångström"),
        (["--lowercase"], "ångström"),
        (["--strip-accents", "--normalize", "nfkc"], "Angstrom"),
        (["--lowercase", "--strip-accents"], "angstrom"),
        (["--lowercase", "--strip-accents", "--normalize", "none"], "angstrom"),
    ],
)
@pytest.mark.parametrize("kind, size", SIZES.items())
def test_r36_every_type_takes_the_same_flags(kind, size, text, tmp_path, flags, decoded):
    run("--input", text, "--type", kind, "--vocab-size", size, "--out", tmp_path / "tok", *flags)
    tool = load(tmp_path / "tok")
    assert tool.decode(tool.encode(["Ångström"])[0]) == decoded


def test_the_size_is_told_and_so_is_a_text_that_gives_less(text, tmp_path, capsys):
    assert run("--input", text, "--vocab-size", 60, "--out", tmp_path / "small") == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'small'}: 60 pieces\n" and "fewer pieces than" not in err
    run("--input", text, "--vocab-size", 5000, "--out", tmp_path / "large")
    assert "fewer pieces than --vocab-size 5,000" in capsys.readouterr().err


def test_byte_level_bpe_and_unigram_have_the_specials_of_their_families(text, tmp_path, capsys):
    run("--input", text, "--type", "bpe", "--vocab-size", 280, "--out", tmp_path / "bpe")
    assert load(tmp_path / "bpe").vocabulary.size == 280
    capsys.readouterr()
    assert run("--input", text, "--type", "unigram", "--vocab-size", 60, "--out", tmp_path / "tok") == 0
    tool = load(tmp_path / "tok")
    assert tool.vocabulary.eod == 7 and capsys.readouterr().out == f"{tmp_path / 'tok'}: {tool.vocabulary.size} pieces\n"
    with pytest.raises(UserError, match="no such file"):
        run("--input", tmp_path / "none.txt", "--type", "unigram", "--out", tmp_path / "other")


def test_what_is_in_the_way_stays(text, tmp_path):
    with pytest.raises(UserError, match="exists already"):
        run("--input", text, "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_vocabulary_too_large_for_any_memory_is_refused(text, tmp_path):
    """The library would abort the process."""
    with pytest.raises(UserError, match="--vocab-size 1000000000000: too large"):
        run("--input", text, "--vocab-size", 10**12, "--out", tmp_path / "tok")


def test_words_to_predict_and_to_read(text, tmp_path, capsys):
    assert run("--input", text, "--type", "characters", "--vocab-size", 8, "--out", tmp_path / "tok") == 0
    tool = load(tmp_path / "tok")
    assert capsys.readouterr() == (f"{tmp_path / 'tok'}: 8 words to predict, {tool.vocabulary.words} to read\n", "")
    assert tool.vocabulary.size == 8 and tool.token(3) == "." and tool.characters() is not None
    run("--input", text, "--type", "characters", "--vocab-size", 900, "--lowercase", "--pretokenized", "--out", tmp_path / "blanks")
    assert "fewer words than --vocab-size 900" in capsys.readouterr().err
    assert 2 not in load(tmp_path / "blanks").encode(["A\u030angström here."])[0] and load(tmp_path / "tok").encode(["ångström"]) == [[2]]
    with pytest.raises(UserError, match="--type bpe: splits words itself"):
        run("--input", text, "--type", "bpe", "--pretokenized", "--out", tmp_path / "other")


def test_b24_a_line_of_a_megabyte_is_trained_on_and_what_is_left_out_is_said(text, tmp_path, capsys, monkeypatch):
    """Beside short lines. Nothing is left out of it; above the bound the share is said, and both kinds of lines are still heard."""
    (tmp_path / "long.txt").write_text("acgt" * 250_000)
    arguments = ["--input", text, tmp_path / "long.txt", "--type", "bpe", "--vocab-size", 300]
    run(*arguments, "--out", tmp_path / "all")
    assert "left out" not in capsys.readouterr().err
    monkeypatch.setattr(from_text, "thinned", functools.partial(thinned, most=20_000))
    run(*arguments, "--out", tmp_path / "some")
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    start = "tokenizer: 98.1% of the text was left out: of 1,000,000 characters in words of more than 100 characters, 16,"
    assert said.startswith(start) and said.endswith(" are trained on")
    for name in ("all", "some"):
        tool = load(tmp_path / name)
        assert len(tool.encode(["acgtacgt" * 8])[0]) < 16 and len(tool.encode(["number"])[0]) < 6


@pytest.mark.parametrize("kind", ["wordpiece", "word_bpe"])
def test_r05_words_that_are_cut_are_said_and_the_advice_works(kind, tmp_path, capsys):
    """DNA and Thai without blanks: no vocabulary gives unknown pieces, and those that are named find pieces across the cuts."""
    dna = ["".join("acgt"[(n * n + 3 * n * line) % 7 % 4] for n in range(400)) for line in range(20)]
    (tmp_path / "a.txt").write_text("\n".join([*dna, "ที่นี่มีน้ำใสมาก" * 30]), encoding="utf-8")
    run("--input", tmp_path / "a.txt", "--type", kind, "--vocab-size", 200, "--out", tmp_path / "cut")
    said = capsys.readouterr().err
    assert f"100.0% of the text is in words of more than 100 characters, which --type {kind} cuts into parts of at most 100" in said
    assert "--type unigram and bpe find pieces anywhere in them" in said
    for other in ("unigram", "bpe"):
        run("--input", tmp_path / "a.txt", "--type", other, "--vocab-size", 300, "--out", tmp_path / other)
        assert "words of more than" not in capsys.readouterr().err
        tool = load(tmp_path / other)
        ((ids, numbers),) = tool.encode_words(dna[:1])
        assert tool.vocabulary.unk not in ids and set(numbers) == {0}


def test_how_the_pieces_fit_the_text_is_said(text, tmp_path, capsys):
    """Against counts of the tokens of the whole text, which is smaller than the sample; the rule of thumb where many pieces are rare."""
    for size in (60, 90):
        run("--input", text, "--vocab-size", size, "--out", tmp_path / str(size))
        said = capsys.readouterr().err.splitlines()
        tool, lines = load(tmp_path / str(size)), text.read_text().split("\n")
        tokens = [index for ids in tool.encode(lines) for index in ids]
        times = Counter(tokens)
        counts = [times[index] for index in range(tool.vocabulary.size) if len(tool.token(index).removeprefix("##")) > 1]
        counts = counts[len(tool.vocabulary.reserved) :]
        rare = sum(count < 100 for count in counts) / len(counts)
        words, characters = sum(len(line.split()) for line in lines), sum(map(len, lines))
        assert f"tokenizer: {characters / len(tokens):.2f} characters a token, {len(tokens) / words:.2f} tokens a word" in said
        (line,) = [line for line in said if "fewer than 100 times" in line]
        assert (
            line.startswith(f"tokenizer: {rare:.1%} of its pieces of two or more characters are seen")
            and rare > 0.05
            and line.endswith("a rule of thumb is 5% at most: use more text or a smaller --vocab-size")
        )
    (tmp_path / "thai.txt").write_text("ที่นี่มีน้ำใสมาก" * 3000, encoding="utf-8")
    run("--input", tmp_path / "thai.txt", "--type", "unigram", "--vocab-size", 40, "--out", tmp_path / "thai")
    said = capsys.readouterr().err
    assert "characters a token\n" in said and "tokens a word" not in said and "tokenizer: 0.0% of its pieces" not in said


@pytest.mark.parametrize("script", ["chinese", "japanese", "thai", "lao", "khmer", "burmese", "tibetan", "korean", "devanagari"])
def test_words_are_counted_where_blanks_stand_between_them(script):
    """A short sentence a line has a blank or two in every script; a name in Latin letters changes nothing."""
    lines = [f"{line} {name}" for line in SENTENCES[script] for name in ("", "ABC", "JAX")]
    found = fit.measured(unigram.train(lines * 9, 200), lines, len(lines))
    found = dataclasses.replace(found, rare=0.5)
    spaced = script in ("korean", "devanagari")
    assert found.words == (sum(len(line.split()) for line in lines) if spaced else 0)
    first, second = found.lines
    assert ("tokens a word" in first) == spaced == ("rule of thumb" in second) and "50.0% of its pieces" in second


def test_rare_pieces_of_a_large_text_are_not_counted_in_a_small_sample(text, tmp_path):
    """Counts are scaled to the text, and where a hundred of it are fewer than five of the sample nothing is said."""
    run("--input", text, "--vocab-size", 60, "--out", tmp_path / "tok")
    tool, lines = load(tmp_path / "tok"), text.read_text().split("\n")
    held = sum(map(len, lines))
    whole, scaled, unknown = (fit.measured(tool, lines, times * held) for times in (1, 10, 21))
    assert whole.rare > scaled.rare >= 0 > unknown.rare and not any("times" in line for line in unknown.lines)


def test_a_text_is_shown_as_the_vocabulary_reads_it(text, tmp_path, capsys):
    """Ids and places as `encode_offsets` has them; what is removed, dropped and unknown by number and name."""
    run("--input", text, "--vocab-size", 80, "--lowercase", "--strip-accents", "--out", tmp_path / "tok")
    tool, given = load(tmp_path / "tok"), "Th\u00ade \u0e01 \u00c5n\u200e."
    capsys.readouterr()
    assert run("--inspect", tmp_path / "tok", given) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "read as: the \u0e01 an." and out[2] == "removed: U+00AD SOFT HYPHEN 1, U+200E LEFT-TO-RIGHT MARK 1"
    assert out[3] == "marks dropped: U+030A COMBINING RING ABOVE 1" and out[-1].startswith(
        "unknown characters: ก U+0E01 THAI CHARACTER KO KAI 1"
    )
    ((ids, places),) = tool.encode_offsets([given])
    rows = [line.split() for line in out[5:-1]]
    assert [(int(row[0]), row[1], row[2]) for row in rows] == [
        (i, f"{a}-{b}", tool.token(i)) for i, (a, b) in zip(ids, places, strict=True)
    ]
    assert [row[-1] == "unknown" for row in rows] == [index == tool.vocabulary.unk for index in ids]
    assert run("--inspect", tmp_path / "tok", " ") == 0 and capsys.readouterr().out.endswith("\n0 pieces\n")
    with pytest.raises(UserError, match="no tokenizer.json"):
        run("--inspect", tmp_path / "none", "a")


def test_a_piece_that_is_only_a_mark_has_no_text(tmp_path, capsys):
    """Its offsets are those of the letter after it, which the next piece has too."""
    unigram.train(["ban ker dip ok."] * 9, 32).save(tmp_path / "tok")
    assert run("--inspect", tmp_path / "tok", "ban zer.") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("   ")]
    marks = [row for row in rows if row[2] == "\u2581"]
    assert marks and all(row[3] == "''" for row in marks)
    assert "".join(row[3].strip("'") for row in rows) == "banzer."


def test_what_is_given_beside_inspect_is_refused(text, tmp_path, fails):
    """A text without quotes, a training, a second text; nothing is printed of the first."""
    assert fails("tokenizer", "--inspect", "tok", "A", "text", "to", "read.").startswith("jaxenc: text: ")
    assert "stands in quotes" in fails("tokenizer", "--inspect", "tok", "A", "text")
    for more in (["--input", str(text), "--out", str(tmp_path / "tok")], ["--workers=1"], ["--lowercase"], ["--inspect", "tok", "b"]):
        for given in (["--inspect", "tok", "a", *more], [*more, "--inspect", "tok", "a"]):
            said = fails("tokenizer", *given)
            assert said.startswith(f"jaxenc: {more[0].partition('=')[0]}: ") and "takes no other option" in said
    assert not (tmp_path / "tok").exists()
    assert "--workers: " in fails("data", "--inspect", "data", "--workers", "2") and "more: " in fails("data", "--inspect", "data", "more")
    assert "--out" in fails("tokenizer", "--input", str(text))
