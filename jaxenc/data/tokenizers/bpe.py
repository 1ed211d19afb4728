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
from jaxenc.data.tokenizers import checks, normalization
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.lines import cut
from jaxenc.data.tokenizers.normalization import UNCHANGED, Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json, read_lines

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # CLS, padding, SEP, unknown, mask
BYTES = frozenset(pre_tokenizers.ByteLevel.alphabet())
BLANK = "\u0120"  # Ġ, the letter of BYTES for the blank
LONGEST = 4096  # characters trained on in one piece: the time for a word grows with the square of its length
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
MADE_UP = re.compile(r"madeupword\d+")

Merges = Sequence[tuple[str, str]]
Entry = Mapping[str, Any]  # an added piece: content, id and FLAGS, as tokenizer.json lists it


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces: <s> <pad> </s> <unk>, the 256 bytes, merges, <mask>. The same for the same texts.

    texts: read once and not kept; memory is that of the different words. A text longer than LONGEST characters is cut before a blank,
    which changes no word, or inside a word that is longer itself. A pair of pieces that is seen once is not merged. rule: how texts are
    written before they are cut into words.
    Raises UserError when no text holds a visible character, and for a vocab_size that is too small or too large.
    """
    smallest = len(SPECIALS) + len(BYTES)
    checks.size(vocab_size, smallest, "the specials and bytes")
    parts = (part for text in texts for part in cut(text, LONGEST))
    first = next(parts, None)
    if first is None:
        raise UserError("tokenizer: the input holds no text; name files with at least one line of text")
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=2,
        special_tokens=list(SPECIALS[:-1]),
        initial_alphabet=sorted(BYTES),
        show_progress=False,
    )
    trained = _library({}, [], rule)
    trained.train_from_iterator(itertools.chain([first], parts), trainer)
    model = json.loads(trained.to_str())["model"]
    ids = model["vocab"] | {SPECIALS[-1]: len(model["vocab"])}
    return _build(ids, [tuple(merge) for merge in model["merges"]], [_special(piece, ids) for piece in SPECIALS], rule)


def _special(piece: str, ids: Mapping[str, int]) -> Entry:
    """<mask> takes the blank before it, as in fairseq and transformers: a blank belongs to the word that it stands for."""
    flags = dict.fromkeys(FLAGS, False) | {"special": True, "lstrip": piece == SPECIALS[-1]}
    return {"content": piece, "id": ids[piece], **flags}


def from_files(folder: str | Path) -> Tokenizer:
    """The tokenizer of GPT-2's two files: vocab.json {piece: id}, merges.txt with two pieces a line after a line of its version.

    A tokenizer_config.json beside them names the added pieces, as transformers writes it, and the normalization; without one the added
    pieces are the specials and texts are read as they are.
    Raises UserError for files that are damaged, do not fit together, or lack a special piece or a byte.
    """
    vocab, merges, settings = (Path(folder) / name for name in ("vocab.json", "merges.txt", "tokenizer_config.json"))
    config = read_json(settings, AGAIN) if settings.is_file() else {}
    if config.get("add_prefix_space"):
        raise Unsupported(f"{settings}: add_prefix_space must be off; other settings come later")
    lines = read_lines(merges, AGAIN)
    with checks.damaged(merges):
        pairs = [_pair(line) for line in lines if line and not line.startswith("#version")]
    with checks.damaged(settings):
        added = [{**entry, "id": int(index)} for index, entry in config.get("added_tokens_decoder", {}).items()]
    rule = normalization.of_settings(settings, config) or UNCHANGED
    return _checked(vocab, read_json(vocab, AGAIN), pairs, added, rule)


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`, ours or one that transformers wrote for a RoBERTa.

    Raises UserError for settings that are not RoBERTa's, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        model, splitter, framing = (data.get(part) or {} for part in ("model", "pre_tokenizer", "post_processor"))
        rule = normalization.of_section(data.get("normalizer"), clean=False)
        if splitter.get("type") != "ByteLevel" or rule is None:
            raise Unsupported(f"{path}: holds a BPE that is not byte-level; only RoBERTa's can be opened, other kinds come later")
        if splitter.get("add_prefix_space") or not splitter.get("use_regex", True):
            raise Unsupported(f"{path}: add_prefix_space must be off and use_regex on; other settings come later")
        settings = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges")
        if given := [name for name in settings if model.get(name)]:
            raise Unsupported(f"{path}: {', '.join(given)} must be off; other settings come later")
        if framing.get("type") != "RobertaProcessing" and _templates(framing) != ("<s> A </s>", "<s> A </s> </s> B </s>"):
            raise Unsupported(
                f"{path}: does not frame texts as <s> A </s></s> B </s>; only RoBERTa's BPE can be opened, other kinds come later"
            )
        pairs = [_pair(merge) for merge in model["merges"]]
        vocab, added = model["vocab"], data.get("added_tokens") or []
    return _checked(path, vocab, pairs, added, rule)


def _templates(framing: Mapping) -> tuple[str, ...]:
    """How a text and a pair are framed, as pieces with a blank between them; from the section of a TemplateProcessing."""
    return tuple(" ".join(part["id"] for item in framing.get(name, []) for part in item.values()) for name in ("single", "pair"))


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    """Two pieces, written with a blank between them or as a list of two."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _checked(path: str | Path, vocab: Mapping[str, int], merges: Merges, added: Sequence[Entry], rule: Normalization) -> Tokenizer:
    """`_build` of what was read from `path`; specials that `added` does not name are added. Raises UserError."""
    with checks.damaged(path):
        ids = dict(vocab) | {entry["content"]: entry["id"] for entry in added}
        checks.by_id(ids, path)
        if missing := [piece for piece in SPECIALS if piece not in ids]:
            raise Unsupported(f"{path}: lacks {' '.join(missing)}; only RoBERTa's BPE can be opened, other kinds come later")
        if missing := sorted(BYTES - ids.keys()):
            raise UserError(f"{path}: lacks {len(missing)} of the 256 bytes, {missing[0]!r} for one; {AGAIN}")
        for number, (left, right) in enumerate(merges, 1):
            if missing := [piece for piece in (left, right, left + right) if piece not in ids]:
                raise UserError(f"{path}: merge {number} names {missing[0]!r}, which has no id; {AGAIN}")
        named = {entry["content"] for entry in added}
        entries = [{name: entry[name] for name in ("content", "id", *FLAGS)} for entry in added]
        return _build(ids, merges, [*entries, *(_special(piece, ids) for piece in SPECIALS if piece not in named)], rule)


