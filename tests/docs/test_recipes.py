"""docs/recipe_list.md is written from the docstrings of configs/, and these say what a reader needs."""

import re
import runpy

import pytest

from jaxenc.cli import recipe
from tests.docs.blocks import ROOT

LIST = runpy.run_path(str(ROOT / "docs" / "recipe_list.py"))
PAGE = LIST["page"]()


def test_the_page_is_that_of_the_docstrings() -> None:
    assert LIST["PAGE"].read_text() == PAGE, "write it again: python docs/recipe_list.py"


def test_the_page_has_every_recipe() -> None:
    assert re.findall(r"^### (\S+)$", PAGE, re.MULTILINE) == recipe.names()


@pytest.mark.parametrize("name", recipe.names())
def test_a_recipe_says_where_it_is_from_how_to_run_it_and_on_what(name: str) -> None:
    """A paper and its year, or that it is not published or for tests; its own command; hardware, or that it has not been run here."""
    said = " ".join(LIST["docstring"](ROOT / "configs" / f"{name}.py").split())
    assert re.search(rf"jaxenc .*({name}|demo --finetune)", said)
    assert name.startswith("tasks/") or re.search(r"\d{4}|Not published|for (one|tests)|NVIDIA|small|toy|ELMo|for a corpus", said)
    assert name.startswith("tasks/") or re.search(r"[Nn]ot (yet )?run here|H[12]00|cores?\b|CPU", said)
