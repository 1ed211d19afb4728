"""Byte-level BPE as GPT-2 and RoBERTa use it: UTF-8 bytes as letters, words with the space before them, merges by rank.

Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.2; the layout of the vocabulary is that of
fairseq's roberta.base. No byte is unknown: decoding gives back every text as the vocabulary normalizes it; a published vocabulary does
not normalize, so it gives back the text itself.
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import added as adding
from jaxenc.data.tokenizers import bpe_rules, byte_letters, checks, separate
from jaxenc.data.tokenizers import merges as merging
from jaxenc.data.tokenizers.added import Entry
from jaxenc.data.tokenizers.bpe_rules import MARKS, PUBLISHED, BytesRules
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.lines import cut
from jaxenc.data.tokenizers.merges import Merges
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # CLS, padding, SEP, unknown, mask
BYTES = frozenset(pre_tokenizers.ByteLevel.alphabet())
BLANK = "\u0120"  # Ġ, the letter of BYTES for the blank
LONGEST = 4096  # characters trained on in one piece: the time for a word grows with the square of its length
MADE_UP = re.compile(r"madeupword\d+")


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces: <s> <pad> </s> <unk>, the 256 bytes, merges, <mask>. The same for the same texts.

    texts: read once and not kept; memory is that of the different words. A text longer than LONGEST characters is cut before a blank,
    which changes no word, or inside a word that is longer itself. A pair of pieces that is seen once is not merged. rule: how texts are
    written before they are cut into words, by a pattern that keeps marks with their letters; published vocabularies have GPT-2's own.
    Raises UserError when no text holds a visible character, and for a vocab_size that is too small or too large.
    """
    rules, smallest = BytesRules(rule, MARKS), len(SPECIALS) + len(BYTES)
    checks.size(vocab_size, smallest, "the specials and bytes")
    parts = (part for text in texts for part in cut(text, LONGEST))
    first = next(parts, None)
    if first is None:
        raise UserError("the input holds no text", "tokenizer", "name files with at least one line of text")
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=2,
        special_tokens=list(SPECIALS[:-1]),
        initial_alphabet=sorted(BYTES),
        show_progress=False,
    )
    trained = _library({}, [], rules)
    trained.train_from_iterator(itertools.chain([first], parts), trainer)
    model = json.loads(trained.to_str())["model"]
    ids = model["vocab"] | {SPECIALS[-1]: len(model["vocab"])}
    return _build(ids, [tuple(merge) for merge in model["merges"]], [_special(piece, ids) for piece in SPECIALS], rules)


def _special(piece: str, ids: Mapping[str, int]) -> Entry:
    """<mask> takes the blank before it, as in fairseq and transformers: a blank belongs to the word that it stands for."""
    return adding.entry(piece, ids[piece], "special", *["lstrip"] * (piece == SPECIALS[-1]))


