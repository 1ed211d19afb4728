"""The special pieces around texts are the family's, whatever the vocabulary: against a table written from the papers' codes and from the
classes of transformers, and against the rows of pretraining."""

import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece as library

from jaxenc.data.frames import CLS_FIRST, CLS_LAST, Frame
from jaxenc.data.sources import DataConfig, open_source, open_streams
from jaxenc.data.tokenizers import Tokenizer, load, wordpiece
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.contract import ModelConfig
from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.network_pair.model import NetworkPairConfig
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.inference import inputs
from jaxenc.tasks.framing import Framing
from tests.data.corpora import corpus, store
from tests.data.kinds import KINDS, TEXT

GOLDEN = Path(__file__).parents[1] / "golden" / "tokenizers"
MODELS: dict[str, ModelConfig] = {
    "bert": BertConfig(),
    "roberta": BertConfig(types=1, first_position=2),
    "fairseq": BertConfig(types=0, first_position=2),
    "electra": ElectraConfig(),
    "albert": AlbertConfig(),
    "distilbert": DistilbertConfig(),
    "xlnet": XlnetConfig(),
    "gpt": GptConfig(),
    "elmo": ElmoConfig(input="tokens"),
    "pair": NetworkPairConfig(generator=XlnetConfig(), discriminator=XlnetConfig()),
}
# How a family frames one text and two. C: CLS, S: SEP, K: `_classify_`; a type that is not 0 after the part. BERT's is create_inputs of
# google-research/bert run_classifier.py, that of ELECTRA and ALBERT too; XLNet's convert_single_example of zihangdai/xlnet
# classifier_utils.py; the one type of RoBERTa is type_vocab_size of its config.json in transformers.
BERT, ONE_TYPE, XLNET = ("C A S", "C A S B1 S1"), ("C A S", "C A S B S"), ("A S C2", "A S B1 S1 C2")
FAMILIES = {
    **dict.fromkeys(("bert", "electra", "albert"), BERT),
    **dict.fromkeys(("roberta", "fairseq", "distilbert", "gpt", "elmo"), ONE_TYPE),
    **dict.fromkeys(("xlnet", "pair"), XLNET),
}
# Vocabularies with CLS first that keep the frame of the family that they were made for: that of fairseq's RoBERTa, of
# openai/finetune-transformer-lm and of allenai/bilm-tf.
OWN = {"bpe": ("C A S", "C A S S B S"), "word_bpe": ("C A K", "C A S B K"), "characters": ("C A S", "C A S C B1 S1")}


def wanted(family: str, kind: str) -> tuple[str, str]:
    if FAMILIES[family] == XLNET or kind not in OWN:
        return FAMILIES[family]
    if kind == "characters" and family in ("roberta", "fairseq"):
        return ONE_TYPE  # transformers has one type for them, and this vocabulary two
    return tuple(part.replace("1", "") if FAMILIES[family] == ONE_TYPE else part for part in OWN[kind])


@pytest.fixture(scope="module")
def made() -> dict[str, Tokenizer]:
    return {kind: train() for kind, train in KINDS.items()}


def shown(tool: Tokenizer, ids: list[int], types: list[int], texts: dict[str, list[int]]) -> str:
    """Ids and types in the letters of the table: the ids of a text become one letter, all of one type."""
    names = {tool.vocabulary.cls: "C", tool.vocabulary.sep: "S"}
    out, place = [], 0
    while place < len(ids):
        name = next((name for name, held in texts.items() if ids[place : place + len(held)] == held), "")
        size = len(texts[name]) if name else 1
        (kind,) = set(types[place : place + size])
        letter = name or names.get(ids[place]) or {"_classify_": "K"}[tool.token(ids[place])]
        out.append(f"{letter}{kind or ''}")
        place += size
    return " ".join(out)


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_framed_as_the_family_does(family: str, kind: str, made: dict[str, Tokenizer]) -> None:
    """`encode`, words that are split, a text and a pair to classify; a type that is not the model's never reaches it."""
    model, tool = MODELS[family], made[kind].framed_as(MODELS[family].row_frame)
    first, second = tool.encode(["the cat sat", "a dog ran"])
    texts = {"A": first, "B": second}
    single, pair = wanted(family, kind)
    for rows in (
        Framing(tool, model, 40).rows([(first,)]),
        Framing(tool, model, 40, left=True).rows([(first,)]),
        Framing(tool, model, 40).rows([(first, second)]),
    ):
        real = rows.rows["segments"][0] > 0
        held = (rows.rows[name][0][real].tolist() for name in ("tokens", "types"))
        assert shown(tool, *held, texts) == (single if rows.starts.shape[1] == 1 else pair)
        assert rows.rows["types"].max() < max(model.types, 1)
    encoded = inputs.of_texts(model, tool, ["the cat sat"])
    split, _ = inputs.of_words(model, tool, [["the", "cat", "sat"]])
    for rows in (encoded, split):
        assert shown(tool, rows["tokens"][0].tolist(), rows["types"][0].tolist(), texts) == single


