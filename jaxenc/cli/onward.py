"""What to run next with a model that a command wrote."""

import shlex
from pathlib import Path

from jaxenc.pretrained import Model


def commands(out: Path, model: Model) -> str:
    """Lines to print: how `model`, which lies in the run directory `out`, is trained on with text of one's own.

    A model whose objective is not learned from text alone, such as a classifier, goes on with masked tokens.
    """
    if model.tokenizer is None:
        return f"next, in Python: jaxenc.load({str(out)!r}).encode(tokens=...); training on needs a tokenizer"
    run, tokenizer, config = (shlex.quote(str(path)) for path in (out, out / "tokenizer", out / "config.json"))
    kind = "" if "mlm" in model.objective.coef else " --config.objective.kind=mlm"
    return (
        f"next: jaxenc data --input FILES --tokenizer {tokenizer} --out DATA\n"
        f"      jaxenc pretrain --config {config}{kind} --init-from {run} --config.data.path=DATA --workdir RUN"
    )
