"""The reference curves of jaxenc/reports/normal/curves/: adds the curve of a run, or prints the table of docs/normal.md.

    python docs/reference_curves.py add RUN --recipe bert/small --corpus "English, 153 MB" --tokenizer wordpiece:16000 \\
        --hardware "one NVIDIA H200" --versions "jax 0.11.2" --date 2026-11-30 --command "jaxenc pretrain --config bert/small" \\
        [--counts unigram=6.99,left=5.55,left_right=4.89] [--changed "..."] [--source "..."]
    python docs/reference_curves.py table

RUN: a work directory, of which config.json and metrics.jsonl are read. --counts: the count baselines as `jaxenc report` prints them;
without it they are counted in the run's data folder. A file of the same recipe is replaced.
"""

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from jaxenc.reports import history
from jaxenc.reports.normal import text
from jaxenc.reports.normal.evidence import Evidence, neighbours
from jaxenc.reports.normal.reference import Reference, references
from jaxenc.training import record

CURVES = Path(__file__).parents[1] / "jaxenc/reports/normal/curves"
LEFT_OUT = ("step", "split", "seconds", "padding", "mask_rate")


def of_run(folder: Path, told: Mapping[str, str], counts: Mapping[str, float]) -> Reference:
    """The curve of a run. told: the fields in words; counts: {} for those of the run's data folder."""
    settings = history.settings(folder / "config.json")
    run = Evidence(record.rows(folder), settings, text.read(settings.data))
    rows = [row for row in run.rows if row["split"] == "held_out"]
    found = counts or run.text.counts
    assert rows and found, f"{folder}: {len(rows)} evaluations, counts {found}"
    names = [name for name in rows[0] if name not in LEFT_OUT and not name.endswith(("_predictions", "_perplexity"))]
    kind, size = told["tokenizer"].split(":")
    return Reference(
        **{**told, "tokenizer": {"type": kind, "size": int(size)}},
        objective=run.kind,
        model={name: run.model[name] for name in ("kind", "width", "layers") if name in run.model},
        tokens_per_step=run.phase.batch * run.phase.length,
        steps=run.settings.steps,
        warmup=run.phase.warmup,
        lr=run.phase.lr,
        counts={name: round(nats, 4) for name, nats in found.items()},
        step=[row["step"] for row in rows],
        curves={name: [round(row[name], 4) for row in rows] for name in names},
    )


def table() -> str:
    """The table of docs/normal.md: a row a curve, the evaluations at which the tokens read have doubled."""
    lines = ["| recipe | counts: frequencies, neighbours | M tokens: held-out loss (position) |", "|---|---|---|"]
    for one in references():
        shown, last = [], 0.0
        for step, tokens, loss, place in zip(one.step, one.tokens, one.loss, one.positions, strict=True):
            if tokens >= 1.9 * last or step == one.step[-1]:
                shown.append(f"{tokens / 1e6:.3g}: {loss:.2f} ({place:.2f})")
                last = tokens
        low = neighbours(one.counts, one.objective)
        lines.append(f"| `{one.recipe}` | {one.counts['unigram']:.2f}, {low:.2f} | {' · '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="do", required=True)
    commands.add_parser("table")
    add = commands.add_parser("add")
    add.add_argument("run", type=Path)
    add.add_argument("--counts", default="")
    for name in ("recipe", "corpus", "tokenizer", "hardware", "versions", "date", "command"):
        add.add_argument(f"--{name}", required=True)
    for name in ("changed", "source"):
        add.add_argument(f"--{name}", default="")
    args = vars(parser.parse_args())
    if args.pop("do") == "table":
        print(table())
        return
    counts = {name: float(value) for name, _, value in (pair.partition("=") for pair in args.pop("counts").split(",") if pair)}
    found = of_run(args.pop("run"), args, counts)
    path = CURVES / f"{found.recipe.replace('/', '_')}.json"
    path.write_text(json.dumps(dataclasses.asdict(found), indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    main()
