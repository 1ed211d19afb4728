"""What no line of the package may do: run or unpickle what it reads."""

import ast
from collections.abc import Iterator
from pathlib import Path

import jaxenc

FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__"}
# PyTorch's files are pickles: torch reads them, with weights_only. A recipe in a file that the user named is run, and nothing else is.
LOADS = {"formats/pytorch.py": "torch.load"}
RUNS = {"cli/recipe.py": "spec.loader.exec_module"}
# Modules by a name that is put together: commands and recipes of the package.
IMPORTS = ("__init__.py", "cli/main.py", "cli/recipe.py")


def sources() -> Iterator[tuple[str, ast.AST]]:
    root = Path(jaxenc.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_bytes())


def faults(name: str, tree: ast.AST) -> Iterator[str]:
    """What a file of the package, called `name` in it, does that it may not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            above = getattr(node, "module", None) or ""
            modules = [alias.name for alias in node.names] + [above]
            yield from (f"imports {module}" for module in modules if module.split(".")[0] in FORBIDDEN)
            if above == "torch":
                yield "hides what is called of torch"
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            if call in CALLS or (call.endswith(("exec_module", "run_path", "run_module")) and RUNS.get(name) != call):
                yield f"calls {call}"
            yield from (f"sets {argument}" for argument in ("allow_pickle", "trust_remote_code") if argument in given)
            if call == "np.load" and len(node.args) > 2:
                yield "sets allow_pickle"
            if call.endswith("import_module") and name not in IMPORTS:
                yield f"calls {call}"
            if call == "torch.load" and (LOADS.get(name) != call or given.get("weights_only") != "True"):
                yield "loads a pickle"
            if given.get("shell", "False") != "False" or call in ("os.system", "os.popen"):
                yield "starts a shell"


def test_nothing_that_is_read_is_run() -> None:
    found = [f"{name}: {fault}" for name, tree in sources() for fault in faults(name, tree)]
    assert not found, found


def test_the_search_finds_what_it_is_for() -> None:
    """Each of these lines, in a file of the package, is found."""
    bad = (
        "import pickle", "from yaml import load", "import yaml.x", "eval(x)", "exec(x)", "np.load(x, allow_pickle=True)",
        "np.load(x, None, True)", "from_pretrained(x, trust_remote_code=True)", "importlib.import_module(x)", "from torch import load",
        "torch.load(x)", "torch.load(x, weights_only=True)", "subprocess.run(x, shell=True)", "loader.exec_module(m)", "os.system(x)",
    )  # fmt: skip
    assert all(list(faults("data/files.py", ast.parse(line))) for line in bad)
    assert not list(faults("formats/pytorch.py", ast.parse("torch.load(x, weights_only=True)")))
    assert list(faults("formats/pytorch.py", ast.parse("torch.load(x)")))
