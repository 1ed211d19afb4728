"""The report on a word's neighbours against slow loops over all pairs."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jaxenc.cli.main import main
from jaxenc.convert import allennlp
from jaxenc.errors import UserError
from jaxenc.inference import neighbours, words
from jaxenc.inference.model import Model
from jaxenc.inference.neighbours import Occurrence
from jaxenc.inference.spans import of_pieces
from jaxenc.objectives.mlm import MlmConfig
from tests.families.elmo import folders
from tests.inference.test_spans import BURMESE, MADE
from tests.inference.test_words import BERT, of

LINES = ["the bank of the river", "a bank lends money", "", "money in the bank", "the river runs", "banks lend", "a river bank", "to bank"]
SENTENCES = [line.split() for line in LINES]
WORD, LAYER, COUNT = "bank", 2, 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return allennlp.load(folders.write(tmp_path_factory.mktemp("elmo"), folders.options(), folders.arrays()))


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


def test_it_is_what_slow_loops_find(model: Model) -> None:
    """Cosines <= 1e-5, their order, and that no neighbour is of the same sentence."""
    found = neighbours.report(model, SENTENCES, WORD, LAYER, COUNT, 2)
    hidden = list(words.vectors(model, SENTENCES))
    every = [(Occurrence(s, w), word) for s, sentence in enumerate(SENTENCES) for w, word in enumerate(sentence)]
    vector = lambda place, layer: hidden[place.sentence][layer, place.word]
    assert found.occurrences == 5 and len(found.senses) == 2 and len({place for place, _ in found.senses}) == 2
    for place, near in found.senses:
        assert SENTENCES[place.sentence][place.word] == WORD
        others = [(cosine(vector(place, LAYER), vector(other, LAYER)), other) for other, _ in every if other.sentence != place.sentence]
        wanted = sorted(others, reverse=True)[:COUNT]
        np.testing.assert_allclose([one.cosine for one in near], [value for value, _ in wanted], rtol=0, atol=1e-5)
        assert [one.place for one in near] == [other for _, other in wanted]
    table = {word: vector(place, 0) for place, word in every}
    wanted = sorted(((cosine(table[WORD], vector_), word) for word, vector_ in table.items() if word != WORD), reverse=True)[:COUNT]
    assert [word for _, word in found.static] == [word for _, word in wanted]
    np.testing.assert_allclose([value for value, _ in found.static], [value for value, _ in wanted], rtol=0, atol=1e-5)


def test_the_occurrences_that_are_shown_are_unlike_each_other() -> None:
    """Three bundles of directions: one of each, the fullest first; no more than there are, and none twice."""
    random = np.random.default_rng(0)
    centres = np.eye(3, 8)[[0] * 6 + [1] * 3 + [2] * 2]
    unit = centres + 0.05 * random.standard_normal(centres.shape)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    chosen = neighbours.unlike(unit, 3)
    assert chosen[0] < 6 and sorted(np.argmax(centres[chosen], axis=1)) == [0, 1, 2]
    assert sorted(neighbours.unlike(unit, 99)) == list(range(11))
    assert neighbours.unlike(np.ones((3, 2)) / np.sqrt(2), 3) == [0, 1, 2]


def test_the_text_of_it(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture, fails: Callable[..., str]) -> None:
    model.save(tmp_path / "run")
    (tmp_path / "text.txt").write_text("\n".join(LINES) + "\n")
    command = ["neighbours", "--model", str(tmp_path / "run"), "--input", str(tmp_path / "text.txt"), "--word", WORD]
    assert main([*command, "--count", "2", "--senses", "3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "bank: 5 occurrences in 8 sentences" and out[2] == "without context (layer 0)" and out[3].count(" · ") == 1
    assert out.count("in context (layer 2 of 2)") == 3 and len(out) == 4 + 3 * 5
    assert sum("[bank]" in out[at] for at in (6, 11, 16)) == 3 and all("[" in line for line in (*out[7:9], *out[12:14], *out[17:19]))
    for layer in (3, -4):
        assert f"--layer {layer}: the model has no such layer; use -3 to 2" in fails(*command, "--layer", str(layer))


def test_long_sentences_are_cut() -> None:
    sentence = list("abcdefghijk")
    assert neighbours.shown(sentence, 5, 2) == "… d e [f] g h …" and neighbours.shown(sentence, 0, 2) == "[a] b c …"
    assert neighbours.shown(["one"], 0, 2) == "[one]"


def test_what_is_refused(model: Model, tmp_path: Path, fails: Callable[..., str]) -> None:
    for word, layer, said in (("credit", 2, "'credit' is not in the text"), (WORD, 3, "layer is 3; the model has 0 to 2")):
        with pytest.raises(UserError, match=said):
            neighbours.report(model, SENTENCES, word, layer, 1, 1)
    (tmp_path / "text.txt").write_text("a bank\n")
    given = ("neighbours", "--model", tmp_path, "--input", tmp_path / "text.txt", "--word", WORD)
    assert "--count 0: less than 1; use 1 or more" in fails(*given, "--count", "0")
    assert "holds no valid checkpoint" in fails(*given)


def test_text_without_blanks_between_words(tmp_path: Path, capsys: pytest.CaptureFixture, fails: Callable[..., str]) -> None:
    """The message for a word inside of a line says what to add, and that works."""
    burmese = of(MADE["unigram"](), BERT, MlmConfig())
    burmese.save(tmp_path / "run")
    (tmp_path / "text.txt").write_text("\n".join(BURMESE) + "\n", encoding="utf-8")
    given = ["--model", str(tmp_path / "run"), "--input", str(tmp_path / "text.txt")]
    asked = ["neighbours", *given, "--word", "မြန်မာစာ"]
    said = fails(*asked)
    assert "'မြန်မာစာ' is not a word of the text; 2 words contain it, such as" in said and "add --pieces for text without blanks" in said
    assert main([*asked, "--pieces"]) == 0
    assert capsys.readouterr().out.startswith("မြန်မာစာ: 3 occurrences in 3 sentences\n")
    assert "not allowed with" in fails(*asked, "--pieces", "--raw")
    assert main(["embed", *given, "--pieces", "--out", str(tmp_path / "x.npz"), "--layers", "top"]) == 0
    with np.load(tmp_path / "x.npz") as file:
        places = json.loads(file["spans"].item())
        wanted = list(words.vectors(burmese, [of_pieces(burmese.tokenizer, line) for line in BURMESE], top=True))
        for number, line in enumerate(BURMESE):
            assert [tuple(place) for place in places[str(number)]] == list(of_pieces(burmese.tokenizer, line).places)
            assert file[str(number)].tobytes() == wanted[number][0].tobytes() and len(places[str(number)]) == len(file[str(number)])
