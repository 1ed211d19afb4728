r"""The prose of an article of a wiki: wikitext without its markup, by a few rules that take linear time.

Left out: templates, tables, comments, references, formulas, code, galleries, files and images, categories, links to other languages,
headings, lists, and switches such as __NOTOC__. Of a link its label is kept, if it has one or leads to an article. What a template would
have written is lost: now and then a date or a number. As in BERT, whose authors took "only the text passages" of Wikipedia and ignored
"lists, tables, and headers" (Devlin et al. 2019, section 3.1).
"""

import html
import re

_DROPPED = "ref|math|chem|gallery|timeline|syntaxhighlight|source|code|pre|score|imagemap|table|templatestyles|graph|mapframe|hiero|nowiki"
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_TAG = re.compile(rf"<(/?)({_DROPPED})\b([^<>]*)>", re.I)
_OTHER_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_BREAK = re.compile(r"<br\s*/?>", re.I)
_BRACES = re.compile(r"\{\{|\}\}|\{\||\|\}")
_LINK = re.compile(r"\[\[|\]\]")
_WEB = re.compile(r"\[(?:(?:https?:|ftp:)?//|mailto:)[^\s\[\]]*+[ \t]*+([^\[\]\n]*+)\]")
_BARE_WEB = re.compile(r"\bhttps?://\S+")
_QUOTES = re.compile(r"'{2,5}")
_SWITCH = re.compile(r"__[A-Z]+__")
_LINE = re.compile(r"[=*#:;|!{}]|----")  # starts of headings, lists, and what is left of tables and templates
_EMPTY = re.compile(r"\(\s*+[,;]*+\s*+\)|（[，；、]*+）")
_OPENED = re.compile(r"\(\s*+[,;]\s*+")  # where a template stood
_SPACE = re.compile(r"[ \t\u00a0]+")
_PREFIX = re.compile(r"([\w -]{1,40}):(?!\s)")
_SISTERS = frozenset(
    "w wikipedia wikt wiktionary s wikisource q wikiquote b wikibooks d wikidata n wikinews v wikiversity voy species".split()
)


def prose(text: str) -> list[str]:
    """The paragraphs of an article's wikitext, without markup and none of them blank."""
    text = _COMMENT.sub("", text)
    text = _without_tags(text)
    text = _without_braces(text)
    text = _linked(text)
    text = _WEB.sub(r"\1", text)
    text = _OTHER_TAG.sub("", _BREAK.sub(" ", text))
    text = _SWITCH.sub("", _QUOTES.sub("", text))
    text = _BARE_WEB.sub("", html.unescape(text))
    out = []
    for line in text.split("\n"):
        if not _LINE.match(line.strip()):
            clean = _SPACE.sub(" ", _OPENED.sub("(", _EMPTY.sub("", line))).strip().replace(" ,", ",").replace(" .", ".")
            if any(c.isalnum() for c in clean):
                out.append(clean)
    return out


def _without_tags(text: str) -> str:
    """Without the elements of _DROPPED and their content; of one that is never closed only the tag is removed."""
    out, at, tags = [], 0, list(_TAG.finditer(text))
    last = {tag.group(2).lower(): tag.start() for tag in tags if tag.group(1)}
    inside = ""
    for tag in tags:
        closes, kind = bool(tag.group(1)), tag.group(2).lower()
        if inside:
            if closes and kind == inside:
                inside, at = "", tag.end()
        else:
            out.append(text[at : tag.start()])
            at = tag.end()
            if not closes and not tag.group(3).rstrip().endswith("/") and last.get(kind, -1) > tag.start():
                inside = kind
    return "".join([*out, text[at:]])


def _without_braces(text: str) -> str:
    """Without templates and tables, nested ones too. After an opening mark that is never closed the text is kept."""
    marks, stack, closed = list(_BRACES.finditer(text)), [], {}
    for index, mark in enumerate(marks):
        if mark.group() in ("{{", "{|"):
            stack.append(index)
        elif stack:
            wanted = "{{" if mark.group() == "}}" else "{|"
            while len(stack) > 1 and marks[stack[-1]].group() != wanted:
                stack.pop()
            if marks[stack[-1]].group() == wanted:
                closed[stack.pop()] = index
    out, at, index = [], 0, 0
    while index < len(marks):
        if index in closed:
            out.append(text[at : marks[index].start()])
            index = closed[index]
            at = marks[index].end()
        index += 1
    return "".join([*out, text[at:]])


def _linked(text: str) -> str:
    """Links as their labels; files, images, categories and links to other languages are left out with everything in them."""
    out: list[list[str]] = [[]]
    at = 0
    for mark in _LINK.finditer(text):
        out[-1].append(text[at : mark.start()])
        at = mark.end()
        if mark.group() == "[[":
            out.append([])
        elif len(out) > 1:
            inner = "".join(out.pop())
            out[-1].append(_label(inner))
    out[-1].append(text[at:])
    return "".join("".join(part) for part in out)


def _label(inner: str) -> str:
    target, _, label = inner.partition("|")
    if target.startswith(":"):
        return label or target[1:]
    prefix = _PREFIX.match(target)
    if prefix and prefix.group(1).lower() not in _SISTERS:
        return ""  # File:, Category:, their names in other languages, and codes of languages
    return label.rpartition("|")[2] if label else target[prefix.end() if prefix else 0 :]
