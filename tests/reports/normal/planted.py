"""Trains the runs that the checks are tried on, and keeps what a run writes: its settings, its numbers and what its text says.

    python -m tests.reports.normal.planted OUT [NAME ...]

Real training at nano size on the text of the Python interpreter and of its packages (`docstrings`): PLANTED runs have one fault each,
HEALTHY ones none, ODD ones an unusual setting that is right. OUT/NAME gets config.json, metrics.jsonl and text.json; OUT/work keeps
vocabularies and data. Half a minute a run on a free core. The runs in tests/reports/normal/runs/ were made with it.
"""

import dataclasses
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxenc.cli.main import main
from jaxenc.data import docstrings
from jaxenc.data.sources import DataConfig
from jaxenc.reports.normal import text

VOCABULARIES = {"pieces": ("wordpiece", "1024"), "unigram": ("unigram", "1024"), "words": ("characters", "1024")}
PARAGRAPHS = 60
FILES = ("config.json", "metrics.jsonl")


@dataclasses.dataclass(frozen=True)
class Case:
    """recipe and fields: of `jaxenc pretrain`. vocabulary: of VOCABULARIES. small: train on PARAGRAPHS paragraphs of one package."""

    recipe: str
    fields: Mapping[str, object]
    vocabulary: str = "pieces"
    small: bool = False


NANO = {"model.width": 64, "model.feed_forward": 128, "train.batch": 32, "eval.every": 30, "eval.rows": 128, "log.every": 5}
BERT = {**NANO, "train.steps": 300, "train.seed": 11}
ELECTRA = {"train.steps": 300, "train.batch": 16, "train.seed": 12, "eval.every": 30, "eval.rows": 128, "log.every": 5}
XLNET = {**NANO, "train.steps": 300, "train.seed": 23}
ELMO = {"train.steps": 200, "train.batch": 32, "train.seed": 24, "eval.every": 25, "eval.rows": 128, "log.every": 5}
LARGE_GENERATOR = {
    "model.generator_width": 128,
    "model.generator_feed_forward": 256,
    "model.width": 32,
    "model.feed_forward": 64,
    "model.layers": 1,
}

HEALTHY = {
    "bert": Case("bert/tiny", {**BERT, "train.seed": 21}),
    "electra": Case("electra/tiny", {**ELECTRA, "train.seed": 22}),
    "xlnet": Case("xlnet/tiny", XLNET, "unigram"),
    "elmo": Case("elmo/tiny", ELMO, "words"),
}
PLANTED = {
    "plateau": Case("electra/tiny", {**ELECTRA, "train.batch": 64, "train.steps": 200, "optim.lr": 4e-3, "model.init_scale": 0.3}),
    "divergence": Case("bert/tiny", {**BERT, "optim.lr": 1.0, "optim.warmup": 300, "optim.clip": 0}),
    "generator_too_strong": Case("electra/tiny", {**ELECTRA, **LARGE_GENERATOR}),
    "masking_rate_off": Case("bert/tiny", {**BERT, "objective.max_predictions": 1, "train.steps": 100}),
    "masking_rate_80": Case("bert/tiny", {**BERT, "objective.rate": 0.8, "train.steps": 100}),
    "learning_rate_too_high": Case("bert/tiny", {**BERT, "optim.lr": 0.2, "optim.warmup": 10}),
    "learning_rate_too_low": Case("bert/tiny", {**BERT, "optim.lr": 2e-5, "train.steps": 350}),
    "data_repeated": Case("gpt/tiny", {**NANO, "train.steps": 300, "train.seed": 18}, small=True),
}
ODD = {
    "mask_40": Case("bert/tiny", {**BERT, "objective.rate": 0.4, "train.seed": 15}),
    "batch_8": Case("bert/tiny", {**BERT, "train.batch": 8, "train.seed": 16, "optim.lr": 2e-3}),
    "very_short": Case("bert/tiny", {**BERT, "train.steps": 20, "optim.warmup": 5, "train.seed": 17}),
}
CASES = {**HEALTHY, **PLANTED, **ODD}


def run(case: Case, name: str, out: Path) -> None:
    """Trains one case in OUT/work and keeps its FILES and the facts of its text in OUT/NAME."""
    data, work = _data(case, out / "work"), out / "work" / "runs" / name
    fields = {"data.path": data, "checkpoint.every": 10_000, "log.tensorboard": "false", **case.fields}
    shutil.rmtree(work, ignore_errors=True)
    code = main(
        ["pretrain", "--config", case.recipe, "--workdir", str(work), *(f"--config.{key}={value}" for key, value in fields.items())]
    )
    print(f"{name}: exit code {code}", file=sys.stderr)
    (out / name).mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copyfile(work / file, out / name / file)
    config = json.loads((out / name / FILES[0]).read_text())
    config["data"]["path"] = "data"  # of no machine
    (out / name / FILES[0]).write_text(json.dumps(config, indent=1))
    facts = text.read(DataConfig(path=str(data), rows="sentences" if case.recipe.startswith("elmo") else "text"))
    (out / name / "text.json").write_text(json.dumps(dataclasses.asdict(facts), indent=1))


def _data(case: Case, work: Path) -> Path:
    """The data folder of a case, built where it is not there yet."""
    kind, size = VOCABULARIES[case.vocabulary]
    tokenizer, source = work / f"{case.vocabulary}.tokenizer", "docstrings"
    data = work / f"{case.vocabulary}{'.small' * case.small}"
    if not tokenizer.exists():
        main(["tokenizer", "--input", source, "--type", kind, "--vocab-size", size, "--out", str(tokenizer)])
    if case.small:
        source = str(_part(work))
    if not data.exists():
        main(["data", "--input", source, "--tokenizer", str(tokenizer), "--out", str(data)])
    return data


def _part(work: Path) -> Path:
    """The first paragraphs of the docstrings of one package, each a document."""
    path = work / "part.txt"
    if not path.exists():
        found = [paragraph for _, paragraphs in docstrings.modules(("optax",)) for paragraph in paragraphs]
        path.write_text("\n\n".join(found[:PARAGRAPHS]) + "\n")
    return path


if __name__ == "__main__":
    for chosen in sys.argv[2:] or CASES:
        run(CASES[chosen], chosen, Path(sys.argv[1]))
