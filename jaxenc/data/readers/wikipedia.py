"""Wikipedia: the prose of XML dumps (pages-articles.xml), and the output of wikiextractor."""

import html
import io
import xml.etree.ElementTree as xml
from collections.abc import Iterator

from jaxenc.data.readers import wikitext
from jaxenc.data.readers.document import Counts, Document, documents_of
from jaxenc.data.readers.encoding import decoded
from jaxenc.data.readers.streams import BLOCK, line_blocks
from jaxenc.errors import UserError


def documents(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[Document]:
    """A document for each article, without its title; the source of each is `name` and the title.

    An article is a page of namespace 0 that is not a redirect; others are skipped and counted, and so are pages that are not wikitext.
    `wikitext.prose` says what is kept of its text. Raises UserError for a damaged dump.
    """
    parser = xml.XMLPullParser(("start", "end"))
    root = None
    try:
        while block := file.read(BLOCK):
            parser.feed(block)
            for event, element in parser.read_events():
                if root is None:
                    root = element
                if event == "end" and _tag(element) == "page":
                    yield from _page(element, name, counts)
                    root.clear()  # else the pages that have been read stay in memory
        parser.close()
    except xml.ParseError as error:
        raise UserError(f"damaged, or it ends too early ({error})", name, "get it again") from error


def extracted(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[Document]:
    """A document for each `<doc ...>` that wikiextractor wrote, without its title; the source of each is `name` and its line.

    Raises UserError for one that is not closed: the file ends too early.
    """
    held: list[str] = []
    start, at = 0, 0  # start: line of the document that is open, 0 for none
    for first, block in line_blocks(file, BLOCK):
        for number, line in enumerate(decoded(block, name, counts).removesuffix("\n").split("\n"), first):
            if line.startswith("<doc id="):
                _must_be_closed(name, start)
                held, start, at = [], number, number + 1
            elif line.strip() == "</doc>":
                yield from documents_of("\n".join(held), f"{name}:{start}", counts)
                held, start = [], 0
            elif number != at:  # the line of the title
                held.append(html.unescape(line))
    _must_be_closed(name, start)


def _must_be_closed(name: str, start: int) -> None:
    if start:
        raise UserError("damaged: this document has no </doc>", f"{name}:{start}", "extract it again")


def _page(page: xml.Element, name: str, counts: Counts) -> Iterator[Document]:
    found = {_tag(element): element.text or "" for element in page.iter()}
    if found.get("ns", "0") != "0" or "redirect" in found or found.get("model", "wikitext") != "wikitext":
        counts.skipped_pages += 1
        return
    yield from documents_of("\n".join(wikitext.prose(found.get("text", ""))), f"{name}:{found.get('title', '')}", counts)


def _tag(element: xml.Element) -> str:
    return element.tag.rpartition("}")[2]
