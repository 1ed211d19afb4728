"""docs/recipe_list/ is written from the docstrings of configs/, and these say what a reader needs."""

import re
import runpy
from pathlib import Path

import pytest

from jaxenc.cli import recipe
from tests.docs.blocks import ROOT

LIST = runpy.run_path(str(ROOT / "docs" / "recipe_list.py"))
PAGES = LIST["pages"]()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_that_of_the_docstrings(path: Path) -> None:
    assert path.is_file() and path.read_text() == PAGES[path], "write it again: python docs/recipe_list.py"


def test_the_pages_have_every_recipe_and_no_other() -> None:
    written = sorted(LIST["FOLDER"].glob("*.md"))
    assert [path for path in written if path.stem != "index"] == list(PAGES)
    assert [name for text in PAGES.values() for name in re.findall(r"^## (\S+)$", text, re.MULTILINE)] == recipe.names()


@pytest.mark.parametrize("name", recipe.names())
def test_a_recipe_says_where_it_is_from_how_to_run_it_and_on_what(name: str) -> None:
    """A paper and its year, or that it is not published or for tests; its own command; hardware, or that it has not been run here."""
    said = " ".join(LIST["docstring"](ROOT / "configs" / f"{name}.py").split())
    assert re.search(rf"jaxenc .*({name}|demo --finetune)", said)
    assert name.startswith("tasks/") or re.search(r"\d{4}|Not published|for (one|tests)|NVIDIA|small|toy|ELMo|for a corpus", said)
    assert name.startswith("tasks/") or re.search(r"[Nn]ot (yet )?run here|H[12]00|cores?\b|CPU", said)
