"""A saved model, opened in Python."""

import dataclasses
import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxenc
from jaxenc import config
from jaxenc.checkpoint.manager import Manager
from jaxenc.checkpoint.retention import CheckpointConfig
from jaxenc.cli.fill_mask import shown
from jaxenc.data.sources import DataConfig
from jaxenc.data.tokenizers import bpe, word_bpe, wordpiece
from jaxenc.data.tokenizers import load as load_tokenizer
from jaxenc.errors import UserError
from jaxenc.families.bert.model import BertConfig
from jaxenc.inference.fill_mask import Guess
from jaxenc.inference.model import Model
from jaxenc.objectives.base import ObjectiveConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig
from jaxenc.objectives.rtd import RtdConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig
from jaxenc.training.state import layout
from tests import tiny
from tests.data import word_bpe_files
from tests.families.reference_bert import encode

TEXT = "the quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="module", params=[MlmConfig, PairConfig], ids=lambda kind: kind.kind)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A run directory with the checkpoints 1 and 2, and the parameters of the second."""
    folder = tmp_path_factory.mktemp("run")
    tokenizer = wordpiece.train([TEXT] * 3, 60)
    tokenizer.save(folder / "tokenizer")
    model = BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=12)
    recipe = Run(objective=request.param(), model=model, data=DataConfig(length=12), train=TrainConfig(precision="float32"))
    recipe = recipe.with_vocabulary(tokenizer.vocabulary)
    files = {"config.json": json.dumps(config.to_dict(recipe)).encode(), "tokenizer": folder / "tokenizer"}
    where = tiny.mesh("dp", 8)
    with jax.set_mesh(where), Manager(folder / "checkpoints", CheckpointConfig()) as checkpoints:
        place = layout(recipe.build(tokenizer.vocabulary, recipe.plan[0], "cpu"), recipe.optim, 8, where, "dp")
        empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), place.shapes)
        for step in (1, 2):
            state = dataclasses.replace(empty, params=tiny.drawn(recipe, seed=step))
            checkpoints.save(step, jax.device_put(state, place.shardings), files)
    return folder, state.params


@pytest.fixture(scope="module")
def model(saved: tuple[Path, dict]) -> Model:
    return jaxenc.load(saved[0])


def test_the_newest_step_opens_and_any_other_by_its_number(saved: tuple[Path, dict], model: Model) -> None:
    """Parameters bitwise, saved on eight devices and opened on one, by the run's directory, by the step and by the step's folder."""
    folder, params = saved
    for opened in (model, jaxenc.load(folder, step=2), jaxenc.load(folder / "checkpoints" / "2")):
        tiny.assert_bitwise(jax.device_get(opened.params), params)
        assert all(leaf.devices() == {jax.devices()[0]} for leaf in jax.tree.leaves(opened.params))
    first = jaxenc.load(folder, step=1).params
    assert (first["embeddings"]["token"]["table"] != params["embeddings"]["token"]["table"]).any()


