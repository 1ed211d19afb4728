"""The house rules that can be read off the source: who imports whom, how long things are, what is never written."""

import ast
import dataclasses
import graphlib
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jaxenc

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaxenc"
FILES = sorted(PACKAGE.rglob("*.py"))
CONFIGS = sorted((ROOT / "configs").rglob("*.py"))

# Each layer imports only from itself and from those before it.
LAYERS = (
    ("errors", "config", "fields", "findings", "precision", "execution", "rng", "tree", "metrics", "losses", "files"),
    ("retries", "listing", "storage", "cache", "progress", "interrupts"),
    ("processes",), ("hlo",), ("sharding",), ("data",), ("formats",), ("layers",), ("heads",), ("families",), ("objectives",), ("optim",),
    ("checkpoint",), ("training",), ("tasks",), ("inference",), ("convert",), ("reports",), ("bench",), ("doctor",), ("cli",),
)  # fmt: skip
# The errors that a command prints as one line.
USER_ERRORS = ("UserError", "Unsupported", "Incomplete")
HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[str]:
    """Every dotted name that a file imports, wherever in it, for type checking too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def show(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_part_has_a_layer() -> None:
    assert {part_of(path) for path in FILES} - {"__init__", "__main__"} <= set(HEIGHT)


def test_imports_run_downwards() -> None:
    wrong = []
    for path in FILES:
        own = HEIGHT.get(part_of(path), len(LAYERS))
        for module in imports(path):
            target = module.split(".")[1] if module.startswith("jaxenc.") else ""
            if target in HEIGHT and HEIGHT[target] > own:
                wrong.append(f"{show(path)} imports {module}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_module_imports_itself_through_others() -> None:
    names = {".".join(("jaxenc", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path for path in FILES}
    of = lambda name: name if name in names else name.rpartition(".")[0]
    graph = {name: {of(module) for module in imports(path)} & set(names) for name, path in names.items()}
    graph["jaxenc"] = set()  # loads what it names when it is called
    with_circles = graphlib.TopologicalSorter(graph)
    with_circles.prepare()


def test_the_lowest_layer_stands_alone() -> None:
    """config, precision and the like import nothing of ours but errors and precision."""
    allowed = ("jaxenc.errors", "jaxenc.precision")
    wrong = [
        f"{show(path)} imports {module}"
        for path in FILES
        if part_of(path) in LAYERS[0]
        for module in imports(path)
        if module.startswith("jaxenc") and not module.startswith(allowed)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "library, places",
    [
        ("flax", ("layers/", "heads/", "families/", "training/state.py")),
        ("ml_collections", ("cli/",)),
        ("absl", ("cli/", "checkpoint/arrays.py")),
        ("orbax", ("checkpoint/",)),
        ("tokenizers", ("data/",)),
        ("sentencepiece", ("data/tokenizers/",)),
        ("optax", ("optim/", "training/")),
    ],
)
def test_a_library_is_imported_in_its_places_only(library: str, places: tuple[str, ...]) -> None:
    users = {str(path.relative_to(PACKAGE)) for path in FILES if any(module.split(".")[0] == library for module in imports(path))}
    assert {user for user in users if not user.startswith(places)} == set()


def test_data_is_numpy_only() -> None:
    found = {module.split(".")[0] for path in FILES if part_of(path) == "data" for module in imports(path)}
    assert not found & {"jax", "jaxlib", "flax", "optax", "absl", "ml_collections", "torch", "tensorflow"}


def test_the_trainer_and_the_converters_name_no_objective() -> None:
    """Words and parts of names outside comments and docstrings, which may name a source. `onward` picks the next objective."""
    names = re.compile(r"(?<![A-Za-z])(mlm|nsp|rtd|plm|(?:Mlm|Pair|Rtd|Plm)\w*)(?![a-z])")
    parts = ("training", "optim", "sharding", "processes", "checkpoint", "formats", "convert")
    wrong = []
    for path in FILES:
        if part_of(path) in parts and show(path) != "jaxenc/convert/onward.py":
            tree = parsed(path)
            for node in ast.walk(tree):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    node.value.value = ""
            wrong += [f"{show(path)}: {name}" for name in names.findall(ast.unparse(tree))]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_file_is_a_drawer() -> None:
    names = {path.stem for path in (*FILES, *CONFIGS, *(ROOT / "tests").rglob("*.py"))}
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc"}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_files_and_functions_and_lines_are_short() -> None:
    """Files <= 400 lines, functions <= 60, lines <= 140."""
    wrong = []
    for path in (*FILES, *CONFIGS, *(ROOT / "tests").rglob("*.py")):
        lines = path.read_text().splitlines()
        wrong += [f"{show(path)}: {len(lines)} lines"] * (len(lines) > 400)
        wrong += [f"{show(path)}:{number}: {len(line)} characters" for number, line in enumerate(lines, 1) if len(line) > 140]
        wrong += [f"{show(path)}: {f.name}" for f in functions(parsed(path)) if f.end_lineno - f.lineno >= 60]
    assert not wrong, "\n" + "\n".join(wrong)


# What a class's methods are for is said by the contract that they fill, or by Python.
OBJECTIVE = {"reads", "init", "carry", "corrupt", "weights", "terms", "outputs", "attentions", "predict", "flops", "summary", "build"}
OF_TASK = {"example", "examples", "fitted", "ordered", "notes", "details"}
TASK = {*OF_TASK, "objective", "features", "answers", "score", "submission", "of_record"}
CONTRACT = {*OBJECTIVE, *TASK, "fingerprint", "run", "add_arguments"}


def test_what_is_public_has_a_docstring() -> None:
    wrong = []
    for path in FILES:
        tree = parsed(path)
        if path.stat().st_size and not ast.get_docstring(tree):
            wrong.append(f"{show(path)}: the file")
        nodes = [(node, "") for node in tree.body] + [(n, c.name) for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body]
        for node, owner in nodes:
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_") or owner.startswith("_"):
                continue
            if not ast.get_docstring(node) and node.name not in CONTRACT:
                wrong.append(f"{show(path)}: {owner}{'.' * bool(owner)}{node.name}")
    assert not wrong, "\n" + "\n".join(wrong)


def settings() -> Iterator[type]:
    """Every config dataclass of the package."""
    names = [module.name for module in pkgutil.walk_packages(jaxenc.__path__, "jaxenc.")]
    for name in names:
        if not name.startswith(("jaxenc.cli", "jaxenc.configs", "jaxenc.bench")):
            for value in vars(importlib.import_module(name)).values():
                if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__name__.endswith(("Config", "Phases", "Run")):
                    yield value


def test_no_setting_defaults_to_none_or_is_an_open_dict() -> None:
    classes = set(settings())
    assert len(classes) >= 8
    wrong = []
    for cls in classes:
        for field in dataclasses.fields(cls):
            value = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
            if value is None or isinstance(value, (dict, list, set)):
                wrong.append(f"{cls.__name__}.{field.name}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_error_says_what_to_do() -> None:
    """`UserError(what, where, fix)`: all three, or `fix=` where `what` names the field itself; never a fix that is empty."""
    wrong = []
    for path in FILES:
        for call in ast.walk(parsed(path)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in USER_ERRORS:
                fix = [*call.args[2:3], *(word.value for word in call.keywords if word.arg == "fix")]
                if len(fix) != 1 or (isinstance(fix[0], ast.Constant) and not fix[0].value):
                    wrong.append(f"{show(path)}:{call.lineno}: without what to do")
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_project_names_no_machine() -> None:
    wrong = []
    for path in (*FILES, *CONFIGS, *(ROOT / "tests").rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "launch").rglob("*.sh")):
        if path != Path(__file__):
            wrong += [f"{show(path)}: {m}" for m in re.findall(r"/work/\w*|/tmp/v1[12]", path.read_text())]
    assert not wrong, "\n" + "\n".join(wrong)
