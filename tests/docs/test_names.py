"""What the prose of README and docs/ names: fields of the config, options of commands, files of the repository."""

import re
from pathlib import Path

import pytest

from jaxenc.cli import main
from tests.docs import settings
from tests.docs.blocks import PAGES, ROOT

PARTS = "objective|model|data|train|phases|optim|mesh|checkpoint|eval|log|task|frozen"
FIELD = re.compile(rf"^(?:--config\.)?((?:{PARTS})(?:\.[a-z]\w*)+)(?:=.*)?$")
# `data.py` and the like are files, and methods are followed by brackets.
FILE = re.compile(r"\.(py|md|json|jsonl|tsv|txt|csv|yaml|parquet|conll|conllu|sh|png|html|pt|safetensors|ipynb)$")
# Attributes of a loaded model, and fields of a tokenizer.json.
NO_FIELDS = {"model.predict", "model.attentions", "model.params", "model.merges", "model.type", "model.vocab"}
COMING_FROM = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
# Of other programs.
FOREIGN = {
    "--gpus-per-task", "--dependency", "--fail-on-warning", "--extra-index-url",
    "--flink_master", "--environment_type", "--environment_config", "--parallelism", "--spark_master_url", "--project", "--region",
    "--temp_location", "--sdk_container_image", "--direct_num_workers", "--direct_running_mode",
}  # fmt: skip
LAUNCH = {option for path in (ROOT / "launch").rglob("*") if path.is_file() for option in re.findall(r"--[a-z][\w-]*", path.read_text())}
TESTS = {option for path in (ROOT / "tests").rglob("*.sh") for option in re.findall(r"--[a-z][\w-]*", path.read_text())}


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def code(text: str) -> list[str]:
    """The code within lines."""
    return [" ".join(found.split()) for found in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]


def ours(page: Path) -> str:
    """The second columns of the tables of a page of docs/coming_from/, after the head `theirs | ours | remark`."""
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ")]
    return "\n".join(row[2] for row in rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_field_that_is_named_exists(page: Path) -> None:
    fields = settings.all_fields()
    named = [FIELD.match(one)[1] for one in code(prose(page)) if FIELD.match(one) and not FILE.search(one) and one not in NO_FIELDS]
    parts = {field.rsplit(".", 1)[0] for field in fields}
    unknown = [name for name in named if name not in fields | parts and not name.endswith(".kind")]
    # Entries of tables of another project: theirs have dots too.
    theirs = (
        {one for row in re.findall(r"^\| ([^|]*) \|", page.read_text(), re.MULTILINE) for one in code(row)}
        if page in COMING_FROM
        else set()
    )
    assert not set(unknown) - theirs


@pytest.mark.parametrize("page", [page for page in PAGES if page not in COMING_FROM], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_option_that_is_named_exists(page: Path) -> None:
    known = settings.all_options() | LAUNCH | TESTS | FOREIGN
    named = {option for one in code(prose(page)) for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", one)}
    assert {option for option in named if not option.startswith(("--config.", "--xla_"))} - known <= {"--config"}


@pytest.mark.parametrize("page", COMING_FROM, ids=lambda page: page.stem)
def test_our_side_of_the_map_exists(page: Path) -> None:
    """The column `ours`: fields, options, commands with their options. Nothing else stands there as code."""
    fields, options = settings.all_fields(), settings.all_options()
    for one in code(ours(page)):
        if (match := FIELD.match(one)) and one not in NO_FIELDS:
            assert match[1] in fields or match[1].endswith(".kind"), f"{page.name}: {one}"
        elif one.startswith("jaxenc "):
            _, command, *rest = one.split()
            known = settings.options_of(command)
            assert command in main.COMMANDS and {word for word in rest if word.startswith("--")} <= known, f"{page.name}: {one}"
        elif one.startswith("--"):
            assert one in options, f"{page.name}: {one}"
        else:
            assert page.stem in ("flax", "index"), f"{page.name}: {one} is no field, option or command"


def test_every_file_that_is_named_exists() -> None:
    """Paths from the root, such as `tests/faults/run.sh`, and from jaxenc/, such as `families/stacked.py`."""
    missing = []
    for page in PAGES:
        if page in COMING_FROM:
            continue
        for one in code(prose(page)):
            # A folder of the reader's cache, and places that a name stands for.
            if one == "jaxenc/compiled/" or re.search("[A-Z]{2}", one):
                continue
            if re.fullmatch(
                r"(jaxenc|tests|launch|configs|docs|notebooks|tasks|families|heads|objectives|formats|training)/[\w./*-]+", one
            ):
                at = [(ROOT, one), (ROOT / "jaxenc", one), (ROOT / "configs", one), (ROOT / "configs", f"{one}.py")]
                if not any(any(folder.glob(name)) for folder, name in at):
                    missing.append(f"{page.relative_to(ROOT)}: {one}")
    assert not missing, "\n".join(missing)
