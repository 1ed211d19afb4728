"""Unigram vocabularies of new tokenizers, and of a tokenizer.json, read by the tokenizers library: the most probable cut of a word, whose
first piece has the mark ▁. A `.model` that others made is read by the sentencepiece library: model_folder.py.

Kudo, "Subword regularization" (2018); the vocabulary and its training are those of zihangdai/xlnet (README.md, spm_train). White space only
separates words. A published vocabulary reads texts by the rule in rules.py, a new one by a `Normalization`. Two things differ
from the sentencepiece library, as they do in transformers: a comma after a digit is not cut off when a piece holds both; and of two cuts
that are equally probable (0 00 and 00 0) the other one may be taken (one line in 5,804 of English, measured). A literal `<eop>` in a text
is letters, like all specials.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks, coverage, normalization, separate
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import framings, trainer, unigram_words
from jaxenc.data.tokenizers.sentencepiece.framings import ENDS, ROLES, Framing
from jaxenc.data.tokenizers.sentencepiece.model_file import LONGEST, MARK, NAME, Facts, parsed, written
from jaxenc.data.tokenizers.sentencepiece.rules import SentencePieceRules, of_section
from jaxenc.data.tokenizers.tokenizer import SETTINGS, Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError

OTHERS = "only XLNet's and ALBERT's SentencePiece can be opened"


@dataclasses.dataclass(frozen=True)
class UnigramRules:
    """How a new vocabulary reads a text: `normalization` alone decides which letters, marks and joiners are lost.

    continues: whether the text after a special piece continues a word where no blank is between them, as in the rows of pretraining. In
    text without blanks between words what follows a mask would else be read as the start of a line. False for a folder whose files say so,
    as XLNet's of transformers do.
    """

    normalization: Normalization
    continues: bool = True

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The rule as a normalizer of the tokenizers library."""
        return self.normalization.normalizer(clean=True) or normalizers.Sequence([])

    @property
    def prompt_normalizer(self) -> normalizers.Normalizer:
        """`normalizer` for a text that special pieces cut into parts, before `prompt_splitter`.

        If `continues`, white space becomes one blank, and a part does not end in one. What is removed from the start of a text becomes a
        blank too: the library takes a part for the start of the text only where it begins with the text's first character.
        """
        if not self.continues:
            return self.normalizer
        gone = [r"\p{Mn}"] * self.normalization.strip_accents + [normalization.LAYOUT] * (self.normalization.form != "none")
        removed = [normalizers.Replace(Regex(f"^({'|'.join(gone)})+"), " ")] if gone else []
        # A mark in the text takes the place of the blanks before it, as it does in a word of `_splitter`.
        joined = ((rf"\s+(?={MARK})", ""), (r"\s+", " "), (" $", ""))
        blanks = [normalizers.Replace(Regex(pattern), to) for pattern, to in joined]
        return normalizers.Sequence([*removed, self.normalizer, *blanks])

    @property
    def prompt_splitter(self) -> pre_tokenizers.PreTokenizer:
        """If `continues`, it marks the first word of a text and every word after a blank; else also each word after a special piece."""
        return pre_tokenizers.Metaspace(MARK, "first") if self.continues else _splitter()

    @property
    def word_writer(self) -> Callable[[str], str]:
        """What `normalizer` makes of a word: ASCII without controls is in every form of Unicode already, and has no accents."""
        normalize, ascii_case = self.normalizer.normalize_str, str.lower if self.normalization.lowercase else str
        return lambda word: ascii_case(word) if word.isascii() and word.isprintable() else normalize(word)

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers."""
        return self.normalization.facts

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return {**self.normalization.settings, "keep_accents": not self.normalization.strip_accents}


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces, with the specials of XLNet at the published ids; the same for the same texts.

    texts: read once, by `rule`, by which `encode` reads too. A line on stderr says which characters are too rare to have a piece. Raises
    UserError as `trainer.trained` does.
    """
    rules, counts = UnigramRules(rule), Counter()

    def read() -> Iterator[str]:
        for text in texts:
            # The trainer takes only U+0020 for white space, and its own mark ▁ for a space.
            line = " ".join(rules.normalizer.normalize_str(text).replace(MARK, " ").split())
            counts.update(line)
            yield line

    facts = parsed("the trained model", trainer.trained(read(), vocab_size))
    coverage.report(counts, {piece for piece, _ in facts.pieces}, "<unk>")
    return build("the trained model", facts, rules)


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`, ours or one that transformers wrote for an XLNet or an ALBERT.

    Raises UserError for a file that is damaged, Unsupported for other rules of reading, other specials, and pieces added by hand: such a
    file is opened by published/build.py.
    """
    with checks.damaged(path):
        model, splitter = data["model"], data.get("pre_tokenizer") or {}
        pieces = tuple((piece, float(score)) for piece, score in model.get("vocab", []))
        framings.of_pieces(path, [piece for piece, _ in pieces])
        section = data.get("normalizer") or {}
        rules = _rules(section, splitter)
        if rules is None:
            raise Unsupported("reads texts by another rule", path, OTHERS)
        added = data.get("added_tokens") or []
        charsmap = rules.charsmap if isinstance(rules, SentencePieceRules) else b""
        facts = Facts(pieces, frozenset(entry["content"] for entry in added), charsmap).check()
        parts = [part["type"] for part in splitter.get("pretokenizers", [])]
        continues = isinstance(rules, UnigramRules) and rules.continues
        if (not continues and parts != ["WhitespaceSplit", "Metaspace"]) or model.get("byte_fallback"):
            raise Unsupported("does not cut texts at white space alone, or into bytes", path, OTHERS)
        if other := [entry["content"] for entry in added if not entry["special"] or entry["id"] >= len(pieces)]:
            raise Unsupported(f"{other[0]!r} was added after the vocabulary", path, OTHERS)
        return build(path, facts, rules)


def _rules(section: Mapping[str, Any], splitter: Mapping[str, Any]) -> UnigramRules | SentencePieceRules | None:
    """The rule in the sections `normalizer` and `pre_tokenizer` of a tokenizer.json."""
    for rule in normalization.choices():
        if normalization.section((new := UnigramRules(rule)).prompt_normalizer) == section:
            return new if normalization.section(new.prompt_splitter) == splitter else None
        if normalization.section((old := UnigramRules(rule, continues=False)).normalizer) == section:
            return old
    return of_section(section)


def _splitter() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")])


def build(path: str | Path, facts: Facts, rules: UnigramRules | SentencePieceRules) -> Tokenizer:
    """The tokenizer of checked facts. path: what messages call their source."""
    pieces = [piece for piece, _ in facts.pieces]
    framing, ids = framings.of_pieces(path, pieces), {piece: index for index, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        raise UserError(f"holds the piece {next(p for i, p in enumerate(pieces) if ids[p] != i)!r} twice", path, AGAIN)
    facts = _with_hidden(facts, framing)
    # No word holds a blank, so a piece that starts with one is never found in a text.
    literal_pieces = [(" " * (piece in facts.hidden) + piece, score) for piece, score in facts.pieces]
    literal = _library(rules, literal_pieces, ids[framing.unk])
    unk, pad, cls, sep, mask_id = (ids[piece] for piece in framing.specials)
    mark = fingerprint({"type": "unigram", "pieces": facts.pieces, "hidden": sorted(facts.hidden), **rules.facts})
    reserved = tuple(sorted(ids[piece] for piece in facts.hidden))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask_id, reserved, mark, ids.get("<eod>", -1))
    framed = _framed(facts, rules, framing)
    looked_up = {
        "separate": separate.by_clusters if facts.charsmap else separate.always,
        "by_word": unigram_words.encoder(literal, literal_pieces, rules.word_writer),
    }
    named = _files(facts, rules, framing, framed)
    return Tokenizer(literal, framed, vocabulary, named, lambda more: _extended(facts, rules, more), _spelled, **looked_up)


def files(path: str | Path, facts: Facts, rules: SentencePieceRules) -> Mapping[str, str | bytes]:
    """{name: content} of a folder that transformers opens for a model of XLNet's or ALBERT's. path: what messages call it."""
    framing = framings.of_pieces(path, [piece for piece, _ in facts.pieces])
    facts = _with_hidden(facts, framing)
    return _files(facts, rules, framing, _framed(facts, rules, framing))


def _with_hidden(facts: Facts, framing: Framing) -> Facts:
    """The facts, with the special pieces among those that no text gives."""
    ends = {*ENDS} & {piece for piece, _ in facts.pieces}
    return dataclasses.replace(facts, hidden=facts.hidden | {*framing.specials, *ends})


def _framed(facts: Facts, rules: UnigramRules | SentencePieceRules, framing: Framing) -> library.Tokenizer:
    """Recognises special pieces and frames a text by them."""
    ids = {piece: index for index, (piece, _) in enumerate(facts.pieces)}
    out = _library(rules, facts.pieces, ids[framing.unk])
    if isinstance(rules, UnigramRules):
        out.normalizer, out.pre_tokenizer = rules.prompt_normalizer, rules.prompt_splitter
    mask = {framing.mask: {"lstrip": True}}
    out.add_special_tokens([library.AddedToken(p, normalized=False, **mask.get(p, {})) for p in sorted(facts.hidden, key=ids.__getitem__)])
    frame = [(piece, ids[piece]) for piece in (framing.cls, framing.sep)]
    out.post_processor = processors.TemplateProcessing(framing.single, framing.pair, frame)
    return out


def _files(
    facts: Facts, rules: UnigramRules | SentencePieceRules, framing: Framing, framed: library.Tokenizer
) -> Mapping[str, str | bytes]:
    unk = [piece for piece, _ in facts.pieces].index(framing.unk)
    settings = json.dumps(_config(facts, rules, framing), indent=2) + "\n"
    return {"tokenizer.json": framed.to_str(pretty=True), NAME: written(facts, unk), SETTINGS: settings}


def _library(rules: UnigramRules | SentencePieceRules, pieces: Sequence[tuple[str, float]], unk: int) -> library.Tokenizer:
    out = library.Tokenizer(models.Unigram(list(pieces), unk, False))
    out.normalizer, out.pre_tokenizer, out.decoder = rules.normalizer, _splitter(), decoders.Metaspace(MARK, "always")
    return out


def _config(facts: Facts, rules: UnigramRules | SentencePieceRules, framing: Framing) -> dict[str, object]:
    """What transformers reads in tokenizer_config.json. Its own classes for XLNet and ALBERT put rules of theirs in the place of those in
    tokenizer.json: they are not named. From transformers 5 on it leaves out the types, without which CLS is of the first segment: they are
    asked for."""
    ends = [piece for piece, _ in facts.pieces if piece in ENDS]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **rules.settings,
        "remove_space": True,
        "padding_side": "left" if framing.frame.pads_left else "right",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "additional_special_tokens": ends,
        "clean_up_tokenization_spaces": False,
    } | {f"{name}_token": getattr(framing, name) for name in ROLES}


def _spelled(piece: str) -> str:
    """A new piece as the vocabulary writes it: it starts a word."""
    return MARK + piece.lstrip(f" {MARK}")


def _extended(facts: Facts, rules: UnigramRules | SentencePieceRules, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` after it: the start of a word, or a word, that is one of them is always that piece, the longest.

    Its logarithm of the probability is its length: all others have none above 0. Raises UserError for what no word starts with.
    """
    for piece in more:
        if piece in facts.hidden:
            raise UserError(f"{piece!r} is in the vocabulary already", fix="leave it out")
        if len(_spelled(piece)) > LONGEST:
            raise UserError(f"{piece[:20]!r}... has {len(piece)} characters", fix=f"give a piece of at most {LONGEST - 1}")
        words = [word for word, _ in _splitter().pre_tokenize_str(rules.normalizer.normalize_str(piece))]
        if words != [_spelled(piece)]:
            held = " ".join(words).replace(MARK, "")
            raise UserError(f"{piece!r} is never found in a text: it is read as {held!r}", fix="give words, one each, as they are read")
    added = tuple((_spelled(piece), float(len(_spelled(piece)))) for piece in more)
    return build("the larger vocabulary", dataclasses.replace(facts, pieces=(*facts.pieces, *added)), rules)
