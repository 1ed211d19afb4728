"""`jaxenc convert --check` on weights as people publish them: half precision, shards, prefixes, stale labels (R17, R18, R20, R23)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from jaxenc.cli.main import main
from jaxenc.convert import hf, parity
from tests import tiny
from tests.parity import peer
from tests.parity.cases import CASES
from tests.selection import thinned


def columns(said: str) -> dict[str, tuple[float, float]]:
    """{output: (ours, transformers')} of the table that the command prints."""
    lines = [line.rsplit(maxsplit=3) for line in said.splitlines()]
    return {line[0].strip(): (float(line[1]), float(line[2])) for line in lines if len(line) == 4 and "e-" in line[1]}


def shards(folder: Path, state: dict[str, torch.Tensor]) -> None:
    """`state` as pytorch_model-0000i-of-00002.bin and their index, as transformers wrote them until version 5."""
    table = {}
    for i, names in enumerate((list(state)[::2], list(state)[1::2]), 1):
        file = f"pytorch_model-{i:05d}-of-00002.bin"
        torch.save({name: state[name] for name in names}, folder / file)
        table |= dict.fromkeys(names, file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))


@pytest.mark.parametrize(
    "dtype, kept",
    thinned(
        [("float16", "safetensors"), ("bfloat16", "shards of safetensors"), ("bfloat16", "bin"), ("float16", "shards of bin")],
        ("bfloat16", "shards of safetensors"),
        ("float16", "shards of bin"),
    ),
)
def test_half_precision_and_shards(dtype: str, kept: str, tmp_path: Path, capsys) -> None:
    """R23: both distances are printed; ours is within the bound, from weights that only half precision holds."""
    model, folder = peer.build(CASES["BertForMaskedLM"], "gelu", seed=4).to(getattr(torch, dtype)), tmp_path / "theirs"
    model.save_pretrained(folder, max_shard_size="2KB" if kept == "shards of safetensors" else "1GB")
    if "bin" in kept:
        (folder / "model.safetensors").unlink()
        state = dict(model.state_dict())
        torch.save(state, folder / "pytorch_model.bin") if kept == "bin" else shards(folder, state)
    assert (len(list(folder.glob("*.safetensors"))) > 1) == (kept == "shards of safetensors")
    assert main(["convert", "--from", f"hf:{folder}", "--to", str(tmp_path / "ours"), "--check"]) == 0
    found = columns(capsys.readouterr().out)
    assert found.keys() == {"hidden states", "mlm"} and all(0 < ours <= 1e-5 and theirs > 0 for ours, theirs in found.values())


def test_the_check_fails_for_ours_and_not_for_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R23: an inaccurate float32 of transformers changes the second column alone; the same error of ours is beyond the tolerance."""
    folder = tmp_path / "theirs"
    peer.build(CASES["BertForMaskedLM"], "gelu", seed=4).save_pretrained(folder)
    model = hf.load(folder)
    right = parity.compare(model, folder)
    outputs = parity._outputs

    def inaccurate(theirs: transformers.PreTrainedModel, *rest: object) -> dict[str, np.ndarray]:
        shift = 1e-3 if theirs.dtype == torch.float32 else 0.0
        return {name: value + shift for name, value in outputs(theirs, *rest).items()}

    monkeypatch.setattr(parity, "_outputs", inaccurate)
    shifted = parity.compare(model, folder)
    assert all(one.within and one.theirs > 5e-4 for one in shifted)
    assert [one.ours for one in shifted] == [one.ours for one in right]
    monkeypatch.setattr(parity, "_outputs", lambda *all: {name: value + 1e-3 for name, value in outputs(*all).items()})
    assert not any(one.within for one in parity.compare(model, folder))


@pytest.mark.full
def test_a_model_with_all_of_it_at_once(tmp_path: Path, capsys) -> None:
    """R17, R18, R20: a checkpoint of a training loop around DataParallel, with a CRF beside the model and labels of another task."""
    config = peer.build(CASES["BertForTokenClassification"], "gelu", seed=4).config
    config.num_labels = 50
    model = transformers.BertForTokenClassification(config).eval()
    model.config.save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings |= {"num_labels": 50, "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
    (tmp_path / "config.json").write_text(json.dumps(settings | {"architectures": ["BertForTokenClassification"]}))
    state = {f"module.{name}": value for name, value in model.state_dict().items()} | {"module.crf.transitions": torch.zeros(50, 50)}
    optimizer = torch.optim.AdamW(model.parameters()).state_dict()
    torch.save({"epoch": 3, "model_state_dict": state, "optimizer_state_dict": optimizer}, tmp_path / "pytorch_model.bin")
    command = ["convert", "--from", f"hf:{tmp_path}", "--to", str(tmp_path / "ours"), "--leave-out", "module.crf.*", "--check"]
    assert main(command) == 0
    said = capsys.readouterr()
    for words in ("weights are read from 'model_state_dict'", "prefix 'module.'", "left out, as asked: module.crf.transitions"):
        assert said.err.count(words) == 1, words
    assert said.err.count("id2label names 2 classes, 0 to 1, and the classifier has 50 rows: they are called LABEL_0 to LABEL_49") == 1
    assert "compares with our own export" in said.err and columns(said.out).keys() == {"hidden states", "tags"}
    found = hf.load(tmp_path, leave_out=["module.crf.*"])
    tokens = np.array([[5, 6, 7]])
    with torch.no_grad():
        wanted = model(torch.tensor(tokens)).logits.numpy()
    assert np.abs(np.asarray(found.apply(found.params, {"tokens": tokens})["tags"]) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert found.config.objective.labels == tuple(f"LABEL_{i}" for i in range(50))


@pytest.mark.parametrize("entry", ["state_dict", "model", "their_own_name"])
def test_a_checkpoint_with_one_entry_of_tensors(entry: str, tmp_path: Path, capsys) -> None:
    """R20: Lightning's, fairseq's and anybody's; two that could both be the weights are refused."""
    model = peer.build(CASES["BertModel"], "gelu", seed=4)
    model.save_pretrained(tmp_path)
    right = hf.load(tmp_path).params
    (tmp_path / "model.safetensors").unlink()
    averaged = {"averaged": {name: value + 1 for name, value in model.state_dict().items()}} if entry != "their_own_name" else {}
    content = {"epoch": 3, **averaged, "hyper_parameters": {"path": Path("x")}, entry: model.state_dict()}
    torch.save(content, tmp_path / "pytorch_model.bin")
    tiny.assert_bitwise(hf.load(tmp_path).params, right)
    assert f"its weights are read from {entry!r}" in capsys.readouterr().err
    torch.save({"epoch": 3, "first": model.state_dict(), "second": model.state_dict()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(hf.UserError, match=r"3 entries, of which first and second hold tensors; save the state dict"):
        hf.load(tmp_path)


@pytest.mark.parametrize("path", [("model", "state_dict"), ("state_dict", "model"), ("module", "net", "weights")])
def test_a_state_dict_that_is_wrapped_twice(path: tuple[str, ...], tmp_path: Path, capsys) -> None:
    """R20: an entry of an entry; other entries of both are passed over."""
    model = peer.build(CASES["BertModel"], "gelu", seed=4)
    model.save_pretrained(tmp_path)
    right = hf.load(tmp_path).params
    (tmp_path / "model.safetensors").unlink()
    content = model.state_dict()
    for name in reversed(path):
        content = {"epoch": 3, name: content}
    torch.save(content, tmp_path / "pytorch_model.bin")
    tiny.assert_bitwise(hf.load(tmp_path).params, right)
    assert f"its weights are read from {'/'.join(path)!r}" in capsys.readouterr().err
