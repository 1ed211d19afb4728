"""A model that we trained, on eight devices, in transformers: the same words for a mask, with the same probabilities; of an XLNet the
same logits and layers."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import jaxenc
from jaxenc.cli.main import main

WORDS = "the cat dog bird fish sat ran flew swam on over under by a old red mat hill tree sea".split()
RUN = {
    "mesh.preset": "fsdp",
    "model.width": 32,
    "model.layers": 1,
    "model.feed_forward": 64,
    "train.batch": 16,
    "train.steps": 12,
    "eval.batch": 16,
    "optim.warmup": 2,
    "log.tensorboard": "false",
}


def trained(folder: Path, kind: str, recipe: str) -> Path:
    """A run directory: a vocabulary, data and twelve steps through the commands."""
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(WORDS, 9)) + "." for _ in range(400)]
    (folder / "text.txt").write_text("\n\n".join("\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)))
    settings = [f"--config.{field}={value}" for field, value in RUN.items()]
    tokenizer, data, run = (str(folder / name) for name in ("tokenizer", "data", "run"))
    assert main(["tokenizer", "--input", str(folder / "text.txt"), "--type", kind, "--vocab-size", "300", "--out", tokenizer]) == 0
    assert main(["data", "--input", str(folder / "text.txt"), "--tokenizer", tokenizer, "--held-out", "0.1", "--out", data]) == 0
    assert main(["pretrain", "--config", recipe, f"--config.data.path={data}", "--workdir", run, *settings]) == 0
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, recipe, mask",
    [("wordpiece", "bert/tiny", "[MASK]"), pytest.param("bpe", "roberta/tiny", "<mask>", marks=pytest.mark.full)],
)
def test_the_same_five_words(kind: str, recipe: str, mask: str, tmp_path: Path) -> None:
    run, out = trained(tmp_path, kind, recipe), tmp_path / "out"
    assert main(["export", "--model", str(run), "--to", "hf", "--out", str(out)]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(out, local_files_only=True)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(out, local_files_only=True).eval()
    model = jaxenc.load(run)
    for text in (f"the old {mask} sat on the mat.", f"a {mask} flew over the {mask} tree."):
        ids = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            probabilities = theirs(**ids).logits[0].softmax(-1)[ids["input_ids"][0] == tokenizer.mask_token_id]
        for guesses, row in zip(model.fill_mask(text, k=5), probabilities, strict=True):
            best = row.topk(5)
            assert [guess.token for guess in guesses] == tokenizer.convert_ids_to_tokens(best.indices.tolist())
            assert np.abs([guess.probability for guess in guesses] - best.values.numpy()).max() <= 1e-5


@pytest.mark.slow
@pytest.mark.full  # test_live_xlnet.py compares the same numbers of models that were not trained
def test_an_xlnet_says_the_same_of_every_place(tmp_path: Path) -> None:
    """Texts and the ids, types and left padding that transformers' own tokenizer gives them; `encode` pads on the right. 15 s."""
    run, out = trained(tmp_path, "unigram", "xlnet/tiny"), tmp_path / "out"
    assert main(["export", "--model", str(run), "--to", "hf", "--out", str(out)]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(out, local_files_only=True)
    theirs, told = transformers.XLNetLMHeadModel.from_pretrained(out, local_files_only=True, output_loading_info=True)
    assert not any(told.values()), told
    texts = ["the old cat sat on the mat.", "a bird"]
    rows = tokenizer(texts, return_tensors="pt", padding=True)
    assert rows["attention_mask"][1, 0] == 0 and rows["token_type_ids"][:, -1].tolist() == [2, 2]
    with torch.no_grad():
        found = theirs.eval()(**rows, output_hidden_states=True)
    model, batch = jaxenc.load(run), {"tokens": "input_ids", "types": "token_type_ids", "segments": "attention_mask"}
    given = model.apply(model.params, {ours: rows[name].numpy().astype(np.int32) for ours, name in batch.items()})
    assert np.abs(given["lm"] - found.logits.numpy()).max() <= 1e-5
    encoded, hidden = model.encode(texts), torch.stack(found.hidden_states).numpy()
    for row, length in enumerate(encoded.mask.sum(axis=1)):
        assert encoded.tokens[row, :length].tolist() == rows["input_ids"][row, -length:].tolist()
        assert np.abs(encoded.hidden[:, row, :length] - hidden[:, row, -length:]).max() <= 1e-5
