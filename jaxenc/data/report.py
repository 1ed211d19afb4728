"""The report of a build: what is in a data folder, what was dropped and why, and rows as a model reads them."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxenc.data import held_out, lost, manifest, tokenizers
from jaxenc.data.facts import EDGES, Facts
from jaxenc.data.inspect import spelled
from jaxenc.data.manifest import Manifest
from jaxenc.data.readers.document import described
from jaxenc.data.sources import DataConfig, open_source
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.files import read_json, user_errors, write_bytes, written

FACTS, TEXT, PICTURE = "report.json", "report.md", "report.png"
UNKNOWN_LIMIT = 0.05  # share of unknown tokens above which a build warns
MOST_HELD_OUT = 0.2  # share of the documents that a warning advises to hold out at most
SINGLE_LIMIT = 0.9  # share of documents with one sentence above which a build warns
SHOWN_ROWS, SHOWN_LENGTH = 10, 128
DROPPED = {
    "empty_sentences": "sentences without a token",
    "empty_documents": "documents without a token",
    "duplicates": "duplicate documents",
}


def check(facts: Mapping[str, Facts], inputs: Sequence[str]) -> None:
    """Raises UserError where the split `train` has no rows, with the reason. facts: by split; inputs: their names."""
    train, apart = facts["train"], facts["held_out"]
    if train.tokens:
        return
    names, total = ", ".join(inputs), train + apart
    if apart.tokens:
        raise UserError(f"every document is held out, {apart.documents} in all, so there is none to train on", names, "use --held-out 0")
    if total.documents + total.empty_documents + total.duplicates == 0:
        raise UserError("no document found", names, "name files with at least one line of text")
    raise UserError(f"no token came out of {total.empty_documents} documents", names, "check the text and the tokenizer")


def warnings(facts: Mapping[str, Facts], vocabulary: Vocabulary, share: float) -> list[str]:
    """A line for each likely mistake. share: the requested share of held-out documents."""
    total = facts["train"] + facts["held_out"]
    out = []
    if total.unknown > UNKNOWN_LIMIT * total.tokens:
        out.append(f"{total.unknown / total.tokens:.1%} of the tokens are {_cause(total, vocabulary)}")
    if total.marks.many:
        advice = "use one made for this script, or make one with `jaxenc tokenizer`, which keeps marks"
        out.append(f"the tokenizer drops {total.marks.summary}: {advice}")
    if vocabulary.frames and not vocabulary.words and total.documents > 1 and total.single > SINGLE_LIMIT * total.documents:
        advice = "put several sentences in a document, one a line where the script marks no end; other rows do not need it"
        what = f"{total.single:,} of {total.documents:,} documents have one sentence, and data.rows=pairs or swapped_pairs need several"
        out.append(f"{what}: {advice}")
    if share and not facts["held_out"].documents:
        noun = f"the text is {total.documents:,} documents" if total.documents > 1 else "the whole text is one document"
        advice = "a blank line ends a document; a run on this data is not evaluated"
        out.append(f"nothing is held out, because {noun}: {advice}")
    elif share and (few := held_out.too_few(facts["held_out"].tokens)):
        out.append(f"{few}; {_more_held_out(facts, share)}")
    return out


def _more_held_out(facts: Mapping[str, Facts], share: float) -> str:
    """Which option gives a held-out split of enough tokens, if a fifth of the text does."""
    total = sum(own.tokens for own in facts.values())
    wanted = math.ceil(110 * held_out.enough() / total) / 100  # a tenth more, as documents differ in length
    if wanted <= MOST_HELD_OUT:
        return f"--held-out {max(wanted, share):g} gives enough"
    return f"--held-out {MOST_HELD_OUT:g} gives more, and more text gives enough" if share < MOST_HELD_OUT else "more text gives more"


def _cause(total: Facts, vocabulary: Vocabulary) -> str:
    """What the unknown tokens are and where they most likely come from; it continues `10% of the tokens are`."""
    name = vocabulary.unknown_name if vocabulary.words else "[UNK]"
    sampled = sum(total.sampled_unknown.values())
    if total.long_words > sampled / 2:
        what = f"most of them words of more than {LONGEST_WORD} characters, which this vocabulary does not split"
        return f"{name}, {what}: use one made by `jaxenc tokenizer`, which splits them, or put blanks between words"
    script = max(total.sampled_unknown, key=lambda name: total.sampled_unknown[name], default="")
    where = f", most often in {script} ({_share(total, script):.0%} of its tokens)" if script not in ("", "Other") else ""
    advice = "check that the tokenizer fits the text (lower case, accents, script)"
    return f"{name}{where}; {advice}" + " and has enough words" * bool(vocabulary.words)


def _share(total: Facts, script: str) -> float:
    return total.sampled_unknown.get(script, 0) / total.sampled_tokens[script]


def write_facts(folder: Path, result: Manifest, facts: Mapping[str, Facts], warnings: Sequence[str]) -> None:
    """Writes the numbers of `report.json`: those of `facts` by split, bytes a token, the share of unknown tokens by script, and what was
    warned of."""
    total = facts["train"] + facts["held_out"]
    size = sum(result.files[name].size for split in result.splits.values() for shard in split.shards for name in result.sizes(shard))
    data = {
        "splits": {split: dataclasses.asdict(own) for split, own in facts.items()},
        "bytes_a_token": size / total.tokens,
        "text_bytes_a_token": total.text_bytes / total.tokens,
        "unknown_by_script": {script: _share(total, script) for script in sorted(total.sampled_tokens)},
        "reader": dict(result.reader),
        "warnings": list(warnings),
    }
    write_bytes(folder / FACTS, (json.dumps(data, indent=1) + "\n").encode())


def write(folder: Path) -> None:
    """Adds sampled rows to a data folder's `report.json`, and writes `report.md` and a picture of its lengths.

    These files are not part of the data's fingerprint. Raises UserError for a folder without `report.json` or that is not writable.
    """
    data = _read(folder) | {"rows": rows(folder)}
    with user_errors(folder, "check that the folder can be written to"):
        write_bytes(folder / FACTS, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
        with written(folder / PICTURE) as temporary:
            _draw({split: Facts.from_json(own) for split, own in data["splits"].items()}, temporary)
        write_bytes(folder / TEXT, _text(data, summary(folder)).encode())


def _read(folder: Path) -> dict[str, Any]:
    return read_json(folder / FACTS, "this folder was made by an older jaxenc and has no report; build the data again for one")


def rows(folder: Path) -> list[str]:
    """SHOWN_ROWS rows of `data.rows=text` at SHOWN_LENGTH, evenly spaced over an epoch: their pieces, as `inspect.spelled` writes them."""
    source = open_source(DataConfig(str(folder), SHOWN_LENGTH), "train", 0, evaluation=True)
    batch = source.rows(0, np.unique(np.linspace(0, len(source) - 1, SHOWN_ROWS).astype(np.int64)))
    tool = tokenizers.load(folder / "tokenizer")
    return [spelled(tool, *row) for row in zip(batch["tokens"], batch["segments"], strict=True)]


def summary(folder: Path) -> list[str]:
    """Lines about a data folder that its manifest does not hold. Raises UserError as `write`."""
    data, facts = _read(folder), manifest.read(folder)
    total = sum((Facts.from_json(own) for own in data["splits"].values()), Facts())
    dropped = [f"{what} {getattr(total, name):,}" for name, what in DROPPED.items() if getattr(total, name)]
    noticed, name = described(data["reader"]), facts.tokenizer.unknown_name
    return [
        f"{data['bytes_a_token']:.2f} bytes a token on disk, {data['text_bytes_a_token']:.2f} bytes of text a token",
        f"dropped: {', '.join(dropped) or 'nothing'}",
        *([f"while reading: {noticed}"] if noticed else []),
        f"characters removed by the vocabulary's normaliser: {_listed(total.removed)}",
        *([f"it also drops {total.marks.summary}, in a sample"] if total.marks.lost else []),
        f"{name} tokens by script, in a sample: {_by_script(data['unknown_by_script'])}",
        *([f"{name} characters, in a sample: {lost.listed(total.unknown_characters)}"] if total.unknown_characters else []),
    ]


def _listed(removed: Mapping[str, int]) -> str:
    return f"{sum(removed.values()):,}: {lost.listed(removed)}" if removed else "none"


def _by_script(shares: Mapping[str, float]) -> str:
    ranked = sorted(((share, script) for script, share in shares.items()), key=lambda one: (-one[0], one[1]))
    there = [f"{script} {share:.2%}" for share, script in ranked if share]
    return ", ".join(there) or f"none ({', '.join(script for _, script in ranked) or 'no token'})"


def _text(data: Mapping[str, Any], summary: Sequence[str]) -> str:
    out = ["# What is in this data folder", ""]
    out += ["|  | documents | sentences | tokens | unknown |", "| --- | --- | --- | --- | --- |"]
    for split, own in data["splits"].items():
        share = own["unknown"] / max(own["tokens"], 1)
        out.append(f"| {split} | {own['documents']:,} | {own['sentences']:,} | {own['tokens']:,} | {share:.2%} |")
    out += ["", *(f"- {line}" for line in summary)]
    if data.get("warnings"):
        out += ["", "## Warnings", "", *(f"* {line}" for line in data["warnings"])]
    out += ["", f"![Lengths of documents and sentences, in tokens]({PICTURE})", ""]
    out += [f"## Rows of `data.rows=text` at length {SHOWN_LENGTH}", "", *(f"    {row}" for row in data["rows"])]
    return "\n".join(out) + "\n"


def _draw(facts: Mapping[str, Facts], path: Path) -> None:
    """A PNG with the lengths of documents and of sentences in tokens, both splits together."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    total = sum(facts.values(), Facts())
    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, noun in zip(figure.subplots(1, 2), ("document", "sentence"), strict=True):
        counts = getattr(total, f"{noun}_lengths")
        # Bin i holds EDGES[i - 1] <= length < EDGES[i].
        starts = np.concatenate([[1], EDGES])[: len(counts) + 1]
        axis.stairs(counts, starts, fill=True)
        axis.set(xscale="log", xlabel=f"tokens of a {noun}", ylabel=f"{noun}s", title=f"{sum(counts):,} {noun}s", ylim=(0, None))
    figure.savefig(path, format="png", dpi=120)