@pytest.mark.parametrize(
    "family, rows",
    [
        *(("bert", rows) for rows in ("text", "pairs", "full_sentences", "packed")),
        *(("albert", "swapped_pairs"), ("electra", "text"), ("distilbert", "text"), ("gpt", "text"), ("xlnet", "streams")),
    ],
)
def test_rows_to_classify_have_the_order_of_pretraining(family: str, rows: str, tmp_path: Path) -> None:
    """CLS and SEP with their types, in the order in which the first row of text has them."""
    vocabulary = Vocabulary(200, 150, 151, 152, 153, 154, (), "", eod=155)
    shards = store(corpus(np.random.default_rng(0), 1, 9 if family == "xlnet" else 1, 5, 9), tmp_path, vocabulary)
    config, opener = (
        DataConfig(path=str(tmp_path), length=24 if family == "xlnet" else 64, rows=rows, reuse=4),
        lambda folder, split: shards,
    )
    if family == "xlnet":
        row = open_streams(config, "train", 2, 0, False, 0, opener).batch_at(0)
    else:
        row = open_source(config, "train", 0, False, opener).rows(0, np.arange(1))
    pieces = zip(row["tokens"][0].tolist(), row["types"][0].tolist(), strict=True)
    template = MODELS[family].row_frame.template(2 if rows in ("pairs", "swapped_pairs", "streams") else 1, vocabulary)
    assert [one for one in pieces if one[0] in (152, 153)] == [one for one in template if one[0] >= 0]


def agreeing(tool: Tokenizer) -> list[str]:
    return [family for family, model in MODELS.items() if tool.framed_as(model.row_frame) is tool]


def test_a_vocabulary_that_agrees_is_left_alone(made: dict[str, Tokenizer]) -> None:
    """The object itself, so its files are the same byte for byte; a vocabulary without CLS and SEP around texts agrees with any family."""
    first = ["bert", "electra", "albert", "distilbert", "gpt", "elmo"]
    assert agreeing(made["wordpiece"]) == agreeing(made["characters"]) == first
    assert agreeing(made["bpe"]) == agreeing(made["word_bpe"]) == ["bert", "roberta", "fairseq", *first[1:]]
    assert agreeing(made["unigram"]) == ["xlnet", "pair"]
    assert agreeing(load(GOLDEN / "word_bpe")) == list(MODELS)  # GPT-1's
    for kind in ("wordpiece", "bpe"):
        assert "bert" in agreeing(load(GOLDEN / kind))


def published(folder: Path) -> Tokenizer:
    """A vocabulary of rules that none of jaxenc's has, as transformers saves it."""
    KINDS["wordpiece"]().save(folder)
    (folder / "vocab.txt").unlink()
    data = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**data, "normalizer": {"type": "Lowercase"}}))
    return load(folder)


def spiece(folder: Path) -> Tokenizer:
    """A .model with XLNet's pieces, read by the sentencepiece library."""
    options = {"model_prefix": f"{folder}/spiece", "vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2}
    controls = {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>"]}
    library.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), **options, **controls)
    return load(folder)


def repeated(folder: Path) -> Tokenizer:
    """A piece on two lines of vocab.txt, which no tokenizer.json can hold."""
    KINDS["wordpiece"]().save(folder)
    with (folder / "vocab.txt").open("a") as file:
        file.write("the\n")
    return wordpiece.from_vocab(folder / "vocab.txt", PublishedRules(True, True))


