import unicodedata

import pytest

from jaxenc.data import sentence_terminal
from jaxenc.data.build import build
from jaxenc.data.sentences import split
from jaxenc.data.tokenizers import wordpiece


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
        # Dots more than 24 characters before the full stop are not looked at: this is no abbreviation.
        (f"See www.{'a' * 30}. Next", [f"See www.{'a' * 30}.", "Next"]),
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


# Two sentences in each script.
SCRIPTS = {
    "Hindi": ("यह पहला वाक्य है।", " यह दूसरा है।"),
    "Sanskrit": ("धर्मक्षेत्रे कुरुक्षेत्रे समवेता युयुत्सवः॥ १ ॥", " मामकाः पाण्डवाश्चैव॥"),
    "Urdu": ("یہ پہلا جملہ ہے۔", " یہ دوسرا ہے۔"),
    "Arabic": ("هل أنت هنا؟", " نعم أنا هنا."),
    "Burmese": ("ကျွန်တော်သွားသည်။", "သူလာသည်။"),
    "Khmer": ("ខ្ញុំទៅផ្ទះ។", "គាត់មកវិញ។"),
    "Amharic": ("ሰላም ነው።", " ደህና ነኝ።"),
    "Armenian": ("Սա առաջինն է։", " Սա երկրորդն է։"),
    "Chinese": ("他说：“你好。”", "我走了。"),
    "Japanese": ("これは３．５です．", "次に進む．"),
    "Javanese": ("ꦲꦏ꧀ꦱꦫ꧉", "ꦗꦮ꧉"),
    "Mongolian": ("ᠮᠣᠩᠭᠣᠯ᠃", " ᠪᠢᠴᠢᠭ᠃"),
    "Ol Chiki": ("ᱥᱟᱱᱛᱟᱲᱤ᱾", " ᱯᱟᱹᱨᱥᱤ᱾"),
    "Punjabi": ("ਇਹ ਪਹਿਲਾ ਹੈ।", " ਇਹ ਦੂਜਾ ਹੈ।"),
    "mixed marks": ('क्या सच में?!।"', " हाँ, सच।"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_r03_sentences_end_in_every_script(script):
    assert split("".join(SCRIPTS[script])) == list(SCRIPTS[script])


def test_r03_full_width_stops_in_numbers_and_rows_of_them_end_nothing():
    for text in ("３．５", "そう．．．でも", "１．２．３"):
        assert split(text) == [text]
    assert split("値は３．次は") == ["値は３．", "次は"]


def test_r03_marks_of_latin_script_need_a_blank_and_a_capital():
    assert split("Really‼ He said so. Wow‽ no") == ["Really‼", " He said so.", " Wow‽ no"]


def test_r03_the_table_is_that_of_unicode():
    """Facts of PropList.txt 17.0 and what holds of all of them: they are punctuation, or newer than this Python's Unicode."""
    found = sentence_terminal.characters()
    assert len(found) == len(set(found)) == 172 and list(found) == sorted(found)
    assert {unicodedata.category(c) for c in found} == {"Po", "Cn"}
    assert set("!.?։؟۔।॥။።។᠃᱾。！？｡﹖꧉\U00011047\U0001bc9f") <= set(found) and not set("།:;,…·՞;¿") & set(found)


def test_a_comma_of_no_script_ends_a_sentence():
    """Those of COMMAS, and what Unicode calls a comma, a semicolon or a colon (not Syriac's, which are full stops by their older names)."""
    names = {chr(i): unicodedata.name(chr(i), "") for i in range(0x110000)}
    commas = {c for c, name in names.items() if any(word in name.split() for word in ("COMMA", "SEMICOLON", "COLON"))}
    assert len(commas) > 30
    for comma in commas | set(sentence_terminal.COMMAS):
        assert split(f"ka{comma}ka{comma} Ka") == [f"ka{comma}ka{comma} Ka"], names[comma]
    assert set(sentence_terminal.COMMAS) <= set(sentence_terminal.characters())
    assert split("သူသွားသည်၊ကျွန်တော်လာသည်။သူလာသည်။") == ["သူသွားသည်၊ကျွန်တော်လာသည်။", "သူလာသည်။"]
    assert split("ꦲꦏ꧀ꦱꦫ꧈ꦗꦮ꧉ꦗꦮ") == ["ꦲꦏ꧀ꦱꦫ꧈ꦗꦮ꧉", "ꦗꦮ"]


def test_r03_a_hindi_corpus_has_its_sentences(tmp_path):
    """The case as it was reported: 300 documents of a line each, six sentences a line."""
    line = " ".join(f"यह वाक्य संख्या {i} है।" for i in range(6))
    (tmp_path / "a.txt").write_text("\n\n".join([line] * 300), encoding="utf-8")
    wordpiece.train([line], 60).save(tmp_path / "tok")
    result = build([str(tmp_path / "a.txt")], tmp_path / "tok", tmp_path / "data", held_out=0)
    assert (result.splits["train"].documents, result.splits["train"].sentences) == (300, 1800)