def _library(ids: Mapping[str, int], merges: Merges, rule: Normalization) -> library.Tokenizer:
    out = library.Tokenizer(models.BPE(dict(ids), list(merges)))
    if (written := rule.normalizer(clean=False)) is not None:
        out.normalizer = written
    out.pre_tokenizer, out.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return out


def _build(ids: Mapping[str, int], merges: Merges, added: Sequence[Entry], rule: Normalization) -> Tokenizer:
    """ids: of every piece. added: those that are found whole in a text before it is cut into words; special ones in prompts only."""
    added = sorted(added, key=lambda entry: entry["id"])

    def tool() -> library.Tokenizer:
        out = _library(ids, merges, rule)
        for special, entries in itertools.groupby(added, key=lambda entry: entry["special"]):
            tokens = [library.AddedToken(entry["content"], **{flag: entry[flag] for flag in FLAGS}) for entry in entries]
            (out.add_special_tokens if special else out.add_tokens)(tokens)
        return out

    literal, framed = tool(), tool()
    literal.encode_special_tokens = True
    cls, pad, sep, unk, mask = (ids[piece] for piece in SPECIALS)
    framed.post_processor = processors.RobertaProcessing(("</s>", sep), ("<s>", cls), add_prefix_space=False)
    pieces = sorted(ids, key=ids.__getitem__)
    special = {entry["content"] for entry in added if entry["special"]}
    reserved = tuple(index for index, piece in enumerate(pieces) if piece in special or MADE_UP.fullmatch(piece))
    facts = {"type": "bpe", "pieces": pieces, "merges": merges, "added": added} | ({} if rule == UNCHANGED else rule.facts)
    vocabulary = Vocabulary(len(ids), pad, unk, cls, sep, mask, reserved, fingerprint(facts))
    files = {
        "tokenizer.json": framed.to_str(pretty=True),
        "vocab.json": json.dumps({piece: ids[piece] for piece in pieces}, ensure_ascii=False) + "\n",
        "merges.txt": "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges),
        "tokenizer_config.json": json.dumps(_config(added, rule), indent=2) + "\n",
    }
    return Tokenizer(literal, framed, vocabulary, files, lambda more: _extended(ids, merges, added, rule, more))


def _extended(ids: Mapping[str, int], merges: Merges, added: Sequence[Entry], rule: Normalization, more: Sequence[str]) -> Tokenizer:
    """The vocabulary with `more` after it, as the add_tokens of transformers does it.

    A new piece is found wherever it stands, inside a word too, and before the rest is cut into words and merged. The blank before it
    is not part of it: a blank is a token of its own there, unless the piece starts with one.
    Raises UserError for a piece as the files write it, with their letter for the blank, and for one that they hold so already.
    """
    for piece in more:
        if piece.startswith(BLANK):
            raise UserError(f"{piece!r} is never found in a text: {BLANK} is how the files write a blank; write {' ' + piece[1:]!r}")
        ((written, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(piece)
        if written in ids:
            raise UserError(f"{piece!r} is in the vocabulary already, as {written!r}: leave it out")
    flags = dict.fromkeys(FLAGS, False) | {"normalized": True}
    entries = [{"content": piece, "id": len(ids) + n, **flags} for n, piece in enumerate(more)]
    return _build({**ids, **{entry["content"]: entry["id"] for entry in entries}}, merges, [*added, *entries], rule)


def _config(added: Sequence[Entry], rule: Normalization) -> dict[str, Any]:
    """What transformers reads in tokenizer_config.json. RobertaTokenizer would skip a normalization, so it is named only without one."""
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    decoder = {entry["id"]: {name: entry[name] for name in ("content", *FLAGS)} for entry in added}
    own = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"], **rule.settings}
    settings = {"tokenizer_class": "RobertaTokenizer"} if rule == UNCHANGED else own
    settings |= {"add_prefix_space": False, "clean_up_tokenization_spaces": False}
    return settings | dict(zip(names, SPECIALS, strict=True)) | {"bos_token": "<s>", "eos_token": "</s>", "added_tokens_decoder": decoder}