def test_one_changed_byte_is_refused_by_number_and_passed_over_by_the_newest(
    saved: tuple[Path, dict], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A file of the same size. Asked for by its number or its folder the step is refused; the newest that is whole is the one before."""
    run = shutil.copytree(saved[0], tmp_path / "run")
    for name in ("config.json", "tokenizer/vocab.txt", "state/ocdbt.process_0/d/*"):
        path = max((run / "checkpoints" / "2").glob(name), key=lambda path: path.stat().st_size)
        whole = path.read_bytes()
        path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
        for place, step in ((run, 2), (run / "checkpoints" / "2", None)):
            with pytest.raises(UserError, match=r"checkpoints/2: .* has changed \(sha256\); name another step"):
                jaxenc.load(place, step=step)
        if "state" not in name:
            path.write_bytes(whole)
    tiny.assert_bitwise(jaxenc.load(run).params, jaxenc.load(run, step=1).params)
    assert "has changed (sha256); left where it is, trying an older step" in capsys.readouterr().err


def test_guesses_are_the_softmax_over_the_true_vocabulary(model: Model) -> None:
    """All of them add up to 1, likeliest first, and every piece comes once for each mask; the padding rows of the table never come."""
    size = model.tokenizer.vocabulary.size
    masks = model.fill_mask("the [MASK] brown [MASK]", k=size)
    assert len(masks) == 2
    for guesses in masks:
        probabilities = [guess.probability for guess in guesses]
        assert len({guess.token for guess in guesses}) == size and abs(sum(probabilities) - 1) <= 1e-5
        assert probabilities == sorted(probabilities, reverse=True)
    assert masks[0] != masks[1] and model.fill_mask("the [MASK] brown [MASK]", k=3)[1] == masks[1][:3]


def test_a_mask_by_its_other_name(model: Model) -> None:
    """`<mask>` for a vocabulary that calls it [MASK], where the text has no mask of its own."""
    assert model.fill_mask("the <mask> brown") == model.fill_mask("the [MASK] brown")
    assert len(model.fill_mask("<mask> [MASK]")) == 1


def test_a_guess_can_be_read(tmp_path: Path) -> None:
    """A byte-level piece is decoded, without its blank; a part of a character is written in hexadecimal,
    and a blank alone as the vocabulary writes it."""
    tokenizer = bpe.train([TEXT] * 3, 300)
    recipe = Run(model=BertConfig(width=16, layers=1, heads=2, feed_forward=32, positions=12, first_position=2))
    recipe = recipe.with_vocabulary(tokenizer.vocabulary)
    (guesses,) = Model(recipe, tiny.drawn(recipe), tokenizer).fill_mask("the <mask>", k=tokenizer.vocabulary.size)
    texts = {guess.token: guess.text for guess in guesses}
    assert texts["Ġthe"] == "the" and texts["q"] == "q" and texts["Ã"] == "\\xc3" and texts["Ġ"] == "Ġ" and texts["<mask>"] == "<mask>"
    assert "the 0.50" in shown([Guess("Ġthe", "the", 0.5)])
    assert shown([Guess("Ġthe", "the", 0.5), Guess("the", "the", 0.3), Guess("Ġa", "a", 0.1)]) == "  Ġthe 0.50 · the 0.30 · a 0.10"


def test_a_model_shows_itself_in_one_line(bare: Model) -> None:
    count = sum(leaf.size for leaf in jax.tree.leaves(bare.params)) - (128 - SIZE) * 17
    assert repr(bare) == f"<jaxenc Model: bert, 2 layers of 16, {SIZE} tokens, mlm, {count:,} parameters>"


def test_a_model_with_a_tokenizer_shows_itself_in_one_line(model: Model) -> None:
    assert str(model) == repr(model) and "\n" not in repr(model) and len(repr(model)) < 140


@pytest.mark.parametrize("text", [["the [MASK]"], None, 3])
def test_what_is_not_one_text_is_one_line(text: object, model: Model) -> None:
    with pytest.raises(UserError, match="fill_mask takes one text"):
        model.fill_mask(text)


def test_a_guess_follows_the_context(model: Model) -> None:
    one, other = (model.fill_mask(f"the [MASK] {word}")[0][0].probability for word in ("brown", "lazy"))
    assert np.isfinite(one) and one != other


@pytest.mark.parametrize("text, words", [("the fox", "holds no [MASK]"), ("[MASK] " + "the " * 20, "has 23 tokens and the model takes 12")])
def test_a_text_that_cannot_be_asked_is_one_line(text: str, words: str, model: Model) -> None:
    with pytest.raises(UserError) as error:
        model.fill_mask(text)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_folder_without_a_checkpoint_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no valid checkpoint"):
        jaxenc.load(tmp_path)


SIZE, LAYERS = 60, 2
FAMILIES = {"bert": BertConfig(types=2), "roberta": BertConfig(types=1, first_position=2, norm_epsilon=1e-5)}


@pytest.fixture(scope="module", params=list(FAMILIES))
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model that `save` wrote without a tokenizer, of a run trained in bfloat16 on longer rows than it takes."""
    numbers = {"vocab_size": SIZE, "width": 16, "layers": LAYERS, "heads": 2, "feed_forward": 32, "positions": 40}
    recipe = Run(model=dataclasses.replace(FAMILIES[request.param], **numbers), train=TrainConfig(precision="bfloat16"))
    out = tmp_path_factory.mktemp("saved") / "model"
    Model(recipe, tiny.drawn(recipe), None).save(out)
    return jaxenc.load(out)


def rows(count: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, SIZE, (count, length), dtype=np.int32)


def test_what_save_writes_is_what_load_reads(bare: Model, tmp_path: Path) -> None:
    """Parameters bitwise, config as it was; a run directory and a step's folder; nothing where it fails."""
    bare.save(tmp_path / "out")
    for place in (tmp_path / "out", tmp_path / "out" / "checkpoints" / "0"):
        again = jaxenc.load(place)
        tiny.assert_bitwise(again.params, bare.params)
        assert again.config == bare.config and again.tokenizer is None
    assert bare.config.train.precision == "bfloat16" and bare.encode(tokens=rows(1, 4)).hidden.dtype == np.float32
    with pytest.raises(UserError, match="out: exists already"):
        bare.save(tmp_path / "out")
    with pytest.raises(UserError, match="not those of the config"):
        dataclasses.replace(bare, params={"embeddings": bare.params["embeddings"]}).save(tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_encode_is_the_slow_model(bare: Model) -> None:
    """The NumPy reference on two rows of one length (<= 1e-5)."""
    tokens, model = rows(2, 7), bare.config.model
    types = np.array([[0, 0, 1, 1, 1, 0, 0]] * 2, np.int32) * (model.types > 1)
    want = encode(jax.device_get(bare.params), model, tokens, types, np.tile(np.arange(7), (2, 1)), [7, 7])
    got = bare.encode(tokens=tokens.tolist(), types=types)
    np.testing.assert_allclose(got.hidden, want, rtol=0, atol=1e-5)
    assert (got.tokens == tokens).all() and got.mask.dtype == np.int32 and got.mask.all()


@pytest.mark.parametrize("objective, states, width", [(MlmConfig(), 2, 16), (RtdConfig(), 3, 32)])
def test_an_electra_is_the_network_that_its_objective_has(objective: ObjectiveConfig, states: int, width: int) -> None:
    """The generator is narrower and shallower here; a pair's hidden states are the discriminator's."""
    run = Run(objective, tiny.PAIR)
    model = Model(run, jax.tree.map(jnp.asarray, tiny.drawn(run)), None)
    found = model.encode(tokens=[[5, 6, 7]]).hidden
    assert found.shape == (states, 1, 3, width) and f"{states - 1} layers of {width}" in repr(model)
    expected = jax.jit(model.apply)(model.params, {"tokens": np.array([[5, 6, 7]], np.int32)})["hidden"]
    assert np.abs(found - expected).max() <= 1e-5
    assert model.encode(tokens=np.zeros((0, 3), int)).hidden.shape == (states, 0, 3, width)


def test_encode_equals_apply_compiled_or_not(bare: Model) -> None:
    """<= 1e-5, with padding on either side, where it is 0; hiding keys does change the rest."""
    tokens, mask = rows(3, 11), np.array([[1] * 11, [1] * 4 + [0] * 7, [0] * 5 + [1] * 6], np.int32)
    got = bare.encode(tokens=tokens, mask=mask).hidden
    batch = {"tokens": tokens, "segments": mask}
    for apply in (bare.apply, jax.jit(bare.apply)):
        np.testing.assert_allclose(np.where(mask[..., None], apply(bare.params, batch)["hidden"], 0), got, rtol=0, atol=1e-5)
    assert np.abs(bare.encode(tokens=tokens).hidden - got)[:, mask > 0].max() > 1e-3


def test_rows_of_all_lengths_in_one_call_come_back_in_order(bare: Model) -> None:
    """90 rows of 1 to 40 tokens, each as it is alone (<= 1e-5), in batches of similar length."""
    lengths = np.random.default_rng(3).integers(1, 41, 90)
    tokens, mask = rows(90, 40), (np.arange(40) < lengths[:, None]).astype(np.int32)
    shapes, compiled = [], bare._network._compiled
    model = Model(bare.config, bare.params, None)
    vars(model._network).update(_compiled=lambda name, params, batch: shapes.append(batch["tokens"].shape) or compiled(name, params, batch))
    together = model.encode(tokens=tokens, mask=mask).hidden
    order = np.argsort(lengths, kind="stable")
    most = [max(8, max(lengths[order[start : start + 8]])) for start in range(0, 90, 8)]
    assert [count for count, _ in shapes] == [8] * 11 + [2]
    assert all(wanted <= length <= 1.25 * wanted + 1 for (_, length), wanted in zip(shapes, most, strict=True))
    for row in (int(np.argmin(lengths)), 0, 44, 89, int(np.argmax(lengths))):
        alone = bare.encode(tokens=tokens[row : row + 1, : lengths[row]]).hidden[:, 0]
        np.testing.assert_allclose(together[:, row, : lengths[row]], alone, rtol=0, atol=1e-5)


def test_batch_mates_and_padding_change_nothing(bare: Model) -> None:
    """70 rows, more than are computed at once, each alone and in the batch, and padded at its end to the most (<= 1e-5)."""
    tokens = rows(70, 9)
    together = bare.encode(tokens=tokens).hidden
    assert together.shape == (LAYERS + 1, 70, 9, 16)
    pad = bare.config.model.first_position - 1 if bare.config.model.first_position else 0
    for row in (0, 31, 32, 69):
        alone = bare.encode(tokens=tokens[row : row + 1]).hidden[:, 0]
        np.testing.assert_allclose(together[:, row], alone, rtol=0, atol=1e-5)
        padded = np.concatenate([tokens[row], np.full(31, pad)])[None]
        after = bare.encode(tokens=padded, mask=(np.arange(40) < 9)[None]).hidden[:, 0]
        np.testing.assert_allclose(after[:, :9], alone, rtol=0, atol=1e-5)


def test_left_padding_and_holes_hide_their_keys(bare: Model) -> None:
    """What stands at a hidden place has no influence (<= 1e-6), and RoBERTa, whose positions skip pads, reads a text padded on its left as
    the text alone (<= 1e-5)."""
    tokens, mask = rows(2, 8), np.array([[0, 0, 1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 1, 1, 0]])
    other = np.where(mask, tokens, rows(2, 8, seed=1))
    one, two = (bare.encode(tokens=each, mask=mask).hidden for each in (tokens, other))
    assert np.abs(one - two).max() <= 1e-6 < 1e-3 < np.abs(bare.encode(tokens=tokens).hidden - one)[:, mask > 0].max()
    assert not one[:, mask == 0].any()
    if bare.config.model.first_position:
        alone = bare.encode(tokens=tokens[:1, 2:]).hidden
        padded = bare.encode(tokens=np.where(mask, tokens, 1)[:1], mask=mask[:1]).hidden
        np.testing.assert_allclose(padded[:, :, 2:], alone, rtol=0, atol=1e-5)


def test_positions_as_each_family_counts_them() -> None:
    """BERT: every place. RoBERTa (pad 1): the tokens that are not pad, -1 at pads; NumPy and traced alike."""
    tokens = np.array([[1, 1, 7, 8, 1, 9], [5, 6, 7, 1, 1, 1]], np.int32)
    bert, roberta = FAMILIES["bert"].positions_of, FAMILIES["roberta"].positions_of
    assert bert(tokens).tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    assert roberta(tokens).tolist() == [[-1, -1, 0, 1, -1, 2], [0, 1, 2, -1, -1, -1]]
    assert roberta(tokens).dtype == bert(tokens).dtype == np.int32 and (jax.jit(roberta)(tokens) == roberta(tokens)).all()


def test_small_and_empty_batches(bare: Model) -> None:
    assert bare.encode(tokens=np.zeros((0, 5), np.int64)).hidden.shape == (LAYERS + 1, 0, 5, 16)
    assert np.isfinite(bare.encode(tokens=[[7]]).hidden).all() and np.isfinite(bare.encode(tokens=[[7, 8]], mask=[[0, 0]]).hidden).all()
    assert bare.encode(tokens=rows(1, 40)).hidden.shape[2] == 40


SIZES = (8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)


@pytest.mark.parametrize("positions", [1, 5, 8, 12, 40, 64])
def test_rows_are_padded_to_few_lengths_and_never_beyond_the_positions(positions: int, bare: Model) -> None:
    """What is compiled for every length that the model takes; one more token is refused. Nothing is computed here."""
    shapes: list[tuple[int, int]] = []

    def computed(name: str, params: dict, batch: dict) -> np.ndarray:
        shapes.extend({array.shape for array in batch.values()})
        return np.zeros((LAYERS + 1, *shapes[-1], 16), np.float32)

    run = dataclasses.replace(bare.config, model=dataclasses.replace(bare.config.model, positions=positions))
    model = Model(run, {}, None)
    vars(model).update(shape=(LAYERS + 1, 16))
    vars(model._network).update(_compiled=computed)
    for length in range(1, positions + 1):
        shapes.clear()
        assert model.encode(tokens=rows(3, length)).hidden.shape == (LAYERS + 1, 3, length, 16)
        assert shapes == [(4, min(positions, next(size for size in SIZES if size >= length)))]
    with pytest.raises(UserError, match=f"each row has {positions + 1} tokens and the model takes {positions}; shorten it"):
        model.encode(tokens=rows(1, positions + 1))


def test_r24_a_row_of_padding_is_finite_and_other_rows_do_not_read_it(bare: Model) -> None:
    """mask=0 everywhere in row 1: another token there changes no other row."""
    tokens, mask = rows(3, 6), np.ones((3, 6), int)
    mask[1] = 0
    other = tokens.copy()
    other[1, 1] = 5 if tokens[1, 1] != 5 else 6
    one, two = (bare.encode(tokens=given, mask=mask).hidden for given in (tokens, other))
    np.testing.assert_array_equal(one[:, ::2], two[:, ::2])
    assert np.isfinite(one).all()


def test_the_longest_row_is_the_slow_model(bare: Model) -> None:
    """Up to the last position of the table, against the NumPy reference (<= 1e-5)."""
    tokens = rows(1, 40)
    want = encode(jax.device_get(bare.params), bare.config.model, tokens, np.zeros_like(tokens), np.arange(40)[None], [40])
    np.testing.assert_allclose(bare.encode(tokens=tokens).hidden, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"tokens": [[1, SIZE]]}, f"tokens holds 1 to {SIZE}, and the model takes 0 to {SIZE - 1}"),
        ({"tokens": [[-1]]}, "tokens holds -1 to -1"),
        ({"tokens": [[1, 2**40]]}, "and the model takes"),
        ({"tokens": [[1.0, 2.0]]}, "tokens is float64; give integers"),
        ({"tokens": [["the"]]}, "give integers"),
        ({"tokens": [[1], [1, 2]]}, "rows of several lengths"),
        ({"tokens": [1, 2]}, "tokens has 1 axes"),
        ({"tokens": [[1, 2]], "mask": [[1]]}, "mask has the shape [1, 1] and tokens [1, 2]"),
        ({"tokens": [[1, 2]], "mask": [[1, 2]]}, "mask holds 1 to 2"),
        ({"tokens": [[1, 2]], "types": [[0, 2]]}, "types holds 0 to 2"),
        ({"tokens": [[1] * 41]}, "has 41 tokens and the model takes 40"),
        ({}, "give one of the three"),
        ({"texts": ["a"], "mask": [[1]]}, "give one of the three"),
        ({"texts": "a"}, "texts must be a list of str"),
        ({"texts": 3}, "texts must be a list of str"),
        ({"texts": [None]}, "texts must be a list of str, and one item is a NoneType"),
        ({"texts": ["a"]}, "this model has no tokenizer"),
    ],
)
def test_what_cannot_be_encoded_is_one_line(arguments: dict, said: str, bare: Model) -> None:
    with pytest.raises(UserError) as error:
        bare.encode(**arguments)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_texts_are_framed_padded_and_never_cut(model: Model) -> None:
    """Rows as the tokenizer frames them, padded at their end to the longest; each equal to itself alone (<= 1e-5)."""
    texts = ["the fox", "", "the the the the the the"]
    got = model.encode(texts)
    ids = [model.tokenizer.encode_prompt(text) for text in texts]
    assert got.tokens.shape == (3, max(map(len, ids))) and got.mask.sum(axis=1).tolist() == [len(row) for row in ids]
    for number, row in enumerate(ids):
        assert got.tokens[number].tolist() == row + [model.tokenizer.vocabulary.pad] * (got.tokens.shape[1] - len(row))
        alone = model.encode(texts[number : number + 1]).hidden[:, 0]
        np.testing.assert_allclose(got.hidden[:, number, : len(row)], alone, rtol=0, atol=1e-5)
    assert model.encode([]).tokens.shape == (0, 0)
    assert np.array_equal(model.encode(text for text in texts).tokens, got.tokens)
    with pytest.raises(UserError, match=r"'a\\udcffb' holds '\\udcff', which is not a character"):
        model.encode(["a\udcffb"])
    with pytest.raises(UserError, match=r"texts\[1\] has 22 tokens and the model takes 12"):
        model.encode(["the", "the " * 20, "the " * 15])


