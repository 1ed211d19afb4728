"""The reference names every function of `import jaxenc`, the settings of every part, and the registries of objectives, models and tasks."""

import dataclasses
import importlib
import re
from collections.abc import Iterator

import jaxenc
from jaxenc.families import MODELS
from jaxenc.objectives import OBJECTIVES
from jaxenc.tasks import TASKS
from jaxenc.tasks.tuning import FineTune
from jaxenc.training.run import Run
from tests.docs.blocks import ROOT

PAGES = "\n".join(page.read_text() for page in (ROOT / "docs").glob("reference*.md"))
NAMED = set(re.findall(r"^\.\. auto\w+:: (jaxenc[\w.]+)(?:\(.*\))?$", PAGES, re.M))


def settings() -> Iterator[type]:
    for whole in (Run, FineTune):
        yield whole
        for field in dataclasses.fields(whole):
            default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
            if dataclasses.is_dataclass(default) and "kinds" not in field.metadata:
                yield type(default)


def test_every_function_of_the_package_is_there() -> None:
    homes = {jaxenc._HOMES[name] for name in jaxenc.__all__}
    assert homes <= NAMED, homes - NAMED


def test_the_settings_of_every_part_are_there() -> None:
    known = {f"{cls.__module__}.{cls.__name__}" for cls in settings()}
    assert known <= NAMED, known - NAMED


def test_the_kinds_of_every_registry_are_there() -> None:
    """The build writes them out (docs/conf.py)."""
    named = re.findall(r"^\.\. kinds:: (jaxenc[\w.]+)\.(\w+)$", PAGES, re.M)
    assert [getattr(importlib.import_module(module), name) for module, name in named] == [OBJECTIVES, MODELS, TASKS]


def test_every_name_exists() -> None:
    """The build would say so too, but it is not part of the short suite."""
    for name in NAMED:
        module, _, thing = name.rpartition(".")
        assert hasattr(importlib.import_module(module), thing), name
