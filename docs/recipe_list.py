"""Writes docs/recipe_list/, a page for each folder of configs/, from the docstrings there, which are the home of what the pages say:
`python docs/recipe_list.py`."""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "recipe_list"
NOTE = "<!-- python docs/recipe_list.py writes this page from the docstrings of configs/{name}/: change those. -->"


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


def page(folder: Path) -> str:
    """The page of one folder of recipes."""
    recipes = [f"## {folder.name}/{path.stem}\n\n{markdown(docstring(path))}\n" for path in sorted(folder.glob("[!_]*.py"))]
    return "\n".join([f"# {folder.name}\n\n{NOTE.format(name=folder.name)}\n", *recipes])


def pages() -> dict[Path, str]:
    """{file: what it holds}."""
    return {FOLDER / f"{path.parent.name}.md": page(path.parent) for path in sorted((ROOT / "configs").glob("*/__init__.py"))}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
