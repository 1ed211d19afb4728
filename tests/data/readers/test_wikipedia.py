"""Wikipedia's dumps: articles only, and only their prose."""

import bz2
import time

import pytest

from jaxenc.data.readers.wikitext import prose
from jaxenc.errors import UserError
from tests.data.readers.reading import found, lines

TEXT = """{{Infobox person|name={{lang|en|Ada}}|born=1815}}
[[File:Ada.jpg|thumb|A [[portrait]] of Ada]]
'''Ada Lovelace''' ({{IPA|x}}; 1815&ndash;1852) was a [[mathematics|mathematician]]<ref name="a">{{cite}}</ref>, [[poet]].<ref name="a" />

== Life ==
She met [[Charles Babbage]].<!-- a comment
over lines --> See [https://example.org the page] and [https://example.org].
* a list
# a number
{| class="wikitable"
| cell {{a}}
|}
A formula <math>x^2</math> is gone.<br/>A word: [[wikt:word|word]]. [[:Category:Women]] __NOTOC__
[[Category:Mathematicians]]
[[de:Ada Lovelace]]
"""
PROSE = (
    "Ada Lovelace (1815–1852) was a mathematician, poet.",
    "She met Charles Babbage. See the page and.",
    "A formula is gone. A word: word. Category:Women",
)


def page(title: str, text: str, ns: int = 0, more: str = "") -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"<page><title>{title}</title><ns>{ns}</ns>{more}<revision><model>wikitext</model><text>{text}</text></revision></page>"


def dump(*pages: str) -> str:
    return '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11"><siteinfo/>' + "".join(pages) + "</mediawiki>"


def test_markup_is_left_out():
    assert tuple(prose(TEXT)) == PROSE


@pytest.mark.parametrize(
    "text, kept",
    [
        ("{{a|{{b}} c}} x", ["x"]),
        ("{{open x\n\ny", ["y"]),
        ("a}} b", ["a}} b"]),
        ("<ref>a<ref>b</ref> c", ["c"]),
        ("a <ref>b", ["a b"]),
        ("[[a|b|c]] [[d]]s [[open", ["c ds open"]),
        ("{|\n| {{x}}\n{|\n|}\n|}\nz", ["z"]),
        ("''a'' '''''b'''''", ["a b"]),
        ("1 < 2 &amp; 3 > 2", ["1 < 2 & 3 > 2"]),
        ("[ˈfoʊ] and [[Star Trek: Voyager]]", ["[ˈfoʊ] and Star Trek: Voyager"]),
    ],
)
def test_rules_of_wikitext(text, kept):
    assert prose(text) == kept


@pytest.mark.parametrize("piece", ["{{", "[[", "}}{{", "<ref>", "<ref name=x ", "[http://a ", "(", "<!--", "{|", "[[a|", "''", "((,;"])
def test_time_is_in_proportion_to_the_length(piece):
    start = time.process_time()
    prose(piece * 20_000)
    assert time.process_time() - start < 1


def test_a_dump_gives_its_articles(tmp_path):
    pages = (
        page("Ada", TEXT),
        page("Talk:Ada", "no", 1),
        page("Old", "#REDIRECT [[Ada]]", 0, '<redirect title="Ada"/>'),
        page("B", "bee"),
        page("C", "{{x}}"),
    )
    (tmp_path / "enwiki-pages-articles.xml.bz2").write_bytes(bz2.compress(dump(*pages).encode()))
    documents, counts = found(tmp_path / "enwiki-pages-articles.xml.bz2")
    assert [d.lines for d in documents] == [PROSE, ("bee",)]
    assert documents[1].source.endswith("bz2:B") and (counts.skipped_pages, counts.empty_documents) == (2, 1)


def test_a_dump_that_ends_too_early_is_one_line(tmp_path):
    (tmp_path / "a.xml").write_text(dump(page("A", "a"))[:-20])
    with pytest.raises(UserError, match=r"a\.xml: damaged, or it ends too early"):
        lines(tmp_path / "a.xml")


def test_what_wikiextractor_wrote(tmp_path):
    (tmp_path / "wiki_00").write_text(
        '<doc id="1" url="https://x?curid=1" title="A">\nA\n\nFirst &lt;one&gt;.\nSecond.\n\n</doc>\n'
        '<doc id="2" url="u" title="B">\nB\n</doc>\n'
    )
    documents, counts = found(tmp_path)
    assert [d.lines for d in documents] == [("First <one>.", "Second.")] and counts.empty_documents == 1
    (tmp_path / "wiki_00").write_text('{"id": "1", "url": "u", "title": "A", "text": "A\\n\\nFirst."}\n')
    assert lines(tmp_path) == [("A", "First.")]


@pytest.mark.parametrize("rest", ["", '<doc id="3" url="u" title="C">\nC\n\nThird.\n</doc>\n'])
def test_what_wikiextractor_did_not_finish_is_named(tmp_path, rest):
    first = '<doc id="1" url="u" title="A">\nA\n\nFirst.\n</doc>\n'
    (tmp_path / "wiki_00").write_text(first + '<doc id="2" url="u" title="B">\nB\n\nSecond.\n' + rest)
    with pytest.raises(UserError, match="wiki_00:6: damaged: this document has no </doc>; extract it again"):
        lines(tmp_path / "wiki_00")
