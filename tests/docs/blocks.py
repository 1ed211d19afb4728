"""The blocks of code of README and docs/, and the command lines in them.

Every block is checked (tests/docs/test_blocks.py) unless a comment above it, which only the source shows, says why not:

    <!-- output -->             what a command prints, a folder, a file: nothing to run
    <!-- not run: REASON -->    what it needs that the tests do not have
    <!-- run by FILE -->        a test elsewhere runs it, as it stands on the page
"""

import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts))
MARK = re.compile(r"^ *<!-- (output|not run: .+|run by \S+) -->$")
FENCE = re.compile(r"^( *)(`{3,})(\{?[\w-]*\}?)")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced or an indented block. language: of the fence, '' for none. mark: of the comment above it, '' for none."""

    page: Path
    line: int
    language: str
    text: str
    mark: str

    @property
    def name(self) -> str:
        """Where it stands, for messages and ids of tests."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order; not those that are directives of Sphinx."""
    lines, number, mark = page.read_text().splitlines(), 0, ""
    while number < len(lines):
        line, start = lines[number], number
        indented = line.startswith("    ") and not lines[number - 1].strip()
        if fence := FENCE.match(line):
            number = next(i for i in range(start + 1, len(lines)) if lines[i].strip() == fence[2])
            text = [one.removeprefix(fence[1]) for one in lines[start + 1 : number]]
        elif indented:
            while number + 1 < len(lines) and (lines[number + 1].startswith("    ") or not lines[number + 1].strip()):
                number += 1
            text = [one[4:] for one in lines[start : number + 1]]
        if (fence or indented) and not (fence and fence[3].startswith("{")):
            yield Block(page, start + 1, fence[3] if fence else "", "\n".join(text).strip("\n") + "\n", mark)
        found = MARK.match(line)
        mark = found[1] if found else mark if not line.strip() else ""
        number += 1


def commands(text: str) -> list[str]:
    """The command lines of a block: those after `$ ` where there are such, else all; lines that end in a backslash put together, without
    empty ones and comments."""
    lines = text.replace("\\\n", " ").splitlines()
    prompts = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in prompts or lines if line.strip() and not line.lstrip().startswith("#")]


def words(command: str) -> list[list[str]]:
    """The words of a command line as the shell cuts them, a list for each of the commands between `&&`, `|` and `;`."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split, parts = True, [[]]
    for word in lexer:
        if set(word) <= set("&|;"):
            parts.append([])
        else:
            parts[-1].append(word)
    return parts
