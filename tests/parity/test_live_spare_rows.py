"""R13 beside transformers: models of every family with more rows than their tokenizer has pieces."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from jaxenc.convert import hf, parity
from jaxenc.data.tokenizers import wordpiece
from jaxenc.data.tokenizers.sentencepiece import unigram
from tests.parity import peer
from tests.parity.cases import CASES, FAMILIES, VOCAB
from tests.selection import thinned

TEXT = "the quick brown fox jumps over the lazy dog"
# The first of each family with a head on the vocabulary.
ON_VOCABULARY = [case for case in CASES.values() if {"mlm", "lm", "next_token"} & set(case.logits)]
ARCHITECTURES = {case.family.name: case.architecture for case in reversed(ON_VOCABULARY)}.values()


def tokenizer(folder: Path, pad: int) -> int:
    """Writes a tokenizer of about 60 pieces with the id `pad` of padding, 0, 1 or XLNet's; returns its number of pieces."""
    made = (unigram if pad == FAMILIES["XLNet"].pad else wordpiece).train([TEXT] * 3, 60)
    if pad == 1:
        made.save(folder.parent / "trained")
        first, unk, *rest = (folder.parent / "trained" / "vocab.txt").read_text().splitlines()
        (folder / "vocab.txt").write_text("\n".join([unk, first, *rest]) + "\n")
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    else:
        made.save(folder)
        assert made.vocabulary.pad == pad
    return made.vocabulary.size


@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, "BertForPreTraining", "XLNetLMHeadModel", "OpenAIGPTLMHeadModel"))
def test_the_numbers_and_tensors_of_all_rows(architecture: str, tmp_path: Path) -> None:
    """`--check` holds over all rows, whose last have the largest numbers; the export has the same tensors bitwise; no text that a GPT
    samples has such an id."""
    case = CASES[architecture]
    theirs = peer.build(case, case.activations[0], seed=3)
    (tmp_path / "theirs").mkdir()
    size = tokenizer(tmp_path / "theirs", case.family.pad)
    with torch.no_grad():
        theirs.get_input_embeddings().weight[size:] *= 3
        for value in theirs.parameters():
            if value.shape == (VOCAB,):
                value[size:] = 30
    theirs.save_pretrained(tmp_path / "theirs")
    model = hf.load(tmp_path / "theirs")
    assert (model.config.model.pieces, model.config.model.vocab_size) == (size, VOCAB)
    differences = parity.compare(model, tmp_path / "theirs")
    assert {"hidden states", *case.logits} <= {one.name for one in differences} and all(one.within for one in differences), differences
    hf.save(tmp_path / "out", model)
    wanted, found = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "out"))
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in found) and set(found) <= set(wanted)
    assert max(len(array) for array in found.values()) >= VOCAB
    if "next_token" in case.logits:
        completions = model.complete(["the fox"] * 4, max_new=8, temperature=5.0, samples=8)
        assert max(index for one in completions for index in one.tokens) < size
        assert len(np.unique([index for one in completions for index in one.tokens])) > 20
