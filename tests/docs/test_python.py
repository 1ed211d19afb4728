"""The blocks of Python of README and docs/, run as they stand, in the order of the pages, in a folder with what they name."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from jaxenc.cli.main import main
from tests import tiny
from tests.cli.test_pretrain import NANO, command
from tests.docs import blocks
from tests.docs.blocks import PAGES, Block
from tests.training.conftest import make_data

PYTHON = [block for page in PAGES for block in blocks.blocks(page) if block.language == "python" and not block.mark]
# What is smaller here: {text of a page: what runs in its place}.
SMALLER = {"vocab_size=8000": "vocab_size=60"}
TEXTS = {"good": "a fine film", "bad": "a dull one"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """runs/first and runs/pairs, one BERT with both heads; runs/gpt; train.tsv and dev.tsv; runs/sst2, fine-tuned on the same; corpus.txt.
    It is the working directory."""
    root = tmp_path_factory.mktemp("reader")
    made = make_data(root / "made", 1)
    (root / "data").symlink_to(made)
    (root / "corpus.txt").symlink_to(root / "made" / "text.txt")
    lines = [f"{text}\t{label}\n" for label, text in itertools.islice(itertools.cycle(TEXTS.items()), 24)]
    for name in ("train", "dev"):
        (root / f"{name}.tsv").write_text("review\tstars\n" + "".join(lines))
        (root / f"{name}_sst2.tsv").write_text("sentence\tlabel\n" + "".join(lines).replace("good", "positive").replace("bad", "negative"))
    with pytest.MonkeyPatch.context() as patch, tiny.on_one_device():
        patch.chdir(root)
        pairs = ("--config.objective.kind=mlm_nsp", "--config.data.rows=pairs")
        assert main(command(Path("data"), Path("runs/first"), *pairs)) == 0
        (root / "runs" / "pairs").symlink_to("first")
        gpt = ["pretrain", "--config", "gpt/tiny", "--config.data.path=data", "--workdir", "runs/gpt", *NANO]
        assert main(gpt) == 0
        files = ["--config.data.train=train_sst2.tsv", "--config.data.dev=dev_sst2.tsv", "--text", "sentence", "--label", "label"]
        tune = ["finetune", "--config", "tasks/text", "--init-from", "runs/first", "--workdir", "runs/sst2", *files]
        assert main([*tune, "--config.train.epochs=1"]) == 0
        yield root


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_a_block_runs(block: Block, folder: Path) -> None:
    text = block.text
    for whole, smaller in SMALLER.items():
        text = text.replace(whole, smaller)
    exec(compile(text, block.name, "exec"), {"__name__": "page"})
