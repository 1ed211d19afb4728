"""Who may name a family: its own folder, recipes, tests and documents. What others write of one is a source: a paper or a repository."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxenc.cli.recipe import names as recipes

PACKAGE = Path(__file__).parents[2] / "jaxenc"
RECIPE = re.compile("|".join(recipes()))
# Families, one a folder, and two that are BERTs here, as words or as parts of names: Bert, published_bert, XlnetConfig.
FOLDERS = {path.parent.name for path in PACKAGE.glob("families/*/__init__.py")} - {"network_pair"}  # a pair of any two
FAMILY = re.compile(rf"(?i:{'|'.join(sorted(FOLDERS | {'roberta', 'camembert'}, key=len, reverse=True))})(?![a-z])")
# A repository or a file of one, a paper, a library whose classes are called after models.
SOURCE = re.compile(r"[\w-]+/[\w-]+|et al\.|transformers|fairseq|AllenNLP")
# What may name families, and why.
EXCEPTIONS = {
    "families/": "they are the families",
    "data/tokenizers/": "files of vocabularies, and the classes that open them elsewhere, are called after the models that brought them",
}


def written(source: str) -> Iterator[tuple[int, str, bool]]:
    """(line, text, whether it is prose) of each docstring and comment, which are prose, and of each name and string."""
    tree = ast.parse(source)
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value, node in prose
        for field in ("id", "attr", "name", "arg", "module", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                yield getattr(node, "lineno", 0), name, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, True


def named(source: str) -> list[str]:
    """`line: family` for each family that is named where no source is."""
    out = []
    for line, text, prose in written(source):
        if not (prose and SOURCE.search(text)):
            out += [f"{line}: {found}" for found in FAMILY.findall(RECIPE.sub("", text))]
    return out


def test_nobody_but_a_family_names_one() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(tuple(EXCEPTIONS)):
            wrong += [f"{place}:{one}" for one in named(path.read_text())]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "source, found",
    [
        ("from jaxenc.families.bert.model import BertConfig", ["bert", "Bert"]),
        ("published_elmo = 1", ["elmo"]),
        ("def f(electra): ...", ["electra"]),
        ("x.xlnet", ["xlnet"]),
        ('raise UserError("ELMo only")', ["ELMo"]),
        ('"""As BERT does."""', ["BERT"]),
        ("# XLNet's rows", ["XLNet"]),
        ('"""As BERT does (google-research/bert modeling.py)."""', []),
        ("# Yang et al. 2019, XLNet", []),
        ('default = "bert/base"', []),
        ("robertson, Albertville, gptq = 1, 2, 3", []),
    ],
)
def test_what_counts_as_naming_one(source: str, found: list[str]) -> None:
    assert [one.partition(": ")[2] for one in named(source)] == found
