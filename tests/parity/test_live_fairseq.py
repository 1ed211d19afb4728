"""RoBERTa out of fairseq's checkpoints, beside transformers on the same weights (R21)."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from jaxenc.cli.main import main
from jaxenc.convert import fairseq
from jaxenc.data.tokenizers import bpe
from jaxenc.errors import UserError
from tests.parity import fairseq_files
from tests.selection import thinned

torch.set_num_threads(1)
SIZE = 60


def theirs(head: str = "ForMaskedLM", size: int = SIZE) -> transformers.PreTrainedModel:
    """A random RoBERTa without types, as fairseq's, whose weights are wide enough for any mistake to show."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "max_position_embeddings": 20}
    config = transformers.RobertaConfig(vocab_size=size, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5, num_labels=3, **sizes)
    model = getattr(transformers, f"Roberta{head}")(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.4)
        model.roberta.embeddings.token_type_embeddings.weight.zero_()
    return model


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Tokens and their mask, padded at the end."""
    tokens = np.random.default_rng(1).integers(4, SIZE, (3, 12))
    mask = np.arange(12) < np.array([12, 7, 1])[:, None]
    return np.where(mask, tokens, 1), mask.astype(np.int64)


def compare(found: fairseq.Model, model: transformers.PreTrainedModel, name: str) -> None:
    """Every hidden state and the logits of the head `name`, padding included, within 1e-5 of the scale."""
    tokens, mask = rows()
    with torch.no_grad():
        out = model.double()(torch.tensor(tokens), attention_mask=torch.tensor(mask), output_hidden_states=True)
    wanted = {"hidden": torch.stack(out.hidden_states).numpy(), name: out.logits.numpy()}
    ours = found.apply(found.params, {"tokens": tokens.astype(np.int32), "segments": mask.astype(np.int32)})
    for output, value in wanted.items():
        assert np.abs(np.asarray(ours[output]) - value).max() <= 1e-5 * np.abs(value).max(), output
        assert np.abs(value).max() > 0.3


LAYOUTS = [("2019", True), ("2019", False), ("2020", True), ("2020", False), ("new", False)]


@pytest.mark.parametrize("layout, old_file", thinned(LAYOUTS, ("2019", True), ("new", False)))
def test_the_same_numbers_from_every_layout(layout: str, old_file: bool, tmp_path: Path, capsys) -> None:
    """R21: hidden states and logits, from the folder; what else is in the file is neither run nor needed."""
    model = theirs()
    folder = fairseq_files.write(tmp_path / "theirs", model, layout, old_file)
    found = fairseq.load(folder)
    assert found.config.objective.kind == "mlm" and found.config.model.positions == 18 and found.tokenizer is None
    compare(found, model, "mlm")


def test_a_classification_head(tmp_path: Path) -> None:
    """R21: of the two heads of a file one is kept, as the message says."""
    model = theirs("ForSequenceClassification")
    folder = fairseq_files.write(tmp_path, model, "2020")
    compare(fairseq.load(folder / "model.pt"), model, "classifier")
    content = torch.load(folder / "model.pt", weights_only=False)
    more = {name.replace("sentence_head", "other"): value for name, value in content["model"].items() if "sentence_head" in name}
    torch.save(content | {"model": content["model"] | more}, folder / "model.pt")
    with pytest.raises(UserError, match=r"keep one, as `--leave-out 'classification_heads\.other\.\*'` does"):
        fairseq.load(folder)
    compare(fairseq.load(folder, leave_out=["classification_heads.other.*"]), model, "classifier")


def test_the_command_and_its_check(tmp_path: Path, capsys) -> None:
    folder = fairseq_files.write(tmp_path / "theirs", theirs(), "new")
    assert main(["convert", "--from", f"fairseq:{folder}", "--to", str(tmp_path / "out"), "--check"]) == 0
    said = capsys.readouterr()
    assert "compares with our own export" in said.err and "mlm" in said.out


def test_the_tokenizer_has_the_ids_of_dict_txt(tmp_path: Path, capsys) -> None:
    """R21: the pieces are GPT-2's, their ids fairseq's; without GPT-2's files there is a line and no tokenizer."""
    trained = bpe.train(["the quick brown fox jumps over the lazy dog"] * 3, 290)
    trained.save(tmp_path / "trained")
    kept = [piece for piece in map(trained.token, range(trained.vocabulary.size)) if piece not in bpe.SPECIALS]
    folder = tmp_path / "theirs"
    folder.mkdir()
    pieces = fairseq_files.dictionary(folder, [*kept, "<|endoftext|>"])
    fairseq_files.write(folder, theirs(size=len(pieces)), "2020")
    assert fairseq.load(folder).tokenizer is None
    assert "put fairseq's encoder.json and vocab.bpe there or name their folder with --tokenizer" in capsys.readouterr().err
    (folder / "vocab.bpe").write_bytes((tmp_path / "trained" / "merges.txt").read_bytes())
    tokenizer = fairseq.load(folder).tokenizer
    text = "the quick fox jumps, lazily"
    ids = tokenizer.encode([text])[0]
    assert [pieces[i] for i in ids] == [trained.token(i) for i in trained.encode([text])[0]]
    assert [tokenizer.token(i) for i in range(len(pieces))] == pieces
    assert (tokenizer.vocabulary.pad, tokenizer.vocabulary.mask) == (1, len(pieces) - 1)
    moved = tmp_path / "gpt2"
    moved.mkdir()
    for name in ("encoder.json", "vocab.bpe"):
        (folder / name).rename(moved / name)
    assert fairseq.load(folder, str(moved)).tokenizer.vocabulary == tokenizer.vocabulary


@pytest.mark.parametrize(
    "change, words",
    [
        ({"args": None}, "its settings have encoder_attention_heads None"),
        (
            {"model": {"encoder.layer_norm.weight": torch.ones(2), "encoder.embed_tokens.weight": torch.ones(2, 2)}},
            "a norm before each layer",
        ),
        ({"model": {"encoder.x": torch.ones(2)}}, "no tensor encoder.sentence_encoder.embed_tokens.weight in it"),
        ({"model": {"encoder.embed_tokens.weight": torch.ones(2)}}, "no tensor encoder.embed_tokens.weight with 2 axes"),
    ],
)
def test_what_cannot_be_converted_is_one_line(change: dict, words: str, tmp_path: Path) -> None:
    folder = fairseq_files.write(tmp_path, theirs(), "2020")
    torch.save(torch.load(folder / "model.pt", weights_only=False) | change, folder / "model.pt")
    with pytest.raises(UserError) as error:
        fairseq.load(folder)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("heads, words", [(3, "does not divide into encoder_attention_heads 3"), ("4", "encoder_attention_heads '4'")])
def test_a_number_of_heads_that_cannot_be_is_named(heads: object, words: str, tmp_path: Path) -> None:
    """R21: the number is in the settings alone, so a wrong one is named as they call it."""
    folder = fairseq_files.write(tmp_path, theirs(), "2020")
    content = torch.load(folder / "model.pt", weights_only=False)
    content["args"].encoder_attention_heads = heads
    torch.save(content, folder / "model.pt")
    with pytest.raises(UserError, match=words):
        fairseq.load(folder)
