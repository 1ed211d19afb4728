"""Scores of tagged sentences: entities, with seqeval, and single words."""

import itertools
from collections.abc import Iterable, Sequence
from types import ModuleType

import numpy as np

from jaxenc.errors import UserError

Tags = Sequence[str]
OUTSIDE = "O"
# Begin, inside, end and single: those of the schemes IOB1, IOB2 and IOBES, as seqeval reads them.
PREFIXES = ("B-", "I-", "E-", "S-")


def library() -> ModuleType:
    """The module of seqeval that computes the scores. Raises UserError if it is not installed."""
    try:
        from seqeval.metrics import sequence_labeling
    except ImportError as error:
        raise UserError("entities are scored with seqeval", fix="install it with `pip install 'jaxenc[tasks]'`") from error
    return sequence_labeling


def is_tag(tag: str) -> bool:
    """Whether `tag` is `O`, or `B-`, `I-`, `E-` or `S-` followed by the type of an entity."""
    return tag == OUTSIDE or (tag.startswith(PREFIXES) and len(tag) > 2)


def types(tags: Iterable[str]) -> list[str]:
    """The types of entities that the tags name, sorted."""
    return sorted({tag[2:] for tag in tags if tag != OUTSIDE})


def completed(tags: Iterable[str]) -> set[str]:
    """`O`, and every type combined with every prefix that any type has."""
    tags = {*tags} - {OUTSIDE}
    return {OUTSIDE, *(tag[:2] + kind for tag in tags for kind in types(tags))}


def entities(true: Sequence[Tags], given: Sequence[Tags], of_types: Sequence[str] = ()) -> dict[str, float]:
    """Precision, recall and F1 of whole entities over all sentences, from 0 to 1, as seqeval and conlleval compute them: `precision`,
    `recall` and `f1`, and `f1_TYPE` and so on of each type. An entity counts if its type and both ends are right.

    true, given: a tag for each word of each sentence, as `is_tag` describes. of_types: types that are reported even where no sentence has
    one. `I-X` after anything but `B-X` or `I-X` begins an entity (the default mode of seqeval). A quotient whose denominator is 0 is 0,
    so the F1 of sentences without entities is 0. Raises UserError if seqeval is not installed.
    """
    module = library()
    true, given = ([list(tags) for tags in sentences] or [[]] for sentences in (true, given))  # seqeval takes one sentence or more
    names = ("precision", "recall", "f1")
    scores = dict(zip(names, module.precision_recall_fscore_support(true, given, average="micro", zero_division=0), strict=False))
    found = sorted({kind for tags in (true, given) for kind, *_ in module.get_entities(tags)})
    by_type = {kind: (0.0, 0.0, 0.0) for kind in sorted({*of_types, *found})}
    if found:
        by_type |= zip(found, zip(*module.precision_recall_fscore_support(true, given, zero_division=0)[:3], strict=True), strict=True)
    scores |= {f"{name}_{kind}": value for kind, values in by_type.items() for name, value in zip(names, values, strict=True)}
    return {name: float(value) for name, value in scores.items()}


def accuracy(true: Sequence[Tags], given: Sequence[Tags]) -> float:
    """The share of the words of all sentences whose tag is right, 0.0 without words."""
    right = [a == b for tags, others in zip(true, given, strict=True) for a, b in zip(tags, others, strict=True)]
    return float(np.mean(right)) if right else 0.0


def begun_inside(sentences: Iterable[Tags]) -> int:
    """How many entities begin with `I-`: it does not follow a tag `B-` or `I-` of its type."""
    pairs = (pair for tags in sentences for pair in itertools.pairwise([OUTSIDE, *tags]))
    return sum(tag.startswith("I-") and before not in (tag, f"B-{tag[2:]}") for before, tag in pairs)
