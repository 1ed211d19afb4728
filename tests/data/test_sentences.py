import pytest

from jaxenc.data.sentences import split


@pytest.mark.parametrize(
    "line, expected",
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('"Where?" she asked. (It was late.) He left.', ['"Where?" she asked.', "(It was late.)", "He left."]),
        ("Mr. Smith met J. R. Hill in the U.S. Army, e.g. Bob.", ["Mr. Smith met J. R. Hill in the U.S. Army, e.g. Bob."]),
        ("It cost 3.5 m. of rope. So I did as I. Then we went.", ["It cost 3.5 m. of rope.", "So I did as I.", "Then we went."]),
        ("Wait... Stop!! “Why?” “So.”", ["Wait...", "Stop!!", "“Why?”", "“So.”"]),
        ("Москва. Это город.", ["Москва.", "Это город."]),
        ("你好。世界！再见", ["你好。", "世界！", "再见"]),
        ("no end at all", ["no end at all"]),
        ("   ", []),
    ],
)
def test_the_rule(line, expected):
    assert [sentence.strip() for sentence in split(line)] == expected


def test_nothing_is_lost_and_a_sentence_starts_with_the_blanks_before_it():
    line = "A bb.  C d?\tE (f.) “G!” h. i J. K. 5. Ll.\u00a0M。 N。O"
    assert "".join(split(f" {line}\t ")) == line
    assert split(line) == ["A bb.", "  C d?", "\tE (f.) “G!” h. i J. K. 5.", " Ll.", "\u00a0M。", " N。", "O"]
