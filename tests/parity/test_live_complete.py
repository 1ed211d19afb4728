"""Generation and perplexity of a GPT beside transformers' on the same weights."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
import transformers

import jaxenc
from jaxenc.cli.main import main
from jaxenc.convert import hf
from jaxenc.data import sources
from jaxenc.data.baselines import count_baselines
from jaxenc.data.sources import DataConfig
from jaxenc.inference import decode, load
from jaxenc.inference.decode import Prompt
from jaxenc.inference.sampling import Sampling
from tests import tiny
from tests.data import word_bpe_files

WORDS = "the cat dog bird fish sat ran flew swam on over under by a old red mat hill tree sea".split()
NEW, POSITIONS = 12, 24


def random_gpt(vocab_size: int, folder: Path) -> transformers.OpenAIGPTLMHeadModel:
    """Weights wide enough for texts to differ, saved to `folder`; in evaluation mode."""
    torch.manual_seed(3)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": POSITIONS}
    theirs = transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(vocab_size=vocab_size, initializer_range=0.3, **sizes)).eval()
    theirs.save_pretrained(folder)
    return theirs


def test_the_most_probable_tokens_and_all_logits(tmp_path: Path) -> None:
    """`generate` without sampling on four prompts of other lengths, together here and one by one there: equal tokens, and the logits of
    every step within 1e-5 of the largest. The pieces that are never generated here are suppressed there."""
    theirs = random_gpt(131, tmp_path / "theirs")
    model = hf.load(tmp_path / "theirs")
    decoder, random = decode.of(model.objective, tiny.VOCABULARY), np.random.default_rng(0)
    prompts = [Prompt(random.integers(5, 131, length).tolist(), number, 0) for number, length in enumerate((5, 1, 8, 3))]
    found = decoder.generate(model.params, prompts, NEW, Sampling())
    extend = jax.jit(decoder.extend)
    never = np.flatnonzero(~decoder.allowed[:131]).tolist()
    for prompt, one in zip(prompts, found, strict=True):
        settings = {"do_sample": False, "use_cache": True, "max_new_tokens": NEW, "suppress_tokens": never, "pad_token_id": 0}
        settings |= {"eos_token_id": tiny.VOCABULARY.sep, "output_logits": True, "return_dict_in_generate": True}
        given = torch.tensor([prompt.ids])
        said = theirs.generate(given, attention_mask=torch.ones_like(given), **settings)
        ids = said.sequences[0, len(prompt.ids) :].tolist()
        assert one.ids == tuple(index for index in ids if index != tiny.VOCABULARY.sep)
        length = len(prompt.ids)
        tokens = np.zeros((1, 8), np.int32)
        tokens[0, :length] = prompt.ids
        places = np.arange(8, dtype=np.int32)[None]
        logits, cache = extend(model.params, decoder.empty(1, POSITIONS), tokens, places, np.array([length - 1], np.int32))
        for step, wanted in enumerate(said.logits):
            assert np.abs(np.asarray(logits)[0, :131] - wanted[0].numpy()).max() <= 1e-5 * np.abs(wanted.numpy()).max(), step
            at = np.array([[length + step]], np.int32)
            logits, cache = extend(model.params, cache, np.array([[ids[step]]], np.int32), at, np.array([0], np.int32))
    assert len({one.ids for one in found}) == 4 and min(len(one.ids) for one in found) > 3


@pytest.mark.full
def test_the_perplexity_of_held_out_text(tmp_path: Path) -> None:
    """A vocabulary of GPT-1's files, weights of transformers, rows of text: `jaxenc evaluate` and torch's cross-entropy in float64 over the
    same rows give one perplexity, within 1e-5 of it. What counting gives lies below, since nothing has been learned."""
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(WORDS, 9)) + "." for _ in range(160)]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)))
    folder = word_bpe_files.write(tmp_path / "theirs", lines, 80)
    size = len(transformers.OpenAIGPTTokenizer.from_pretrained(folder))
    theirs = random_gpt(size, folder).double()
    run, data = tmp_path / "run", str(tmp_path / "data")
    assert main(["convert", "--from", f"hf:{folder}", "--to", str(tmp_path / "converted")]) == 0
    # A converted run computes in bfloat16, as it would train.
    model = load.load(tmp_path / "converted")
    exact = dataclasses.replace(model.config, train=dataclasses.replace(model.config.train, precision="float32"))
    dataclasses.replace(model, config=exact).save(run)
    assert main(["data", "--input", str(tmp_path / "text.txt"), "--tokenizer", str(folder), "--held-out", "0.2", "--out", data]) == 0
    with tiny.on_one_device():
        numbers = jaxenc.evaluate(run, data=data).numbers
    source = sources.open_source(DataConfig(path=data, rows="text", length=POSITIONS), "held_out", 0, True)
    rows = source.rows(0, np.arange(len(source)))
    tokens, real = torch.tensor(rows["tokens"]).long(), torch.tensor(rows["segments"] > 0)
    with torch.no_grad():
        logits = theirs(tokens).logits
    counted = (real[:, 1:] & real[:, :-1]).flatten()
    losses = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    wanted = losses[counted].mean().exp().item()
    assert numbers["causal_predictions"] == counted.sum() > 150
    assert abs(np.exp(numbers["causal_loss"]) - wanted) <= 1e-5 * wanted
    unigram = np.exp(count_baselines(data)["unigram"])
    assert 5 < unigram < len(WORDS) + 2 < wanted
