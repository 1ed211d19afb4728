"""The heads of fine-tuned models in transformers: the class that has each of them, and what its config.json says of it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxenc.errors import UserError
from jaxenc.families import config_json
from jaxenc.families.config_json import Labels
from jaxenc.families.foreign import Structure
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN, ON_TEXTS


class TunedClass(NamedTuple):
    """ending: of the class of transformers; problem: the `problem_type` of its config.json, by which it chooses the loss, '' for none."""

    ending: str
    problem: str = ""


CLASSES = {
    "classifier": TunedClass("ForSequenceClassification", "single_label_classification"),
    "regressor": TunedClass("ForSequenceClassification", "regression"),
    "multilabel": TunedClass("ForSequenceClassification", "multi_label_classification"),
    "choice": TunedClass("ForMultipleChoice"),
    "tags": TunedClass("ForTokenClassification"),
}


def endings(pools: str) -> tuple[tuple[tuple[str, ...], str, Mapping[str, tuple[str, ...]]], ...]:
    """The rows of `bert.transformers.ENDINGS` for these heads. pools: the head whose vector those on texts read."""
    needed = lambda head: (pools, head) if head in ON_TEXTS else (head,)
    return tuple((needed(head), one.ending, {head: ("logits",)}) for head, one in CLASSES.items())


def heads_of(
    tensors: Mapping[str, Collection[str]], names: Collection[str], architecture: str, pooled: Collection[str] = ()
) -> tuple[str, ...]:
    """The heads of a file with the tensors `names`, in the order of `heads.BUILT_IN`.

    tensors: {head: the names of its tensors}. pooled: heads that come with a `pooler`. architecture: the class that transformers saved,
    such as BertForTokenClassification, or ''. Several of CLASSES may have the same tensors; then the class decides, and without one it is
    `classifier` in a file with a pooler and `tags` otherwise. `classifier` stands for `regressor` and `multilabel` too, which `read` tells
    apart.
    """
    found = _one_of({head: own for head, own in tensors.items() if any(name in names for name in own)}, architecture)
    if found & {*pooled}:
        found.add("pooler")
    return tuple(head for head in BUILT_IN if head in found)


def _one_of(found: Mapping[str, Collection[str]], architecture: str) -> set[str]:
    """The heads of a file, as `heads_of`. found: {head: the names of its tensors}, of those with a tensor in the file."""
    tensors: dict[frozenset[str], list[str]] = {}
    for head in CLASSES:
        if head in found:
            tensors.setdefault(frozenset(found[head]), []).append(head)
    usual = ("classifier", "tags") if "pooler" in found else ("tags", "classifier")
    fits = lambda head: (not architecture.endswith(CLASSES[head].ending), usual.index(head) if head in usual else len(usual))
    return set(found) - set(CLASSES) | {min(same, key=fits) for same in tensors.values()}


def classes_of(tensors: Mapping[str, Tensor], names: Collection[str]) -> int:
    """The number of classes of a head with tensors of these names: the size of their first axis; 2, transformers' default, without one."""
    return next((tensors[name].shape[0] for name in names if name in tensors and tensors[name].shape), 2)


def read(config: Mapping[str, Any], heads: tuple[str, ...], classes: Callable[[str], int], where: Path) -> tuple[tuple[str, ...], Labels]:
    """(the heads of a file, the names of its classes).

    config: its config.json, {} for none; heads: as `heads_of`; classes: the number of rows of a head's tensors. A head on texts with one
    row is a `regressor`, as transformers takes it, unless `problem_type` says otherwise. Raises UserError as `config_json.labels_of`.
    """
    head = next((head for head in heads if head in CLASSES), "")
    if head in ("", "choice"):
        return heads, Labels()
    count = classes(head)
    labels = config_json.labels_of(config, count, where)
    if head != "classifier":
        return heads, labels
    problem = config.get("problem_type") or (CLASSES["regressor"].problem if count == 1 else "")
    if problem == CLASSES["multilabel"].problem:
        return tuple("multilabel" if name == head else name for name in heads), labels
    if problem == CLASSES["regressor"].problem and count == 1:
        # The one number of a regression is not a class.
        return tuple("regressor" if name == head else name for name in heads), Labels()
    return heads, labels


def described(structure: Structure) -> dict[str, Any]:
    """The fields of transformers' config.json for the loss and the classes of a model, {} without such a head."""
    head = next((head for head in CLASSES if head in structure.heads), "")
    if head in ("", "choice"):
        return {}
    problem = {"problem_type": CLASSES[head].problem} if CLASSES[head].problem else {}
    return problem | config_json.labels_json(("LABEL_0",) if head == "regressor" else structure.labels)


def rates(config: Mapping[str, Any], fields: Mapping[str, Collection[str]], structure: Structure, where: Path) -> dict[str, float]:
    """{head: dropout rate on its input} of the heads for which a config.json says another rate than the family has. fields: {their field:
    heads that it is for}. Raises UserError for a value that is not a rate."""
    found: dict[str, float] = {}
    for field, heads in fields.items():
        value = config.get(field)
        if value is None:
            continue
        if type(value) not in (int, float) or not 0 <= value < 1:
            raise UserError(f"{field} is {value!r}", where, "set it to a rate from 0 up to but not including 1, or remove it")
        found |= {head: float(value) for head in heads if head in structure.heads and value != structure.model.head_dropout(head)}
    return found


def rates_json(fields: Mapping[str, Collection[str]], structure: Structure) -> dict[str, float]:
    """{their field: rate}, the inverse of `rates`: of the first of its heads that the model has, else of the first."""
    first = {field: next((head for head in heads if head in structure.heads), next(iter(heads))) for field, heads in fields.items()}
    return {field: structure.dropout.get(head, structure.model.head_dropout(head)) for field, head in first.items()}


def refuse(heads: Collection[str], where: str | Path, apart: Collection[str] = ()) -> None:
    """Raises UserError for two of the heads CLASSES, which transformers has in different models. apart: heads whose tensors have other
    names than those of the others, so that a file may hold them beside one of the others."""
    clash = [head for head in CLASSES if head in heads and head not in apart]
    if len(clash) > 1:
        raise UserError(f"transformers has no model with the heads {' and '.join(clash)}", where, "keep one of them")
