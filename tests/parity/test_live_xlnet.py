"""XLNet's two streams against transformers' XLNetLMHeadModel: any order, memory, types, padding, both directions. And its command and
tokenizer.

Collected where torch and transformers are installed, as test_live.py.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import jaxenc
from jaxenc.cli.main import main
from jaxenc.data.tokenizers.sentencepiece import unigram
from jaxenc.inference import inputs
from tests import tiny
from tests.convert import tf1_xlnet
from tests.parity import ours, peer, peer_xlnet, xlnet
from tests.parity.cases import CASES
from tests.selection import thinned


# Golden arrays have two others (test_golden_xlnet.py).
@pytest.mark.parametrize("name", thinned(xlnet.SETTINGS, "both directions"))
def test_streams_logits_memory_and_gradients(name: str) -> None:
    """<= 1e-5 in all layers of both streams, logits and new memory, of the loss, and of all gradients as design.md says."""
    s = xlnet.SETTINGS[name]
    model, given = peer_xlnet.build(s), xlnet.rows(s)
    got, gradients = xlnet.computed(s, peer_xlnet.weights(model), given)
    wanted, slopes = peer_xlnet.theirs(s, model, given)
    assert got.keys() == wanted.keys()
    for part, value in wanted.items():
        np.testing.assert_allclose(got[part], value, rtol=ours.BOUND, atol=ours.BOUND, err_msg=part)
    tiny.assert_close(gradients, slopes, ours.BOUND)


TEXTS = ["the quick brown fox jumps over the lazy dog", "a lazy dog", "Über 3.5 <mask>  naïve", ""]


@pytest.mark.full
def test_the_command_on_a_classifier_and_its_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A checkpoint of run_classifier.py with spiece.model in, compared and out: the same ids, padded on the left there and at the end
    here, and the same classes. 10 s."""
    tokenizer = unigram.train([TEXTS[0]] * 3, 60)
    theirs = peer.weights(peer.build(CASES["XLNetForSequenceClassification"], "gelu_new", seed=1))
    size = tokenizer.vocabulary.size
    theirs["transformer.word_embedding.weight"] = 30 * theirs["transformer.word_embedding.weight"][:size]
    prefix = tf1_xlnet.archive(tmp_path / "tf", theirs, size, tokenizer)
    run, out = str(tmp_path / "run"), str(tmp_path / "out")
    assert main(["convert", "--from", f"tf:{prefix}", "--to", run, "--check"]) == 0
    table = capsys.readouterr().out.partition("of the scale:")[2].splitlines()
    assert [line.split("  ")[0] for line in table[2:4]] == ["hidden states", "classifier"]
    assert main(["export", "--model", run, "--out", out]) == 0
    auto = transformers.AutoTokenizer.from_pretrained(out, local_files_only=True)
    opened = transformers.AutoModelForSequenceClassification.from_pretrained(out, local_files_only=True).eval()
    rows = auto(TEXTS, return_tensors="pt", padding=True)
    model = jaxenc.load(run)
    ours_padded = inputs.of_texts(model.config.model, model.tokenizer, TEXTS)
    for row, length in enumerate(ours_padded["segments"].sum(axis=1)):
        for name, field in {"tokens": "input_ids", "types": "token_type_ids"}.items():
            assert ours_padded[name][row, :length].tolist() == rows[field][row, -length:].tolist(), TEXTS[row]
    with torch.no_grad():
        wanted = opened(**rows).logits.numpy()
    assert rows["attention_mask"][1, 0] == 0 and np.ptp(wanted, axis=0).max() > 0.01
    assert np.abs(model.apply(model.params, ours_padded)["classifier"] - wanted).max() <= ours.BOUND
