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
    assert split(line) == expected


def test_nothing_but_blanks_is_lost():
    line = "A b.  C d?\tE (f.) “G!” h. i J. K. 5. L"
    assert "".join("".join(split(line)).split()) == "".join(line.split())
