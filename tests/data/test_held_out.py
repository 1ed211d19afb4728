"""Which documents are held out is a rule of their text alone, and it never changes: a corpus built again has the same split."""

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest

from jaxenc.data.build import build
from jaxenc.data.store import open_split
from jaxenc.data.tokenizers import load, wordpiece

# Every third document has a second line.
DOCUMENTS = [f"text {number} here" + (f"\nand {number} there" if number % 3 == 0 else "") for number in range(60)]
# Numbers of those that are held out at a share of 0.2, as first published.
PINNED = [0, 4, 14, 18, 19, 20, 24, 25, 26, 30, 43, 46]


def held_out(share: float) -> list[int]:
    """By hand: BLAKE2b of 8 bytes of the lines with line feeds between, read from its last byte to its first, below the share of 2^64."""
    found = []
    for number, text in enumerate(DOCUMENTS):
        value = 0
        for byte in reversed(hashlib.blake2b(text.encode(), digest_size=8).digest()):
            value = 256 * value + byte
        if value < share * 2.0**64:
            found.append(number)
    return found


@pytest.mark.parametrize("share", [0.2, 0.5, 0.0])
def test_the_documents_of_the_rule_are_held_out(share: float, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(DOCUMENTS))
    wordpiece.train(DOCUMENTS * 2, 200).save(tmp_path / "tokenizer")
    build([str(tmp_path / "text.txt")], tmp_path / "tokenizer", tmp_path / "data", share)
    tool, found = load(tmp_path / "tokenizer"), {}
    for split in ("train", "held_out"):
        shards = open_split(tmp_path / "data", split)
        tokens = shards.tokens.take(np.arange(len(shards.tokens)))
        starts = shards.sentences.take(shards.documents.take(np.arange(len(shards.documents))))
        texts = [tool.decode(tokens[a:b].tolist()) for a, b in itertools.pairwise(starts)]
        found[split] = [int(text.split()[1]) for text in texts]
    assert found["held_out"] == held_out(share)
    assert sorted(found["train"] + found["held_out"]) == list(range(60))


def test_the_rule_is_the_one_of_all_data_so_far() -> None:
    assert held_out(0.2) == PINNED
