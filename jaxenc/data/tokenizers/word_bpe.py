"""Byte-pair encoding as GPT-1 uses it: characters as letters, the last of a word marked by </w>, merges by rank.

Radford et al., "Improving language understanding by generative pre-training" (2018), after Sennrich et al. (2016). A vocabulary that was
published gives the ids that transformers gives: texts are cleaned, lower-cased and split into words as BERT's uncased models do it
(word_bpe_rules.py). It has <unk> alone for a special piece, so nothing frames its texts.

openai/finetune-transformer-lm:text_utils.py, by which GPT-1 was trained, reads texts in another way. With `"standardize": true` in a
tokenizer_config.json one part of it is done first: curly quotes, dashes and the ellipsis become ASCII. Not reproduced: spaCy's word
splitter (`don't` is do n't there and don ' t here, `...` one word there and three here) and the repairs of ftfy (wrongly decoded text,
ligatures, full-width letters), which are rules of other libraries and change with their versions; and the line end as a word, \\n</w>,
since white space only separates words in transformers.

A vocabulary made here has <pad> and the pieces that the original adds for fine-tuning. It frames a text as _start_ A _classify_ and a pair
as _start_ A _delimiter_ B _classify_, as the original's tasks do. Rows of pretraining start with _start_, its CLS, and end with
_delimiter_, its SEP, which also stands between documents. There is no mask and no piece of its own that ends a document.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import Regex, decoders, models, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import added as adding
from jaxenc.data.tokenizers import checks, separate, word_bpe_rules, word_bpe_train
from jaxenc.data.tokenizers import merges as merging
from jaxenc.data.tokenizers.added import Entry
from jaxenc.data.tokenizers.bpe import BYTES
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.merges import Merges
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.word_bpe_rules import Rules
from jaxenc.data.tokenizers.wordpiece_rules import WordPieceRules
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

UNK, PAD, START, DELIMITER, CLASSIFY = SPECIALS = ("<unk>", "<pad>", "_start_", "_delimiter_", "_classify_")
FRAME = (START, DELIMITER, CLASSIFY)
SINGLE, PAIR = f"{START} $A {CLASSIFY}", f"{START} $A {DELIMITER} $B {CLASSIFY}"
END = "</w>"
OWN_CLASS = "PreTrainedTokenizerFast"  # of transformers: it follows a tokenizer.json to the letter
CLASSES = (OWN_CLASS, "OpenAIGPTTokenizer", "OpenAIGPTTokenizerFast")
OTHERS = "only GPT-1's and ours can be opened"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a vocabulary is made of. vocab: {piece: id} of the merges' model; added: pieces found whole in a text before it is cut into
    words, special ones in prompts only, whether in `vocab` or not; framed: whether prompts stand between START and CLASSIFY."""

    vocab: Mapping[str, int]
    merges: Merges
    added: Sequence[Entry]
    rules: Rules
    framed: bool

    @property
    def ids(self) -> dict[str, int]:
        """{piece: id} of all pieces."""
        return {**self.vocab, **{entry["content"]: entry["id"] for entry in self.added}}

    @property
    def model(self) -> Mapping[str, int]:
        """`vocab`, to which the library adds the others with the ids after it; all pieces where their ids are in between."""
        ids = self.ids
        return self.vocab if all(ids[piece] >= len(self.vocab) for piece in ids.keys() - self.vocab.keys()) else ids


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces: SPECIALS, letters at the end of a word, letters before another, merges.

    It reads texts by `rule` and splits words as a new WordPiece vocabulary does; see `word_bpe_train.trained`.
    """
    rules = WordPieceRules(rule)
    pieces, merges = word_bpe_train.trained(texts, vocab_size, rules, SPECIALS, END)
    return _build(Facts({piece: index for index, piece in enumerate(pieces)}, merges, (), rules, framed=True))


def is_model(model: object) -> bool:
    """Whether the section `model` of a tokenizer.json marks the ends of words."""
    return isinstance(model, dict) and bool(model.get("end_of_word_suffix"))


def is_vocab(path: Path) -> bool:
    """Whether a vocab.json is of this kind: it has pieces that end words, and not the 256 bytes. Raises UserError for no JSON object."""
    pieces = read_json(path, AGAIN)
    return any(piece.endswith(END) for piece in pieces) and not pieces.keys() >= BYTES


def from_files(folder: str | Path) -> Tokenizer:
    """The tokenizer of GPT-1's two files: vocab.json {piece: id}, and merges.txt with two pieces a line after a line of its version.

    A tokenizer_config.json beside them names the added pieces, as transformers writes it, and how texts are read; without one texts are
    read as transformers reads them. Raises UserError for files that are damaged or do not fit together.
    """
    vocab, merges, settings = (Path(folder) / name for name in ("vocab.json", merging.NAME, SETTINGS))
    config = read_json(settings, AGAIN) if settings.is_file() else {}
    if (name := config.get("tokenizer_class", OWN_CLASS)) not in CLASSES:
        raise Unsupported(f"tokenizer_class is {name!r}", settings, OTHERS)
    pairs, rules = merging.read(merges), word_bpe_rules.of_settings(settings, config)
    with checks.damaged(settings):
        added = adding.of_settings(config)
    with checks.damaged(vocab):
        facts = Facts(read_json(vocab, AGAIN), pairs, added, rules, framed=False)
        framed = config.get("tokenizer_class") == OWN_CLASS and facts.ids.keys() >= {*FRAME}
        return _checked(vocab, dataclasses.replace(facts, framed=framed))


def from_json(path: str | Path, data: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`. The caller compares its definition with `data`: of the sections only those
    are read in which vocabularies of this kind differ. Raises UserError for other kinds, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        model, frame = data["model"], data.get("post_processor") or {}
        rules = word_bpe_rules.of_json(path, data.get("normalizer") or {}, data.get("pre_tokenizer") or {})
        added, framed = adding.of_list(data.get("added_tokens") or []), START in frame.get("special_tokens", {})
        return _checked(path, Facts(dict(model["vocab"]), [merging.pair(merge) for merge in model["merges"]], added, rules, framed))


def _checked(path: str | Path, facts: Facts) -> Tokenizer:
    """`_build` of what was read from `path`. Raises UserError."""
    checks.by_id(facts.ids, path)
    if UNK not in facts.vocab:
        raise Unsupported(f"lacks {UNK}", path, OTHERS)
    merging.check(facts.merges, facts.vocab, path)
    return _build(facts)


def _build(facts: Facts) -> Tokenizer:
    ids, named = facts.ids, {entry["content"] for entry in facts.added}
    specials = [adding.entry(piece, ids[piece], "special") for piece in SPECIALS if piece in ids and piece not in named]
    facts = dataclasses.replace(facts, added=adding.by_id([*facts.added, *specials]))
    literal, prompt = _library(facts), _library(facts)
    literal.encode_special_tokens = True
    if facts.framed:
        prompt.post_processor = processors.TemplateProcessing(SINGLE, PAIR, [(piece, ids[piece]) for piece in FRAME])
    pieces, model = sorted(ids, key=ids.__getitem__), facts.model
    mark = fingerprint(
        {"type": "word_bpe", "pieces": pieces, "merges": facts.merges, "added": facts.added, "framed": facts.framed, **facts.rules.facts}
    )
    reserved = tuple(entry["id"] for entry in facts.added if entry["special"])
    pad, cls, sep = ids.get(PAD, ids[UNK]), ids.get(START, -1), ids.get(DELIMITER, -1)
    vocabulary = Vocabulary(len(ids), pad, ids[UNK], cls, sep, -1, reserved, mark)
    files = {
        JSON: prompt.to_str(pretty=True),
        "vocab.json": json.dumps({piece: ids[piece] for piece in pieces if piece in model}, ensure_ascii=False) + "\n",
        merging.NAME: merging.written(facts.merges),
        SETTINGS: json.dumps(_config(facts), indent=2) + "\n",
    }
    kind = Kind(spelled=_spelled, separate=separate.always)
    return Tokenizer(literal, prompt, vocabulary, files, lambda more: _extended(facts, more), kind)


def _library(facts: Facts) -> library.Tokenizer:
    out = library.Tokenizer(models.BPE(dict(facts.model), list(facts.merges), unk_token=UNK, end_of_word_suffix=END))
    out.normalizer, out.pre_tokenizer = facts.rules.normalizer, facts.rules.splitter
    # Added pieces have no </w> and are words: the decoder gives them one, as it does to <unk>, which may end a word or not.
    alone = "|".join(rf"\A{_escaped(piece)}" for piece in sorted({UNK, *(entry["content"] for entry in facts.added)}))
    out.decoder = decoders.Sequence([decoders.Replace(Regex(rf"(?<={alone})\z"), END), decoders.BPEDecoder(suffix=END)])
    adding.register(out, facts.added)
    return out


def _escaped(piece: str) -> str:
    """`piece` as a regular expression of the library's engine, Oniguruma."""
    return "".join(rf"\x{{{ord(character):x}}}" for character in piece)