def test_a_model_without_a_tokenizer_fills_no_mask(bare: Model) -> None:
    with pytest.raises(UserError, match="no tokenizer"):
        bare.fill_mask("the [MASK]")


def test_a_model_without_a_masked_token_head_fills_no_mask(model: Model, tmp_path: Path) -> None:
    recipe = dataclasses.replace(model.config, objective=HeadsConfig(("pooler",)))
    Model(recipe, tiny.drawn(recipe), model.tokenizer).save(tmp_path / "pooler")
    with pytest.raises(UserError, match="no masked-token head"):
        jaxenc.load(tmp_path / "pooler").fill_mask("the [MASK]")
    tool = word_bpe.train([TEXT] * 3, 60)
    other = dataclasses.replace(model.config.model, vocab_size=tool.vocabulary.size)
    recipe = dataclasses.replace(model.config, model=other, objective=HeadsConfig(("mlm",)))
    with pytest.raises(UserError, match="the tokenizer of this model has no mask; fill_mask needs"):
        Model(recipe, tiny.drawn(recipe), tool).fill_mask("the <mask>")


def test_texts_of_a_vocabulary_that_frames_nothing(model: Model, tmp_path: Path) -> None:
    """A row is the text alone, and one without a token is padding."""
    tool = load_tokenizer(word_bpe_files.write(tmp_path / "files", [TEXT] * 3, 60))
    recipe = dataclasses.replace(model.config, objective=HeadsConfig(()))
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, vocab_size=tool.vocabulary.size))
    got = Model(recipe, tiny.drawn(recipe), tool).encode(["the dog", "", "dog"])
    assert got.mask.tolist() == [[1, 1], [0, 0], [1, 0]] and got.tokens[0].tolist() == tool.encode(["the dog"])[0]
    assert np.isfinite(got.hidden).all()


def test_a_tokenizer_with_more_pieces_than_rows_is_refused(model: Model, tmp_path: Path) -> None:
    dataclasses.replace(model, tokenizer=model.tokenizer.extended(["zebra"])).save(tmp_path / "out")
    size = model.config.model.vocab_size
    with pytest.raises(UserError, match=f"its tokenizer has {size + 1} pieces and the model {size} rows for them"):
        jaxenc.load(tmp_path / "out")