def from_files(folder: str | Path) -> Tokenizer:
    """The tokenizer of GPT-2's two files: vocab.json {piece: id}, merges.txt with two pieces a line after a line of its version.

    A tokenizer_config.json beside them names the added pieces, as transformers writes it, and the normalization; without one the added
    pieces are the specials and texts are read as they are.
    Raises UserError for files that are damaged, do not fit together, or lack a special piece or a byte.
    """
    vocab, merges, settings = (Path(folder) / name for name in ("vocab.json", merging.NAME, SETTINGS))
    config = read_json(settings, AGAIN) if settings.is_file() else {}
    if config.get("add_prefix_space"):
        raise Unsupported("add_prefix_space is on", settings, "save the folder with transformers, whose tokenizer.json can be opened")
    pairs = merging.read(merges)
    with checks.damaged(settings):
        added = adding.of_settings(config)
    return _checked(vocab, read_json(vocab, AGAIN), pairs, added, bpe_rules.of_settings(settings, config))


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`. The caller compares its definition with `data`: of the sections only those
    are read in which vocabularies of this kind differ. Raises UserError for other kinds, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        model = data["model"]
        rules = bpe_rules.of_json(path, data.get("normalizer"), data.get("pre_tokenizer") or {})
        vocab, added = model["vocab"], adding.of_list(data.get("added_tokens") or [])
        return _checked(path, vocab, [merging.pair(merge) for merge in model["merges"]], added, rules)


def _checked(path: str | Path, vocab: Mapping[str, int], merges: Merges, added: Sequence[Entry], rules: BytesRules) -> Tokenizer:
    """`_build` of what was read from `path`; specials that `added` does not name are added. Raises UserError."""
    with checks.damaged(path):
        ids = dict(vocab) | {entry["content"]: entry["id"] for entry in added}
        checks.by_id(ids, path)
        if missing := [piece for piece in SPECIALS if piece not in ids]:
            raise Unsupported(f"lacks {' '.join(missing)}", path, "add them: only RoBERTa's BPE can be opened from these files")
        if missing := sorted(BYTES - ids.keys()):
            raise UserError(f"lacks {len(missing)} of the 256 bytes, {missing[0]!r} for one", path, AGAIN)
        merging.check(merges, ids, path)
        named = {entry["content"] for entry in added}
        return _build(ids, merges, [*added, *(_special(piece, ids) for piece in SPECIALS if piece not in named)], rules)


def _library(ids: Mapping[str, int], merges: Merges, rules: BytesRules) -> library.Tokenizer:
    out = library.Tokenizer(models.BPE(dict(ids), list(merges)))
    if (written := rules.normalizer) is not None:
        out.normalizer = written
    out.pre_tokenizer, out.decoder = rules.splitter, decoders.ByteLevel()
    return out


def _build(ids: Mapping[str, int], merges: Merges, added: Sequence[Entry], rules: BytesRules) -> Tokenizer:
    """ids: of every piece. added: those that are found whole in a text before it is cut into words; special ones in prompts only."""
    added = adding.by_id(added)
    literal, prompt = _library(ids, merges, rules), _library(ids, merges, rules)
    for tool in (literal, prompt):
        adding.register(tool, added)
    literal.encode_special_tokens = True
    cls, pad, sep, unk, mask = (ids[piece] for piece in SPECIALS)
    prompt.post_processor = processors.RobertaProcessing(("</s>", sep), ("<s>", cls), add_prefix_space=False)
    pieces = sorted(ids, key=ids.__getitem__)
    special = {entry["content"] for entry in added if entry["special"]}
    reserved = tuple(index for index, piece in enumerate(pieces) if piece in special or MADE_UP.fullmatch(piece))
    facts = {"type": "bpe", "pieces": pieces, "merges": merges, "added": added, **rules.facts}
    vocabulary = Vocabulary(len(ids), pad, unk, cls, sep, mask, reserved, fingerprint(facts))
    files = {
        JSON: prompt.to_str(pretty=True),
        "vocab.json": json.dumps({piece: ids[piece] for piece in pieces}, ensure_ascii=False) + "\n",
        merging.NAME: merging.written(merges),
        SETTINGS: json.dumps(_config(added, rules), indent=2) + "\n",
    }
    by_itself = separate.by_edges(rules.normalizer.normalize_str if rules.normalizer else str)
    whole = {entry["content"] for entry in added}
    readable = lambda piece: piece if piece in whole else byte_letters.readable(piece)
    kind = Kind(spelled=_spelled, readable=readable, separate=by_itself)
    return Tokenizer(literal, prompt, vocabulary, files, lambda more: _extended(ids, merges, added, rules, more), kind)


def _letters(piece: str) -> str:
    """The bytes of `piece` as the files write them."""
    ((written, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(piece)
    return written


def _spelled(piece: str) -> str:
    """A new piece as the vocabulary writes it: an added piece as it is, and one that the files would take for a byte, as é, in bytes."""
    return _letters(piece) if piece in BYTES else piece


def _extended(ids: Mapping[str, int], merges: Merges, added: Sequence[Entry], rules: BytesRules, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` after it, as the add_tokens of transformers does it.

    A new piece is found wherever it stands, inside a word too, and before the rest is cut into words and merged. The blank before it
    is not part of it: a blank is a token of its own there, unless the piece starts with one. A single letter that is also how the files
    write a byte (é is byte 233) cannot be an added piece, whose id would be the byte's: its two bytes are merged before all others.
    Raises UserError for a piece as the files write it, with their letter for the blank, for one that they hold so already, and for one
    that the rule would change: vocab.json and tokenizer.json would then disagree about it.
    """
    normalizer = rules.normalizer
    for piece in more:
        if normalizer is not None and (read := normalizer.normalize_str(piece)) != piece:
            raise UserError(f"{piece!r} is read as {read!r} in a text", fix="write it as it is read")
        if piece.startswith(BLANK):
            raise UserError(f"{piece!r} is never found in a text: {BLANK} is how the files write a blank", fix=f"write {' ' + piece[1:]!r}")
        if (written := _letters(piece)) in ids:
            raise UserError(f"{piece!r} is in the vocabulary already, as {written!r}", fix="leave it out")
    new = {_spelled(piece): index for index, piece in enumerate(more, len(ids))}
    entries = [adding.entry(piece, new[piece], "normalized") for piece in more if piece not in BYTES]
    first = [merging.pair([*_letters(piece)]) for piece in more if piece in BYTES]
    return _build({**ids, **new}, [*first, *merges], [*added, *entries], rules)


def _config(added: Sequence[Entry], rules: BytesRules) -> dict[str, Any]:
    """What transformers reads in tokenizer_config.json. RobertaTokenizer has rules of its own, so it is named only where they hold."""
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    own = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"], **rules.settings}
    settings = {"tokenizer_class": "RobertaTokenizer"} if rules == PUBLISHED else own
    settings |= {"add_prefix_space": False, "clean_up_tokenization_spaces": False, "added_tokens_decoder": adding.settings(added)}
    return settings | dict(zip(names, SPECIALS, strict=True)) | {"bos_token": "<s>", "eos_token": "</s>"}
