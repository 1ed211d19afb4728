"""`jaxenc embed`: files in AllenNLP's layout."""

import json
import shlex
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import jaxenc
from jaxenc.cli.main import main
from jaxenc.data.tokenizers import word_list as word_lists
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.inference import words
from tests.families.elmo import folders

pytestmark = pytest.mark.usefixtures("one_device")

LINES = ["the fox", "", "a dog , a fox", "the fox"]
WIDTH = 2 * folders.WIDTH


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory whose tokenizer lower-cases and parts punctuation from words."""
    place = tmp_path_factory.mktemp("elmo")
    folders.write(place / "theirs", folders.options(), folders.arrays())
    word_lists.train(LINES, 7, Normalization(lowercase=True)).save(place / "words")
    command = ["convert", "--from", f"allennlp:{place / 'theirs'}", "--tokenizer", str(place / "words"), "--to", str(place / "ours")]
    assert main(command) == 0
    return place / "ours"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\ufeff" + "\n".join(LINES) + "\r\n")
    return tmp_path / "text.txt"


def embed(model: Path, text: Path, out: Path, *more: str) -> dict[str, np.ndarray]:
    """What the command wrote."""
    assert main(["embed", "--model", str(model), "--input", str(text), "--out", str(out), *more]) == 0
    if out.suffix == ".npz":
        with np.load(out) as file:
            return dict(file)
    with h5py.File(out) as file:
        return {name: np.asarray(item.asstr()[...] if item.dtype.kind == "O" else item) for name, item in file.items()}


@pytest.mark.parametrize("ending", ["npz", "hdf5"])
def test_both_formats_hold_the_layers_of_each_line(ending: str, model: Path, text: Path, tmp_path: Path, capsys) -> None:
    """As `words.vectors` gives them, bit for bit; equal lines name the last; twice gives the same file."""
    found = embed(model, text, tmp_path / f"x.{ending}")
    assert "4 sentences, 9 words, vectors of 12" in capsys.readouterr().out
    wanted = list(words.vectors(jaxenc.load(model), [line.split() for line in LINES]))
    assert found.keys() == {"0", "1", "2", "3", "sentence_to_index"} and found["1"].shape == (3, 0, WIDTH)
    for i, array in enumerate(wanted):
        assert found[str(i)].dtype == np.float32 and found[str(i)].tobytes() == array.tobytes()
    index = found["sentence_to_index"]
    assert index.shape == ((1,) if ending == "hdf5" else ())
    assert json.loads(index.item()) == {"the fox": "3", "": "1", "a dog , a fox": "2"}
    embed(model, text, tmp_path / f"y.{ending}")
    if ending == "npz":
        with zipfile.ZipFile(tmp_path / "x.npz") as file:
            assert {part.date_time[0] for part in file.infolist()} == {1980}
    assert (tmp_path / f"x.{ending}").read_bytes() == (tmp_path / f"y.{ending}").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", f"x.{ending}", f"y.{ending}"}


def test_which_layers(model: Path, text: Path, tmp_path: Path) -> None:
    """The mix by its formula, in NumPy (<= 1e-6)."""
    (tmp_path / "mix.json").write_text(json.dumps({"weights": [0.5, -1, 2.0], "gamma": 1.5}))
    every = embed(model, text, tmp_path / "all.npz")
    choices = ("top", "average", f"mix:{tmp_path}/mix.json")
    top, average, mix = (embed(model, text, tmp_path / f"{at}.npz", "--layers", layers) for at, layers in enumerate(choices))
    shares = np.exp([0.5, -1, 2.0]) / np.exp([0.5, -1, 2.0]).sum()
    for name in map(str, range(4)):
        assert top[name].tobytes() == every[name][2].tobytes() and mix[name].dtype == np.float32
        np.testing.assert_allclose(average[name], every[name].mean(axis=0), rtol=0, atol=1e-6)
        np.testing.assert_allclose(mix[name], 1.5 * sum(s * h for s, h in zip(shares, every[name], strict=True)), rtol=0, atol=1e-6)


def test_the_state_of_a_slot_goes_on(model: Path, text: Path, tmp_path: Path) -> None:
    """Line 3 is line 0 again: with a state it differs, in two slots by other text, and as `words.vectors` has it."""
    found = embed(model, text, tmp_path / "x.npz", "--stateful", "--batch", "2")
    wanted = list(words.vectors(jaxenc.load(model), [line.split() for line in LINES], 2, stateful=True))
    assert all(found[str(i)].tobytes() == array.tobytes() for i, array in enumerate(wanted))
    assert np.abs(found["3"] - found["0"]).max() > 1e-4


def test_r36_a_word_has_one_vector_in_either_form(model: Path) -> None:
    """Of a model that reads characters: a word that its list lacks too. NFC and NFD give the same bits."""
    loaded = jaxenc.load(model)
    apart, together = (list(words.vectors(loaded, [["the", unicodedata.normalize(form, "Fóx")]])) for form in ("NFD", "NFC"))
    np.testing.assert_array_equal(apart[0], together[0])


def test_running_text(model: Path, text: Path, tmp_path: Path) -> None:
    (tmp_path / "raw.txt").write_text("The Fox\n\nA dog, a fox\nthe fox")
    raw, cut = embed(model, tmp_path / "raw.txt", tmp_path / "raw.npz", "--raw"), embed(model, text, tmp_path / "cut.npz")
    assert all(raw[str(i)].tobytes() == cut[str(i)].tobytes() for i in range(4))
    assert "The Fox" in json.loads(raw["sentence_to_index"].item())


def test_what_is_refused_is_one_line_and_leaves_nothing(model: Path, text: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    given = ("embed", "--model", model, "--input", text, "--out")
    (tmp_path / "taken.npz").write_text("mine")
    assert "taken.npz: exists already, a file; choose another --out" in fails(*given, tmp_path / "taken.npz")
    assert "x.txt: ends in neither .npz nor .hdf5 nor .h5" in fails(*given, tmp_path / "x.txt")
    assert "gone: no such folder" in fails(*given, tmp_path / "gone" / "x.npz")
    out = tmp_path / "x.npz"
    assert "--layers last: no such choice of layers; use all, top, average or mix:FILE" in fails(*given, out, "--layers", "last")
    assert "the batch is 0" in fails(*given, out, "--batch", "0")
    for content, words_ in (
        ('{"weights": [1, 2]}', "has 2 weights, and the model has 3 layers with layer 0"),
        ('{"weights": [1, 2, "3"]}', "holds"),
        ('{"weights": [1, 2, NaN]}', "holds"),
        ('{"weights": [1, 2, 1e39]}', "holds"),
        (f'{{"weights": [1, 2, 3], "gamma": {10**400}}}', "holds"),
        ('{"weights": [1, 2, 3], "layer_norm": true}', "holds"),
        ("[]", "holds no JSON object"),
    ):
        (tmp_path / "mix.json").write_text(content)
        assert words_ in fails(*given, out, "--layers", f"mix:{tmp_path}/mix.json")
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xe4d\n")
    assert "bad.txt:2: not UTF-8" in fails("embed", "--model", model, "--input", tmp_path / "bad.txt", "--out", out)
    assert "no such file" in fails("embed", "--model", model, "--input", tmp_path / "none.txt", "--out", out)
    assert (tmp_path / "taken.npz").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "taken.npz", "mix.json", "bad.txt"}


def test_without_a_tokenizer_there_is_no_running_text(text: Path, tmp_path: Path, fails: Callable[..., str], capsys) -> None:
    """The commands that lead to such a model, and what they say."""
    theirs, ours = folders.write(tmp_path / "their elmo", folders.options(), folders.arrays()), tmp_path / "ours"
    given = ("--input", text, "--out", tmp_path / "x.npz")
    assert f"`jaxenc convert --from 'allennlp:{theirs}' --to DIR`" in fails("embed", "--model", theirs, *given)
    assert "transformers, which opens no allennlp model" in fails("convert", "--from", f"allennlp:{theirs}", "--to", ours, "--check")
    assert main(["convert", "--from", f"allennlp:{theirs}", "--to", str(ours)]) == 0
    out, err = capsys.readouterr()
    assert "encode(words=[[...]])" in out and "has no tokenizer files" in err
    assert "--raw: this model has no tokenizer" in fails("embed", "--model", ours, *given, "--raw")
    assert "transformers has no class for a model of kind elmo" in fails("export", "--model", ours, "--out", tmp_path / "hf")
    assert "--dtype float16: the published files hold float32" in fails(
        "export", "--model", ours, "--out", tmp_path / "back", "--to", "allennlp", "--dtype", "float16"
    )
    assert main(["export", "--model", str(ours), "--out", str(tmp_path / "back"), "--to", "allennlp"]) == 0
    written, wanted = (folders.read(place / "weights.hdf5") for place in (tmp_path / "back", theirs))
    assert all(written[name].tobytes() == array.tobytes() for name, array in wanted.items())


@pytest.mark.full
@pytest.mark.slow
def test_an_elmo_without_a_softmax_is_trained_on(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str], capsys
) -> None:
    """By the commands that `convert` prints: the softmax starts fresh, all else is taken over, and vectors come of the result."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The fox. A dog, a fox.\nThe dog and the fox.\n\nA dog.\nAnd a fox.\n" * 6)
    place = model.parent
    command = ["convert", "--from", f"allennlp:{place / 'theirs'}", "--tokenizer", str(place / "words"), "--to", "our model"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()[-2:]
    small = ("train.batch=8", "train.steps=2", "data.length=4", "log.tensorboard=false")
    for line in lines:
        argv = shlex.split(line.removeprefix("next:"))
        more = [f"--config.{item}" for item in small] if argv[1] == "pretrain" else []
        assert argv[0] == "jaxenc" and main([*({"FILES": "text.txt"}.get(item, item) for item in argv[1:]), *more]) == 0
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines() if "starts fresh: " in line] == ["softmax"]
    assert "objective.kind=features has no loss" in fails("evaluate", "--workdir", "our model", "--data", "DATA")
    before, after = jaxenc.load("our model").params, jaxenc.load("RUN").params
    change = np.abs(np.asarray(after["forward"]["layer_00"]["input"]) - before["forward"]["layer_00"]["input"]).max()
    assert 0 < change < 0.5 and "softmax" in after
    assert embed(Path("RUN"), Path("text.txt"), Path("x.npz"), "--raw")["0"].shape == (3, 9, WIDTH)
