"""The commands of docs/continuing.md as they stand there: a model that transformers wrote learns new words and opens in transformers."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import jaxenc
from jaxenc.cli.main import main
from tests import tiny
from tests.convert import folders

PAGE = Path(__file__).parents[2] / "docs" / "continuing.md"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a old red cat dog sat ran slept sleeps on over under by mat hill tree sea and .".split()
NEW = ["axolotl", "quokka", "okapi"]
PIECES, ROWS = len(SPECIALS) + len(WORDS), 32  # rows of a multiple of 8: seven have no piece


def blocks(language: str) -> list[str]:
    """The lines of the page's code blocks of a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in found for line in block.splitlines()]


def publish(folder: Path) -> None:
    """A random BERT of ROWS rows with a tokenizer of PIECES pieces. The bias of the last row, which has none, is the largest."""
    (folder / "vocab.txt").parent.mkdir()
    (folder / "vocab.txt").write_text("\n".join([*SPECIALS, *WORDS]) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=ROWS, max_position_embeddings=40, **sizes))
    with torch.no_grad():
        model.cls.predictions.bias.copy_(torch.randn(ROWS))
        model.cls.predictions.bias[-1] = 100
    model.save_pretrained(folder)


def write_text(folder: Path) -> None:
    """200 documents of short sentences, in which only new words sleep; and the list of new words."""
    folder.mkdir()
    random = np.random.default_rng(0)
    line = lambda: (
        f"the {random.choice(WORDS[2:4])} {random.choice(NEW)} sleeps {random.choice(WORDS[10:14])} the {random.choice(WORDS[14:18])}."
    )
    (folder / "text.txt").write_text("\n\n".join("\n".join(line() for _ in range(4)) for _ in range(200)))
    (folder.parent / "words.txt").write_text("\n".join(NEW) + "\n")


@pytest.mark.full
@pytest.mark.slow
def test_the_page_from_a_published_model_to_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """R13: each command ends with 0, the held-out loss falls, and transformers gives the ids and, within 1e-5 of the scale, the logits of
    all rows."""
    monkeypatch.chdir(tmp_path)
    publish(tmp_path / "published")
    write_text(tmp_path / "corpus")
    said: dict[str, list[tuple[str, str]]] = {}
    for line in blocks("sh"):
        name, *arguments = shlex.split(line)
        with tiny.on_one_device():
            assert name == "jaxenc" and main(arguments) == 0, line
        said.setdefault(arguments[0], []).append(tuple(capsys.readouterr()))

    assert f"{ROWS} rows of the token table and {PIECES} pieces: the last {ROWS - PIECES} rows are kept" in said["convert"][0][1]
    assert f"3 of them take rows of the token table that had no piece; {ROWS - PIECES - 3} such rows are left" in said["resize-vocab"][0][0]
    before, after = (json.loads(out.splitlines()[-1])["mlm_loss"] for out, _ in said["evaluate"])
    assert after < before - 1, (before, after)
    published, larger = (folders.read(Path(name) / "model.safetensors") for name in ("published", "exported"))
    assert len(larger["bert.embeddings.word_embeddings.weight"]) == ROWS == len(published["bert.embeddings.word_embeddings.weight"])
    rows = larger["bert.embeddings.word_embeddings.weight"][PIECES : PIECES + 3]
    assert np.abs(rows[0] - rows[1]).max() > 1e-3 and larger["cls.predictions.bias"][-1] > 90

    space: dict = {}
    exec("\n".join(blocks("python")), space)
    tokenizer, theirs, ours = space["tokenizer"], space["model"].eval(), jaxenc.load("runs/domain")
    texts = ["the old axolotl sleeps on the mat.", "a quokka and an okapi ran. zebra"]
    given = tokenizer(texts, padding=True, return_tensors="pt")
    encoded = ours.encode(texts)
    assert given["input_ids"].tolist() == encoded.tokens.tolist() and PIECES in encoded.tokens and PIECES + 2 in encoded.tokens
    with torch.no_grad():
        wanted = theirs(**given).logits.numpy()
    found = np.asarray(ours.apply(ours.params, {"tokens": encoded.tokens, "segments": encoded.mask})["mlm"])
    assert found.shape == wanted.shape == (*encoded.tokens.shape, ROWS) and np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
    # Of all rows the last has the largest logit by far, and it has no piece.
    (guesses,), mask = ours.fill_mask("the [MASK] sleeps.", k=PIECES + 3), tokenizer("the [MASK] sleeps.", return_tensors="pt")
    with torch.no_grad():
        logits = theirs(**mask).logits[0, 2]
    order = tokenizer.convert_ids_to_tokens(logits[: PIECES + 3].argsort(descending=True).tolist())
    assert int(logits.argmax()) == ROWS - 1 and [guess.token for guess in guesses] == order
