import pytest

from jaxenc.data import docstrings
from jaxenc.data.docstrings import modules, prose

NUMPY_STYLE = """
    Return the sum of the array elements over a given axis, which may be negative.

    The ``dtype`` of the result is that of `~package.array`, or of :func:`other <module.other>` when it is given. It
    continues on a second line.

    Parameters
    ----------
    a : array_like
        Elements to sum.
    axis : None or int

    See Also
    --------
    cumsum : Cumulative sum of array elements, which keeps the running totals of it.

    - The first point of the list is a whole sentence that stands on its own.
    - short

    >>> sum([0.5, 1.5]) # The doctest is not a sentence even if it looks like one to the reader.
    2.0

    +------+------+
    | This | is a table of the kind that people draw in their docstrings.
    +------+------+

    .. note:: This is a directive and the text is left out because it is marked up.
    x = compute(a=1, b=2)[0] + value->field
"""


def test_sentences_are_kept_and_code_tables_and_arguments_are_not():
    assert prose(NUMPY_STYLE) == [
        "Return the sum of the array elements over a given axis, which may be negative.",
        "The dtype of the result is that of package.array, or of other when it is given. It continues on a second line.",
        "The first point of the list is a whole sentence that stands on its own.",
    ]


@pytest.fixture
def source(tmp_path):
    """Writes modules and makes them the whole corpus."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return tuple((f"{name}.py", tmp_path / f"{name}.py") for name in sorted(texts))

    return write


ONE, TWO, THREE = (f"This is the {n} sentence of the text, and it is long enough to be kept." for n in ("first", "second", "third"))


def test_modules_are_read_in_order_without_import_and_without_repetition(source, monkeypatch):
    files = source(
        a=f'"""{ONE}"""\nimport sys\nsys.exit("imported")\nclass A:\n    """{TWO}"""\n    def f(self):\n        """{THREE}"""\n',
        b=f'"""{ONE}\n\n{TWO}"""',
        c="def broken(:",
        d=f'x = """{ONE}"""\ndef f():\n    """{TWO.replace("second", "fourth")}\n\n    {THREE.replace("third", "fifth")}"""\n',
    )
    monkeypatch.setattr(docstrings, "_files", lambda: files)
    assert list(modules()) == [
        ("docstrings:a.py", (ONE, TWO, THREE)),
        ("docstrings:d.py", (TWO.replace("second", "fourth"), THREE.replace("third", "fifth"))),
    ]


def test_identity_follows_the_files(source, monkeypatch):
    monkeypatch.setattr(docstrings, "_files", lambda: files)
    files = source(a=f'"""{ONE}"""')
    first = docstrings.identity()
    assert docstrings.identity() == first
    files = source(a=f'"""{ONE} More."""')
    assert docstrings.identity() != first


def test_the_machine_offers_the_interpreter_and_the_dependencies():
    names = [name for name, _ in docstrings._files()]
    assert names == sorted(names) and len(names) > 1000
    assert {"argparse.py", docstrings.TOPICS, "numpy/__init__.py", "jax/__init__.py"} <= set(names)
    assert not [name for name in names if "/tests/" in name or name.startswith(("test/", "site-packages/"))]
