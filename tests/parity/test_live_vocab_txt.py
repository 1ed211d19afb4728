"""Lines of vocab.txt that are repeated, blank or padded: the ids of transformers and of google-research/bert, or a refusal."""

import json
import random
from pathlib import Path

import transformers

from jaxenc.data.tokenizers import load
from jaxenc.errors import UserError
from tests.selection import FULL

FILES = 1000 if FULL else 60
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "dog", "foo", "b", "##s", "##ar", "!", "日", "über", "u"]
BLANK = ["", " ", "\t", "\u3000", "\u00a0", "\u2028", "\x85", "\x0b", "\x1c", " \u3000 "]
BEFORE = ["", "", "", "", "", "", "", " ", "\u3000", "\x1c"]
AFTER = ["", "", "", "", " ", "\t", "  ", "\u3000", "\u00a0", "\x85", "\r"]
TEXT = "the cats bar foo! 日 the über dogs u us [MASK] b"


def google(path: Path) -> dict[str, int]:
    """google-research/bert:tokenization.py, load_vocab."""
    lines = path.read_bytes().decode().removesuffix("\n").split("\n")
    return {line.strip(): index for index, line in enumerate(lines)}


def test_r15_every_file_has_the_ids_of_both_readers_or_is_refused(tmp_path: Path) -> None:
    """60 random files (1,000 in the full suite), with lines repeated, blank and padded by white space of many kinds, and either line end. A
    file is refused only for white space that the two read differently."""
    rng, refused, sizes = random.Random(0), 0, 0
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    path = tmp_path / "vocab.txt"
    for number in range(FILES):
        odd = rng.random() < 0.3
        lines = rng.choices([*SPECIALS, *WORDS, *BLANK], k=rng.randint(5, 25))
        lines = [line and rng.choice(BEFORE if odd else [""]) + line + rng.choice([*AFTER, "\x1c" * odd]) for line in lines]
        lines = rng.sample([*SPECIALS, *lines], len(lines) + 5) + rng.choices(BLANK, k=rng.randint(0, 2))
        path.write_bytes(rng.choice(["\n", "\r\n"]).join([*lines, ""]).encode())
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
        same = {piece: index for piece, index in theirs.get_vocab().items() if piece.strip()} == {
            piece: index for piece, index in google(path).items() if piece
        }
        try:
            ours = load(tmp_path)
        except UserError as error:
            assert "google-research/bert reads it as" in str(error) and not same, (number, lines)
            refused += 1
            continue
        assert same and ours.encode_prompt(TEXT) == theirs(TEXT)["input_ids"], (number, lines)
        assert ours.encode(["the cats foo"])[0] == theirs("the cats foo", add_special_tokens=False)["input_ids"]
        sizes += ours.vocabulary.size > len(theirs)
    assert FILES / 10 < refused < 0.6 * FILES and sizes > FILES / 10, (
        "of the files that open, many have rows that transformers does not name"
    )
