"""Byte-level BPE as GPT-2 and RoBERTa use it: UTF-8 bytes as letters, words with the blank before them, merges by rank.

Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.2; the layout of the vocabulary is that of
fairseq's roberta.base. No text is changed and none is unknown: decoding gives back every text exactly.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from jaxenc.config import fingerprint
from jaxenc.data.files import read_json, user_errors
from jaxenc.data.tokenizers.tokenizer import LARGEST, Tokenizer
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # beginning and CLS, padding, end and SEP, unknown, mask
BYTES = frozenset(pre_tokenizers.ByteLevel.alphabet())
LONGEST = 4096  # characters of a text that are trained on at once; training takes the square of the length of a word
MADE_UP = re.compile(r"madeupword\d+")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

Merges = Sequence[tuple[str, str]]


def train(texts: Iterable[str], vocab_size: int, min_frequency: int = 2) -> Tokenizer:
    """A vocabulary of at most `vocab_size` pieces: <s> <pad> </s> <unk>, the 256 bytes, merges, <mask>. The same for the same texts.

    texts: read once and not kept; memory is that of the different words. A text longer than LONGEST characters is cut before a blank
    where there is one, which changes nothing, and inside a word that is longer itself. min_frequency: a pair of pieces seen less
    often is not merged. Raises UserError when no text holds a visible character, and for a vocab_size that is too small or too large.
    """
    smallest = len(SPECIALS) + len(BYTES)
    if vocab_size < smallest:
        raise UserError(f"tokenizer: --vocab-size {vocab_size} is too small; the specials and bytes alone take {smallest} pieces")
    if vocab_size > LARGEST:
        raise UserError(f"tokenizer: --vocab-size {vocab_size} is too large; the most is {LARGEST}")
    parts = _parts(texts)
    first = next(parts, None)
    if first is None:
        raise UserError("tokenizer: the input holds no text; name files with at least one line of text")
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=min_frequency,
        special_tokens=list(SPECIALS[:-1]),
        initial_alphabet=sorted(BYTES),
        show_progress=False,
    )
    trained = _library({}, [])
    trained.train_from_iterator(itertools.chain([first], parts), trainer)
    model = json.loads(trained.to_str())["model"]
    return _build(model["vocab"] | {SPECIALS[-1]: len(model["vocab"])}, [tuple(merge) for merge in model["merges"]], _specials())


def _parts(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        start = 0
        while len(text) - start > LONGEST:
            blank = text.rfind(" ", start + 1, start + LONGEST)
            end = blank if blank > 0 else start + LONGEST
            yield text[start:end]
            start = end
        if text[start:].strip():
            yield text[start:]


def from_files(folder: str | Path) -> Tokenizer:
    """The tokenizer of GPT-2's two files: vocab.json {piece: id}, merges.txt with two pieces a line behind a line of its version.

    A tokenizer_config.json beside them, as transformers writes it, names the added pieces; without one there are the specials alone.
    Raises UserError for files that are damaged, do not fit together, or lack RoBERTa's special pieces or a byte.
    """
    vocab, merges, settings = (Path(folder) / name for name in ("vocab.json", "merges.txt", "tokenizer_config.json"))
    ids, config = read_json(vocab, _AGAIN), read_json(settings, _AGAIN) if settings.is_file() else {}
    with user_errors(merges, _AGAIN):
        content = merges.read_bytes()
    if config.get("add_prefix_space"):
        raise UserError(f"{settings}: add_prefix_space must be off; other settings come later")
    with _damaged(merges):
        lines = content.decode("utf-8").split("\n")
        pairs = [_pair(line.removesuffix("\r")) for line in lines if line.strip() and not line.startswith("#version")]
    with _damaged(settings):
        entries = [entry | {"id": int(index)} for index, entry in (config.get("added_tokens_decoder") or {}).items()]
        return _checked(vocab, ids, pairs, entries or [entry | {"id": ids.get(entry["content"])} for entry in _SPECIALS])


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    """Two pieces, written with a blank between them or as a list of two."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`, ours or one that transformers wrote for a RoBERTa.

    Raises UserError for settings that are not RoBERTa's, and for a vocabulary that is not sound.
    """
    with _damaged(path):
        model = data["model"]
        _check_settings(path, data, model, data.get("pre_tokenizer") or {})
        return _checked(path, model["vocab"], [_pair(merge) for merge in model["merges"]], data.get("added_tokens") or [])


def _check_settings(path: str | Path, data: Mapping, model: Mapping, splitter: Mapping) -> None:
    framing = (data.get("post_processor") or {}).get("type")
    if splitter.get("type") != "ByteLevel" or data.get("normalizer"):
        raise UserError(f"{path}: holds a BPE that is not byte-level; only RoBERTa's can be opened, other kinds come later")
    if splitter.get("add_prefix_space") or not splitter.get("use_regex", True):
        raise UserError(f"{path}: add_prefix_space must be off and use_regex on; other settings come later")
    settings = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges", "byte_fallback")
    if given := [name for name in settings if model.get(name)]:
        raise UserError(f"{path}: {', '.join(given)} must be off, as in RoBERTa; other settings come later")
    if framing not in ("RobertaProcessing", "TemplateProcessing"):
        raise UserError(f"{path}: frames a text by {framing}, and RoBERTa's <s> A </s> is needed; other kinds come later")


def _checked(path: str | Path, ids: dict[str, int], merges: Merges, added: Sequence[library.AddedToken]) -> Tokenizer:
    """`_build` for what was read from `path`. Raises UserError."""
    if sorted(ids.values(), key=repr) != sorted(range(len(ids)), key=repr):
        raise UserError(f"{path}: ids are not 0 to {len(ids) - 1}, each once; make the tokenizer again")
    if missing := [piece for piece in SPECIALS if piece not in ids]:
        raise UserError(f"{path}: lacks {' '.join(missing)}; RoBERTa's special pieces are needed")
    if missing := sorted(BYTES - ids.keys()):
        raise UserError(f"{path}: lacks {len(missing)} of the 256 bytes ({' '.join(missing[:3])} ...); make the tokenizer again")
    for number, (left, right) in enumerate(merges, 1):
        if missing := [piece for piece in (left, right, left + right) if piece not in ids]:
            raise UserError(f"{path}: merge {number} names {missing[0]!r}, which has no id; make the tokenizer again")
    return _build(ids, merges, added)


def _specials() -> list[library.AddedToken]:
    """<mask> takes the blank before it, as in fairseq and transformers, for a blank belongs to the word that it stands for."""
    return [library.AddedToken(piece, special=True, normalized=False, lstrip=piece == SPECIALS[-1]) for piece in SPECIALS]


def _library(ids: dict[str, int], merges: Merges) -> library.Tokenizer:
    out = library.Tokenizer(models.BPE(ids, list(merges)))
    out.pre_tokenizer, out.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return out


def _build(ids: dict[str, int], merges: Merges, added: Sequence[library.AddedToken]) -> Tokenizer:
    """ids: every piece, the added ones too. added: pieces found whole in a text, before it is cut into words; in the order of their ids."""

    def tool() -> library.Tokenizer:
        out = _library(ids, merges)
        for special, tokens in itertools.groupby(added, key=lambda token: token.special):
            (out.add_special_tokens if special else out.add_tokens)(list(tokens))
        return out

    literal, framed = tool(), tool()
    literal.encode_special_tokens = True
    cls, pad, sep, unk, mask = (ids[piece] for piece in SPECIALS)
    framed.post_processor = processors.RobertaProcessing(("</s>", sep), ("<s>", cls), add_prefix_space=False)
    pieces = sorted(ids, key=ids.__getitem__)
    entries = {ids[token.content]: {"content": token.content} | {flag: getattr(token, flag) for flag in _FLAGS} for token in added}
    special = {token.content for token in added if token.special} | set(SPECIALS)
    reserved = tuple(index for index, piece in enumerate(pieces) if piece in special or MADE_UP.fullmatch(piece))
    facts = {"type": "bpe", "pieces": pieces, "merges": merges, "added": list(entries.values())}
    config = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False, "added_tokens_decoder": entries}
    config |= {f"{name}_token": piece for name, piece in zip(("cls", "pad", "sep", "unk", "mask"), SPECIALS, strict=True)}
    config |= {"bos_token": "<s>", "eos_token": "</s>", "clean_up_tokenization_spaces": False}
    files = {
        "tokenizer.json": framed.to_str(pretty=True),
        "vocab.json": json.dumps({piece: ids[piece] for piece in pieces}, ensure_ascii=False) + "\n",
        "merges.txt": "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges),
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
    }
    return Tokenizer(literal, framed, Vocabulary(len(ids), pad, unk, cls, sep, mask, reserved, fingerprint(facts)), files)
