"""What the names of the numbers mean, one line each, for the reader of a page."""

from collections.abc import Iterable, Mapping
from typing import Any

# By the name of a number, or by its ending where it begins with `_`.
WORDS = {
    "_perplexity": "the exponential of the loss",
    "_loss": "a mean over what is predicted; in nats, -log p, where that is a token or a class",
    "_auc": "the probability that a replaced token gets a higher score than an original one",
    "mask_rate": "predicted tokens as a share of all real tokens; objective.rate is rounded to whole tokens in each row",
    "span_tokens": "the mean length of what is masked as one (a word, an n-gram or a span), in tokens",
    "span_words": "the same in words",
    "budget_used": "predicted tokens as a share of those that the rate and the limit of a row allow; a word that does not fit is left out",
    "replaced": "tokens that are not those of the text, as a share of all real tokens",
    "padding": "padding as a share of all places of the rows",
    "gradient_norm": "of the whole gradient, before clipping",
    "lr": "the learning rate of the step",
    "tokens_per_second": "places of the rows in a second of training, padding included",
    "mfu": "model FLOPs utilisation: the share of the device's peak that the products of the model use",
}


def explained(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(name, what it means) of the numbers of `rows` that have a line here."""
    names = dict.fromkeys(name for row in rows for name in row)
    means = lambda name: next((text for key, text in WORDS.items() if name == key or (key[0] == "_" and name.endswith(key))), "")
    return [(name, means(name)) for name in names if means(name)]