OTHERS = {"published": published, "spiece": spiece, "repeated": repeated}


def parts(name: str, content: bytes) -> object:
    """The content of a file, whatever the order of its entries."""
    return json.loads(content) if name.endswith(".json") else content


@pytest.mark.parametrize("frame", [CLS_FIRST, CLS_FIRST.within(1), CLS_LAST], ids=["first", "one type", "last"])
@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
def test_a_folder_with_another_frame_opens_with_it(kind: str, frame: Frame, made: dict[str, Tokenizer], tmp_path: Path) -> None:
    """Twice, and the vocabulary is the same: its fingerprint, which a resume compares, its ids, and what a new piece becomes."""
    (tmp_path / "made").mkdir()
    tool = made[kind] if kind in KINDS else OTHERS[kind](tmp_path / "made")
    assert tool.vocabulary.frames and not tool.reframed
    one = tool.in_frame(frame)
    one.save(tmp_path / "one")
    two = load(tmp_path / "one")
    two.save(tmp_path / "two")
    three = load(tmp_path / "two")
    texts = ["the cat sat on the old red mat.", "a dog", ""]
    for found in (one, two, three):
        assert found.reframed and found.vocabulary == tool.vocabulary and found.encode(texts) == tool.encode(texts)
        for count in (1, 2):
            assert found.frame(count) == frame.template(count, tool.vocabulary)
        bare = [index for index, _ in found.frame(1) if index >= 0]
        assert found.encode_prompt("the dog") == [
            *bare[: not frame.ends_in_cls],
            *tool.encode(["the dog"])[0],
            *bare[not frame.ends_in_cls :],
        ]
    parsed = [{name: parts(name, content) for name, content in found.files.items()} for found in (one, two, three)]
    assert parsed[0] == parsed[1] == parsed[2]
    if kind != "characters":
        more = two.extended(["quagga"])
        assert more.frame(2) == two.frame(2) and more.vocabulary == tool.extended(["quagga"]).vocabulary
        assert more.encode(["the quagga"]) == tool.extended(["quagga"]).encode(["the quagga"])
    # Another frame in its turn, such as of a run of another family with this tokenizer.
    again = two.in_frame(CLS_FIRST if frame.ends_in_cls else CLS_LAST)
    again.save(tmp_path / "again")
    assert load(tmp_path / "again").frame(1) == again.frame(1) and load(tmp_path / "again").vocabulary == tool.vocabulary


def test_a_frame_that_was_changed_by_hand_is_followed(made: dict[str, Tokenizer], tmp_path: Path) -> None:
    made["unigram"].in_frame(CLS_FIRST).save(tmp_path)
    path = tmp_path / "tokenizer.json"
    data = json.loads(path.read_text())
    data["post_processor"]["single"].pop()  # SEP
    path.write_text(json.dumps(data))
    vocabulary = made["unigram"].vocabulary
    assert load(tmp_path).frame(1) == ((vocabulary.cls, 0), (-1, 0))


@pytest.mark.parametrize("damage", [{"single": "cls B sep"}, {"pair": "A sep"}, {"single": 3}, {"left": None, "single": None}])
def test_a_damaged_frame_is_one_line(damage: dict, made: dict[str, Tokenizer], tmp_path: Path) -> None:
    made["unigram"].in_frame(CLS_FIRST).save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "frame": config["frame"] | damage}))
    with pytest.raises(UserError, match="tokenizer_config.json: damaged"):
        load(tmp_path)


def test_a_type_that_the_model_lacks_is_refused(made: dict[str, Tokenizer]) -> None:
    """It is not counted down to one that the model has."""
    ids = made["unigram"].encode(["the cat"])
    with pytest.raises(UserError, match="the tokenizer frames texts with the type 2, and the model has the types 0 to 1"):
        Framing(made["unigram"], BertConfig(), 16).rows([ids])
    with pytest.raises(UserError, match="the type 2"):
        inputs.of_texts(BertConfig(), made["unigram"], ["the cat"])
