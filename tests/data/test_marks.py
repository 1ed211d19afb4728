"""How many marks a rule of reading loses, and that `jaxenc tokenizer` and `jaxenc data` say so."""

import itertools
import unicodedata
from pathlib import Path

import pytest
from tokenizers import normalizers

from jaxenc.cli import tokenizer as command
from jaxenc.cli.parser import Parser
from jaxenc.data.build import build
from jaxenc.data.tokenizers import marks, wordpiece
from jaxenc.data.tokenizers.marks import Marks
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from tests.data.scripts import SENTENCES

BERT = normalizers.BertNormalizer(True, True, True, True).normalize_str
MANY = {"tibetan", "devanagari", "khmer", "arabic", "hebrew", "vietnamese", "yoruba", "thai", "nko", "thaana", "syriac", "japanese"}


def test_counts_are_those_of_pythons_tables() -> None:
    text = "Ångström क्‍षि a"
    found = marks.count([text], BERT)
    apart = unicodedata.normalize("NFD", text)
    assert found.letters == sum(unicodedata.category(c)[0] == "L" for c in apart) == 11
    assert (found.marks, found.lost) == (5, 4)  # ring, dots, virama, joiner and the sign i, which has a width and stays


def test_r01_scripts_that_lose_their_vowels_are_told_from_accents() -> None:
    assert {name for name in MANY if not marks.count(SENTENCES[name], BERT).many} == set()
    french = "Le chat dort sur la table et le chien dans le jardin : nous étions à Paris pour trois jours, puis ils sont partis."
    assert marks.count([french], BERT).lost == 2 and not marks.count([french], BERT).many
    assert not marks.count(["the quick brown fox"], BERT).many and not Marks().many


def test_a_rule_that_keeps_marks_is_not_counted() -> None:
    assert marks.count(SENTENCES["tibetan"], normalizers.NFC().normalize_str) == Marks()


@pytest.mark.parametrize("most", [1, 50, 10_000])
def test_a_sample_is_even_and_bounded_and_leaves_the_texts_alone(most: int) -> None:
    texts = [f"text {n:03d}" for n in range(500)]
    sample: list[str] = []
    assert list(marks.sampled(texts, sample, most)) == texts
    assert sum(map(len, sample)) <= max(most, 8) and sample[0] == texts[0]
    numbers = [int(text[5:]) for text in sample]
    assert len({b - a for a, b in itertools.pairwise(numbers)}) <= 1


def run(*arguments: object) -> int:
    parser = Parser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "hindi.txt"
    path.write_text("\n\n".join(SENTENCES["devanagari"] * 5), encoding="utf-8")
    return path


SIZES = {"wordpiece": 200, "bpe": 280, "word_bpe": 200, "unigram": 100, "characters": 20}


@pytest.mark.parametrize("kind, size", SIZES.items())
def test_r01_the_tokenizer_says_what_strip_accents_loses(kind: str, size: int, text: Path, tmp_path: Path, capsys) -> None:
    run("--input", text, "--type", kind, "--vocab-size", size, "--out", tmp_path / "kept")
    assert "the text's marks" not in capsys.readouterr().err
    run("--input", text, "--type", kind, "--vocab-size", size, "--strip-accents", "--out", tmp_path / "without")
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "the text's marks" in line]
    found = marks.count(SENTENCES["devanagari"], lambda text: "".join(c for c in text if unicodedata.category(c) != "Mn"))
    share, density = f"{found.lost / found.marks:.0%}", f"{100 * found.lost / found.letters:.0f}"
    assert said == (
        f"tokenizer: warning: --strip-accents drops {share} of the text's marks (vowel signs, tones, accents, joiners), {density} per 100 "
        "letters; leave it out to keep them"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_r01_data_says_what_the_rule_of_a_reused_folder_loses(workers: int, text: Path, tmp_path: Path, capsys) -> None:
    wordpiece.train(SENTENCES["devanagari"] * 3, 200).save(tmp_path / "kept")
    build([str(text)], tmp_path / "kept", tmp_path / "one", 0.2, workers)
    assert "the text's marks" not in capsys.readouterr().err
    wordpiece.from_vocab(tmp_path / "kept" / "vocab.txt", PublishedRules(True, True)).save(tmp_path / "uncased")
    build([str(text)], tmp_path / "uncased", tmp_path / "two", 0.2, workers)
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "the text's marks" in line]
    found = marks.count(SENTENCES["devanagari"], BERT)
    assert said.startswith(f"data: warning: the tokenizer drops {found.lost / found.marks:.0%} of the text's marks (vowel signs,")
    assert said.endswith("use one made for this script, or make one with `jaxenc tokenizer`, which keeps marks")
