"""Writes docs/recipe_list.md from the docstrings of configs/, which are the home of what it says: `python docs/recipe_list.py`."""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "recipe_list.md"
HEAD = """# Every recipe

<!-- python docs/recipe_list.py writes this page from the docstrings of configs/: change those. -->

Of each recipe the paper, the command, what it was run on and what to expect. DATA is a folder of
[`jaxenc data`](building_data.md), RUN a new directory; [recipes](recipes.md) says how to choose one and change its
fields.
"""


def markdown(docstring: str) -> str:
    """A docstring as Markdown: paragraphs of lines up to 120 characters, commands indented as they are."""
    parts = []
    for part in docstring.split("\n\n"):
        command = part.startswith("    ")
        parts.append(part if command else textwrap.fill(" ".join(part.split()), 120, break_long_words=False, break_on_hyphens=False))
    return "\n\n".join(parts)


def docstring(path: Path) -> str:
    """That of a file, without running it."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for folder in sorted(path.parent for path in (ROOT / "configs").glob("*/__init__.py")):
        parts.append(f"## {folder.name}\n")
        for path in sorted(folder.glob("[!_]*.py")):
            parts.append(f"### {folder.name}/{path.stem}\n\n{markdown(docstring(path))}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
