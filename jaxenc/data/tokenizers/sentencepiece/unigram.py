"""Unigram vocabularies of new tokenizers, and of a tokenizer.json, read by the tokenizers library: the most probable cut of a word, whose
first piece has the mark ▁. A `.model` that others made is read by the sentencepiece library: model_folder.py.

Kudo, "Subword regularization" (2018); the vocabulary and its training are those of zihangdai/xlnet (README.md, spm_train). White space only
separates words. A published vocabulary reads texts by the rules in rules.py, a new one by those in unigram_rules.py. Two things differ
from the sentencepiece library, as they do in transformers: a comma after a digit is not cut off when a piece holds both; and of two cuts
that are equally probable (0 00 and 00 0) the other one may be taken (one line in 5,804 of English, measured). A literal `<eop>` in a text
is letters, like all specials.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks, coverage, separate
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import specials, trainer, unigram_rules, unigram_words
from jaxenc.data.tokenizers.sentencepiece.model_file import LONGEST, MARK, NAME, Facts, parsed, written
from jaxenc.data.tokenizers.sentencepiece.rules import Rules, word_splitter
from jaxenc.data.tokenizers.sentencepiece.specials import ENDS, ROLES, Specials
from jaxenc.data.tokenizers.sentencepiece.unigram_rules import UnigramRules
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError

OTHERS = "only XLNet's and ALBERT's SentencePiece can be opened"


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
        specials.of_pieces(path, [piece for piece, _ in pieces])
        rules = unigram_rules.of_section(data.get("normalizer") or {})
        if rules is None:
            raise Unsupported("reads texts by another rule", path, OTHERS)
        added = data.get("added_tokens") or []
        facts = Facts(pieces, frozenset(entry["content"] for entry in added), rules.charsmap).check()
        if not rules.cuts_as(splitter) or model.get("byte_fallback"):
            raise Unsupported("does not cut texts at white space alone, or into bytes", path, OTHERS)
        if other := [entry["content"] for entry in added if not entry["special"] or entry["id"] >= len(pieces)]:
            raise Unsupported(f"{other[0]!r} was added after the vocabulary", path, OTHERS)
        return build(path, facts, rules)


def build(path: str | Path, facts: Facts, rules: Rules) -> Tokenizer:
    """The tokenizer of checked facts. path: what messages call their source."""
    pieces = [piece for piece, _ in facts.pieces]
    roles, ids = specials.of_pieces(path, pieces), {piece: index for index, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        raise UserError(f"holds the piece {next(p for i, p in enumerate(pieces) if ids[p] != i)!r} twice", path, AGAIN)
    facts = _with_hidden(facts, roles)
    # No word holds a blank, so a piece that starts with one is never found in a text.
    literal_pieces = [(" " * (piece in facts.hidden) + piece, score) for piece, score in facts.pieces]
    literal = _library(literal_pieces, ids[roles.unk], rules.normalizer, word_splitter())
    unk, pad, cls, sep, mask_id = (ids[piece] for piece in roles.pieces)
    mark = fingerprint({"type": "unigram", "pieces": facts.pieces, "hidden": sorted(facts.hidden), **rules.facts})
    reserved = tuple(sorted(ids[piece] for piece in facts.hidden))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask_id, reserved, mark, ids.get("<eod>", -1))
    prompt = _prompt(facts, rules, roles)
    kind = Kind(
        spelled=spelled,
        separate=separate.by_clusters if facts.charsmap else separate.always,
        by_word=unigram_words.encoder(literal, literal_pieces, rules.word_writer),
    )
    return Tokenizer(literal, prompt, vocabulary, _files(facts, rules, roles, prompt), lambda more: _extended(facts, rules, more), kind)


def files(path: str | Path, facts: Facts, rules: Rules) -> Mapping[str, str | bytes]:
    """{name: content} of a folder that transformers opens for a model of XLNet's or ALBERT's. path: what messages call it."""
    roles = specials.of_pieces(path, [piece for piece, _ in facts.pieces])
    facts = _with_hidden(facts, roles)
    return _files(facts, rules, roles, _prompt(facts, rules, roles))


def _with_hidden(facts: Facts, roles: Specials) -> Facts:
    """The facts, with the special pieces among those that no text gives."""
    ends = {*ENDS} & {piece for piece, _ in facts.pieces}
    return dataclasses.replace(facts, hidden=facts.hidden | {*roles.pieces, *ends})


def _prompt(facts: Facts, rules: Rules, roles: Specials) -> library.Tokenizer:
    """The engine that recognises special pieces and frames a text by them."""
    ids = {piece: index for index, (piece, _) in enumerate(facts.pieces)}
    out = _library(facts.pieces, ids[roles.unk], rules.prompt_normalizer, rules.prompt_splitter)
    mask = {roles.mask: {"lstrip": True}}
    out.add_special_tokens([library.AddedToken(p, normalized=False, **mask.get(p, {})) for p in sorted(facts.hidden, key=ids.__getitem__)])
    single, pair = (roles.frame.written(texts, roles.cls, roles.sep) for texts in (1, 2))
    out.post_processor = processors.TemplateProcessing(single, pair, [(piece, ids[piece]) for piece in (roles.cls, roles.sep)])
    return out


def _files(facts: Facts, rules: Rules, roles: Specials, prompt: library.Tokenizer) -> Mapping[str, str | bytes]:
    unk = [piece for piece, _ in facts.pieces].index(roles.unk)
    settings = json.dumps(_config(facts, rules, roles), indent=2) + "\n"
    return {JSON: prompt.to_str(pretty=True), NAME: written(facts, unk), SETTINGS: settings}


def _library(
    pieces: Sequence[tuple[str, float]], unk: int, normalizer: normalizers.Normalizer, splitter: pre_tokenizers.PreTokenizer
) -> library.Tokenizer:
    out = library.Tokenizer(models.Unigram(list(pieces), unk, False))
    out.normalizer, out.pre_tokenizer, out.decoder = normalizer, splitter, decoders.Metaspace(MARK, "always")
    return out


def _config(facts: Facts, rules: Rules, roles: Specials) -> dict[str, object]:
    """What transformers reads in tokenizer_config.json. Transformers' classes for XLNet and ALBERT are not named, since they replace the
    rules in tokenizer.json by their own. Token types are asked for, since transformers 5 leaves them out by default: CLS would be of the
    first segment."""
    ends = [piece for piece, _ in facts.pieces if piece in ENDS]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **rules.settings,
        "remove_space": True,
        "padding_side": "left" if roles.frame.pads_left else "right",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "additional_special_tokens": ends,
        "clean_up_tokenization_spaces": False,
    } | {f"{name}_token": getattr(roles, name) for name in ROLES}


def spelled(piece: str) -> str:
    """A new piece as the vocabulary writes it: it starts a word."""
    return MARK + piece.lstrip(f" {MARK}")


def _extended(facts: Facts, rules: Rules, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` after it: the start of a word, or a word, that is one of them is always that piece, the longest.

    The logarithm of its probability is its length, and no other piece has one above 0. Raises UserError for what no word starts with.
    """
    for piece in more:
        if piece in facts.hidden:
            raise UserError(f"{piece!r} is in the vocabulary already", fix="leave it out")
        if len(spelled(piece)) > LONGEST:
            raise UserError(f"{piece[:20]!r}... has {len(piece)} characters", fix=f"give a piece of at most {LONGEST - 1}")
        words = [word for word, _ in word_splitter().pre_tokenize_str(rules.normalizer.normalize_str(piece))]
        if words != [spelled(piece)]:
            held = " ".join(words).replace(MARK, "")
            raise UserError(f"{piece!r} is never found in a text: it is read as {held!r}", fix="give words, one each, as they are read")
    added = tuple((spelled(piece), float(len(spelled(piece)))) for piece in more)
    return build("the larger vocabulary", dataclasses.replace(facts, pieces=(*facts.pieces, *added)), rules)
