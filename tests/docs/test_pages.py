"""README and the pages of docs/: links lead somewhere, every page is in the index, prose is wrapped, the README stays one page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INDEX = ROOT / "docs" / "index.md"
LINES, WIDTH = 150, 120  # of the README, two or three screens; of prose


def anchors(page: Path) -> set[str]:
    """The targets that GitHub and MyST make of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_a_file_and_to_one_of_its_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.is_file(), f"{page}: {target}"
        assert page == PAGES[0] or there.suffix != ".md" or there in PAGES[1:], f"{page}: {target} is no page of the built documentation"
        if anchor:
            assert anchor in anchors(there), f"{page}: {target}#{anchor}"


def listed(page: Path) -> list[Path]:
    """The pages that the tables of contents of a page name, one by one or by a pattern, in order."""
    names = [line for block in re.findall(r"^```{toctree}\n(.*?)^```", page.read_text(), re.M | re.S) for line in block.splitlines()]
    return [there for name in names if not name.startswith(":") for there in sorted(page.parent.glob(f"{name}.md")) if there != page]


def test_every_page_is_in_the_index_once() -> None:
    found = [INDEX]
    for page in found:
        found += listed(page)
    assert sorted(found) == PAGES[1:]


def test_the_readme_is_one_page() -> None:
    assert len(PAGES[0].read_text().splitlines()) <= LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_is_wrapped(page: Path) -> None:
    """Not tables, blocks of code and code within a line, which cannot be broken."""
    code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        assert code or line.lstrip().startswith("|") or line.startswith("    ") or len(re.sub("`[^`]*`", "", line)) <= WIDTH, number
