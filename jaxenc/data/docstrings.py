"""The embedded corpus: English prose that is already on the machine, in the Python interpreter and in this project's dependencies.

Docstrings are read from source files with `ast`; nothing is imported. What is read differs between machines with the versions of
Python and of the packages, so it is for a first run and for demonstrations, and `identity` says which text it is.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import os
import re
import sysconfig
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path

from jaxenc.data.workers import pool

NAME = "docstrings"
ROOTS = ("jax", "flax", "optax", "orbax-checkpoint", "numpy", "absl-py", "ml-collections", "sentencepiece", "tokenizers", "matplotlib")
RULES = 1  # raise by one whenever other text is kept, so that a store built by older rules is not taken for the same
TOPICS = "pydoc_data/topics.py"
MIN_PARAGRAPHS = 2

_SKIP = re.compile(
    r"(^|/)(tests?|testing|_?tests?_.*|.*_tests?\.py|conftest\.py|site-packages|dist-packages|_vendor|idlelib|turtledemo)(/|$)"
)
_MARKUP = (
    (re.compile(r"``([^`]*)``"), r"\1"),
    (re.compile(r":[\w:+-]+:`[~.!]*([^`<]*?)(?:\s*<[^`>]*>)?`"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),
    (re.compile(r"`[~.!]*([^`]*)`_{0,2}"), r"\1"),
    (re.compile(r"\[([^\]]+)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\*\*?([^*\s][^*]*?)\*?\*(?!\w)"), r"\1"),
    (re.compile(r"\s*\[\w+\]_"), ""),
    (re.compile(r"::$"), ":"),
)
_BULLET = re.compile(r"^(?:[-*+•]|\d+[.)]|\(\w\)|#\.)\s+")
_TABLE = re.compile(
    r"^[\w.]+:\s|>>>|\.\. |^:\w+|[-=~+|_*#^]{4,}|[{}\\<>|@]|==|->|__|\w\(\w*=|https?:|copyright|licen[cs]e|\bTODO\b|:math:", re.I | re.M
)
_WORDS = frozenset("the a an of to is in and that for it be this are with as on by or not which if from when can will at has".split())
_SECTION = re.compile(
    r"^(args?|arguments|parameters|other parameters|returns?|yields?|raises?|warns?|attributes|examples?|usage|references?|see also|keyword"
    r" arguments|keyword args|todo|methods|call signatures?):?$",
    re.I,
)


@functools.cache
def _files() -> tuple[tuple[str, Path], ...]:
    """(name, path) of every source file that is read, sorted by name: the standard library and the installed dependencies."""
    standard = Path(sysconfig.get_paths()["stdlib"])
    found = {path.relative_to(standard).as_posix(): path for path in standard.rglob("*.py")}
    for package in _dependencies():
        for file in package.files or ():
            if file.suffix == ".py" and file.parts[0] != "..":
                found[file.as_posix()] = Path(package.locate_file(file))
    return tuple((name, found[name]) for name in sorted(found) if not _SKIP.search(name) and found[name].is_file())


def _dependencies() -> list[importlib.metadata.Distribution]:
    """The installed ones of ROOTS and of everything they need."""
    found: dict[str, importlib.metadata.Distribution] = {}
    pending = list(ROOTS)
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in found:
            continue
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.distribution(name)
            pending += [re.match(r"[\w.-]+", need).group() for need in found[name].requires or () if "extra ==" not in need]
    return [found[name] for name in sorted(found)]


def identity() -> str:
    """sha256 of the names and sizes of the files and of the rules: cheap, and equal when the corpus is equal."""
    facts = [f"{name} {path.stat().st_size}" for name, path in _files()]
    return hashlib.sha256("\n".join([f"rules {RULES}", *facts]).encode()).hexdigest()


def modules(packages: Collection[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(source, paragraphs) of every module that keeps at least MIN_PARAGRAPHS, in a fixed order, no paragraph twice.

    packages: only those of these top-level packages, () for all. Source files are parsed by one process a core.
    """
    files = [(name, path) for name, path in _files() if not packages or name.partition("/")[0] in packages]
    seen: set[bytes] = set()
    with pool(os.cpu_count() or 1) as processes:
        for (name, _), paragraphs in zip(files, processes.map(_paragraphs_of, [path for _, path in files], chunksize=32), strict=True):
            new = []
            for paragraph in paragraphs:
                key = hashlib.blake2b(re.sub(r"[^a-z0-9]", "", paragraph.lower()).encode(), digest_size=12).digest()
                if key not in seen:
                    seen.add(key)
                    new.append(paragraph)
            if len(new) >= MIN_PARAGRAPHS:
                yield f"{NAME}:{name}", tuple(new)


def _paragraphs_of(path: Path) -> list[str]:
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in other people's strings
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []  # a template or a file of another Python version: not a source of prose
    texts = _strings(tree) if path.as_posix().endswith(TOPICS) else _docstrings(tree)
    return [paragraph for text in texts for paragraph in prose(text)]


def _strings(tree: ast.AST) -> Iterator[str]:
    """Every string of a module that is one table of texts."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Docstrings of a module, its classes and functions, in the order of the file."""
    text = ast.get_docstring(node, clean=False)
    if text:
        yield text
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _docstrings(child)


def prose(text: str) -> list[str]:
    """The paragraphs of one docstring that read as English sentences, markup removed, each on one line.

    A paragraph is a run of lines of one indentation; a bullet or a numbered line starts another. Left out: doctests, code, tables,
    section titles, argument lists, references, licences, and all that `_reads_as_prose` refuses.
    """
    out, held, depth = [], [], 0
    for line in [*inspect.cleandoc(text).expandtabs().split("\n"), ""]:
        body = line.strip()
        indent = len(line) - len(line.lstrip())
        if held and (not body or indent != depth or _BULLET.match(body)):
            out.append(" ".join(held))
            held = []
        if body and not _SECTION.match(body):
            bullet = _BULLET.match(body)
            depth = indent + (bullet.end() if bullet else 0)
            held.append(body[bullet.end() :] if bullet else body)
    return [clean for paragraph in out if (clean := _unmarked(paragraph)) and _reads_as_prose(clean)]


def _unmarked(paragraph: str) -> str:
    for pattern, replacement in _MARKUP:
        paragraph = pattern.sub(replacement, paragraph)
    return re.sub(r"\s+", " ", paragraph).strip()


def _reads_as_prose(text: str) -> bool:
    """Starts with a capital and ends as a sentence does; at least 40 characters and 7 words, one in eight a common English one;
    nine characters in ten are letters or blanks, and no sign of code or tables is in it."""
    if len(text) < 40 or not text[0].isupper() or text[-1] not in ".!?" or _TABLE.search(text):
        return False
    words = text.lower().split()
    if len(words) < 7 or sum(word in _WORDS for word in words) * 8 < len(words):
        return False
    return sum(c.isalpha() or c == " " for c in text) >= 0.9 * len(text)
