"""The picture of the packages is that of tests/structure, the list in words has them in the same order, and the named files exist."""

import re
import runpy

from tests.docs.blocks import ROOT
from tests.docs.test_names import code, prose
from tests.structure.test_house import HEIGHT

DRAWN = runpy.run_path(str(ROOT / "docs" / "architecture_picture.py"))
PAGE = ROOT / "docs" / "architecture.md"


def test_the_picture_is_that_of_the_layers() -> None:
    assert DRAWN["PICTURE"].read_text() == DRAWN["svg"](), "draw it again: python docs/architecture_picture.py"


def test_the_list_in_words_has_every_package_in_order() -> None:
    lines = re.search(r"^    jaxenc/\n((?:      .*\n)+)", PAGE.read_text(), re.MULTILINE)[1].splitlines()
    starts = [re.match(r"      ((?:[a-z]\w*/? )+)", f"{line} ")[1].split() for line in lines if re.match(r"      [a-z]", line)]
    names = [name.rstrip("/") for start in starts for name in start if name.rstrip("/") in HEIGHT]
    assert set(names) == set(HEIGHT)
    heights = [HEIGHT[name] for name in names]
    assert heights == sorted(heights)


def test_every_file_on_the_page_exists() -> None:
    named = [one for one in code(prose(PAGE)) if re.fullmatch(r"[\w/]+\.py", one)]
    assert len(named) > 20
    missing = [name for name in named if not (ROOT / "jaxenc" / name).is_file()]
    assert not missing, missing
