"""Subtitles, SubRip (.srt) and WebVTT (.vtt): the spoken text, without numbers and times."""

import io
import re
from collections.abc import Iterator

from jaxenc.data.readers.document import Counts, Document, bounded
from jaxenc.data.readers.encoding import decoded
from jaxenc.data.readers.streams import HEAD, line_blocks

_TIMES = re.compile(r"\s*(\d+:)?\d+:\d+[.,]\d+\s*-->")
_BESIDE = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)\b")
_MARKUP = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")


def documents(name: str, file: io.BufferedReader, counts: Counts) -> Iterator[Document]:
    """One document: a line for each line that is shown. The lines of a cue before its times, and blocks without times, are left out."""

    def lines() -> Iterator[str]:
        shown = False
        for _, block in line_blocks(file, HEAD):
            for line in decoded(block, name, counts).split("\n"):
                if not line.strip() or (_BESIDE.match(line) and not shown):
                    shown = False
                elif _TIMES.match(line):
                    shown = True
                elif shown and (text := _MARKUP.sub("", line).strip()):
                    yield text

    yield from bounded(f"{name}:1", lines(), counts)