def _config(facts: Facts) -> dict[str, Any]:
    """What transformers reads in tokenizer_config.json. Its own class for GPT-1 would skip the frame and a rule of ours."""
    roles = {"unk": UNK, "pad": PAD, "bos": START, "cls": START, "sep": DELIMITER, "eos": DELIMITER}
    return {
        "tokenizer_class": OWN_CLASS,
        "model_input_names": ["input_ids", "attention_mask"],
        **word_bpe_rules.settings(facts.rules),
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": piece for role, piece in roles.items() if piece in facts.ids},
        "additional_special_tokens": [piece for piece in (CLASSIFY,) if piece in facts.ids],
        "added_tokens_decoder": adding.settings(facts.added),
    }


def _spelled(piece: str) -> str:
    """A new piece as the vocabulary writes it: it ends a word."""
    return piece if piece in SPECIALS else piece + END


def _extended(facts: Facts, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` after it. A new word is found whole, before other words are cut; a single character also where it ends a
    word. Those of SPECIALS are special, and with all of FRAME texts are framed.

    Raises UserError for what is not a word as texts are read, and for a word that is a piece inside of words.
    """
    normalizer, splitter = facts.rules.normalizer, facts.rules.splitter
    vocab, added, old = dict(facts.vocab), list(facts.added), facts.ids
    for index, piece in enumerate(more, len(old)):
        if piece in SPECIALS:
            added.append(adding.entry(piece, index, "special"))
            continue
        adding.must_be_a_word(piece, [part for part, _ in splitter.pre_tokenize_str(normalizer.normalize_str(piece))])
        if len(piece) == 1:
            vocab[piece + END] = index
        elif piece in old:
            raise UserError(f"{piece!r} is in the vocabulary already, as an added word or a part of words", fix="leave it out")
        else:
            added.append(adding.entry(piece, index, "single_word", "normalized"))
    framed = facts.framed or (bool({*FRAME} & {*more}) and {*old, *more} >= {*FRAME})
    return _build(dataclasses.replace(facts, vocab=vocab, added=added, framed=framed))
