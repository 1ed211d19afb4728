"""The names of classes, each with the spellings that files may have: `A|B` is the class A, which files may also write as B."""

import collections
import unicodedata
from collections.abc import Sequence

import numpy as np

from jaxenc.errors import UserError
from jaxenc.tasks.records import OR
from jaxenc.tasks.texts import TextExample


def check(labels: Sequence[str]) -> None:
    """Raises UserError for a single class and for two classes with the same name."""
    if len(labels) == 1:
        raise UserError(f"task.labels names one class, {labels[0]}", fix="name two or more, or none")
    written = [name for label in labels for name in label.split(OR)]
    if twice := [name for name in written if written.count(name) > 1]:
        raise UserError(f"task.labels names {twice[0]!r} twice", fix="give every class names of its own")


def classes(labels: Sequence[str]) -> tuple[str, ...]:
    """The names themselves."""
    return tuple(label.split(OR)[0] for label in labels)


def spelled(labels: Sequence[str]) -> dict[str, str]:
    """{spelling: class}."""
    return {name: label.split(OR)[0] for label in labels for name in label.split(OR)}


def written(labels: Sequence[str]) -> dict[str, str]:
    """{class: its last spelling}, the one for benchmarks."""
    return {label.split(OR)[0]: label.split(OR)[-1] for label in labels}


def wrong(label: str, labels: Sequence[str], where: str) -> UserError:
    """The error for a label that the task does not have."""
    return UserError(f"the label is {label!r}", where, f"fix it, or name it in task.labels, which holds {', '.join(labels)}")


def ordered(labels: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """`labels` in the order of `names`, the classes of a checkpoint, ignoring case; `names` themselves if `labels` is ().

    Raises UserError if they are not the same classes: by number, one class would be taken for another.
    """
    if not labels:
        return tuple(names)
    by_name = {name.lower(): label for label in labels for name in label.split(OR)}
    found = [by_name.get(name.lower(), "") for name in names]
    if "" in found or len(set(found)) != len(found) or len(found) != len(labels):
        what = f"the model has the classes {', '.join(names)}, and the task has {', '.join(classes(labels))}"
        raise UserError(what, fix="give the model's names in task.labels, each with the one that the files have: MODEL|FILE")
    return tuple(found)


def of_examples(train: Sequence[TextExample], found: Sequence[str], column: str) -> tuple[str, ...]:
    """The classes of training examples, sorted. found: the label of each.

    Raises UserError for a label with `|`, if all have the same label, if two labels differ only in the case of letters, in how Unicode
    encodes them, in invisible characters, or as 1 and 1.0 do, if the labels are scores, and if there are so many that they must be names or
    texts.
    """
    counts = collections.Counter(found)
    if several := next((label for label in counts if OR in label), ""):
        fix = f"write the label without {OR}, or set task.kind=multilabel and task.separator={OR} for several labels"
        raise UserError(f"the label is {several!r}, and {OR} separates the spellings of a class", train[found.index(several)].where, fix)
    if len(counts) == 1:
        what = f"all {len(train):,} training examples have the label {found[0]}"
        raise UserError(what, train[0].where, "name a file with several labels; one without labels is for data.test")
    if all(map(_is_number, counts)):
        scored = [example for example, label in zip(train, found, strict=True) if not float(label).is_integer()]
        if scored:
            score = found[train.index(scored[0])]
            fix = "set task.kind=regress for scores, or name the classes in task.labels"
            raise UserError(f"the label is {score}, a score and not a class", scored[0].where, fix)
    written: dict[str | float, str] = {}
    for label, _ in counts.most_common():
        usual = written.setdefault(_as_read(label), label)
        if usual != label:
            fix = f"write it as the others, or name all classes in task.labels, {usual}{OR}{label} for one class with both spellings"
            # Escaped where they look the same.
            shown = repr if label.casefold() == usual.casefold() else ascii
            raise UserError(f"the label is {shown(label)}, and other rows have {shown(usual)}", train[found.index(label)].where, fix)
    if len(counts) > max(len(train) // 2, 10):
        what = f"the column {column} has {len(counts):,} values in {len(train):,} training examples"
        raise UserError(what, train[0].where, "name the column of the label in task.label, or set task.kind=regress for scores")
    return tuple(sorted(counts))


def _as_read(label: str) -> str | float:
    """What a label is to a human reader: a number, or text without letter case and without the characters that Unicode calls format."""
    visible = "".join(one for one in label if unicodedata.category(one) != "Cf")
    return float(visible) if _is_number(visible) else unicodedata.normalize("NFKC", visible).casefold()


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
