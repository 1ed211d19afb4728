"""WordPiece as BERT uses it: words are split into the longest pieces of the vocabulary, from the left.

How a text is normalized and split into words is in wordpiece_rules.py.
"""

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, processors

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import added as adding
from jaxenc.data.tokenizers import checks, separate, vocab_txt, wordpiece_rules, wordpiece_train
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.tokenizers.wordpiece_rules import LONGEST_WORD, PublishedRules, WordPieceRules
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.files import read_json

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNUSED = re.compile(r"\[unused\d+\]")
REPEATED, LAST = "repeated_pieces", "last"  # in a tokenizer_config.json: of a piece on several lines of vocab.txt the last gives the id


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization()) -> Tokenizer:
    """A WordPiece vocabulary of at most `vocab_size` pieces that reads texts by `rule`; see `wordpiece_train.trained`."""
    rules = WordPieceRules(rule)
    return _build(wordpiece_train.trained(texts, vocab_size, rules, SPECIALS), rules)


def from_vocab(path: str | Path, rules: PublishedRules | WordPieceRules) -> Tokenizer:
    """The tokenizer of a BERT vocab.txt, whose lines are read as vocab_txt.py says. rules: how it reads texts.

    A warning on stderr names lines that are repeated, blank or padded, except where the tokenizer_config.json beside the file says
    `"repeated_pieces": "last"`, as `Tokenizer.save` writes it. Raises UserError as `vocab_txt.read`, for special pieces that are missing,
    and for a repeated piece under a rule that is not BERT's.
    """
    path = Path(path)
    pieces, notes = vocab_txt.read(path)
    tool = of_lines(path, pieces, rules)
    warn(path, notes)
    return tool


def of_lines(path: Path, pieces: Sequence[str], rules: PublishedRules | WordPieceRules) -> Tokenizer:
    """`from_vocab` of what `vocab_txt.read` found, without the warning."""
    _check(pieces, path)
    if isinstance(rules, WordPieceRules) and vocab_txt.twins(pieces):  # no class of transformers reads such a folder
        raise UserError("holds a piece twice, as no vocabulary that jaxenc made does", path, checks.AGAIN)
    return _build(pieces, rules)


def warn(path: Path, notes: Sequence[str]) -> None:
    """Prints the notes of `vocab_txt.read`, except where the tokenizer_config.json beside the file says `"repeated_pieces": "last"`."""
    settings = path.with_name(SETTINGS)
    if not (settings.is_file() and read_json(settings, checks.AGAIN).get(REPEATED) == LAST):
        for note in notes:
            print(f"warning: {path}: {note}", file=sys.stderr)


def _check(pieces: Sequence[str], path: str | Path) -> None:
    for number, piece in enumerate(pieces, 1):
        if piece != piece.strip(vocab_txt.BLANKS):
            raise UserError(f"{piece!r} has white space around it", f"{path}:{number}", "remove it")
    check_there(path, SPECIALS, pieces)


def check_there(path: str | Path, roles: Iterable[str], pieces: Collection[str]) -> None:
    """Raises UserError for pieces with a role that are not among `pieces`."""
    if missing := [piece for piece in roles if piece not in pieces]:
        fix = f"put each on a line of its own, after the others, as transformers does (lines 1 to {len(pieces)} were read)"
        raise UserError(f"lacks {' '.join(missing)}", path, fix)


def from_json(path: str | Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the content `data`. The caller compares its definition with `data`: of the sections only those
    are read in which vocabularies of this kind differ. Raises UserError for other kinds, and for a vocabulary that is not sound.
    """
    with checks.damaged(path):
        rules = wordpiece_rules.of_json(path, data.get("normalizer") or {}, data.get("pre_tokenizer") or {})
        pieces = checks.by_id(data["model"]["vocab"], path)
        _check(pieces, path)
        return _build(pieces, rules)


def section(pieces: Sequence[str]) -> dict[str, Any]:
    """The section `model` of a tokenizer.json of the pieces that `vocab_txt.read` found."""
    out = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": LONGEST_WORD}
    return out | {"vocab": {piece: index for index, piece in enumerate(pieces)}}


def _build(pieces: Sequence[str], rules: PublishedRules | WordPieceRules) -> Tokenizer:
    ids, twins = {piece: index for index, piece in enumerate(pieces)}, vocab_txt.twins(pieces)

    def model() -> library.Tokenizer:
        out = library.Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
        out.normalizer, out.pre_tokenizer = rules.normalizer, rules.splitter
        out.decoder = decoders.WordPiece(prefix="##", cleanup=True)
        return out

    literal, prompt = model(), model()
    prompt.add_special_tokens([library.AddedToken(piece, special=True, normalized=False) for piece in SPECIALS])
    prompt.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[(s, ids[s]) for s in ("[CLS]", "[SEP]")]
    )
    facts = {"type": "wordpiece", "pieces": list(pieces), **rules.facts}
    pad, unk, cls, sep, mask = (ids[piece] for piece in SPECIALS)
    no_text = lambda piece: not piece or piece in SPECIALS or UNUSED.fullmatch(piece)
    reserved = tuple(index for index, piece in enumerate(pieces) if index in twins or no_text(piece))
    vocabulary = Vocabulary(len(pieces), pad, unk, cls, sep, mask, reserved, fingerprint(facts))
    # Published folders ask transformers to join `don ' t` when it decodes; new ones decode there as here.
    config = {**rules.settings, "clean_up_tokenization_spaces": isinstance(rules, PublishedRules)}
    config |= {f"{name[1:-1].lower()}_token": name for name in SPECIALS} | ({REPEATED: LAST} if twins else {})
    files = {"vocab.txt": "".join(piece + "\n" for piece in pieces), SETTINGS: json.dumps(config, indent=2) + "\n"}
    if not twins:  # a tokenizer.json has each piece once
        files[JSON] = prompt.to_str(pretty=True)
    extend = lambda more: _extended(pieces, rules, more)
    # Words are cut alone with twins too. False keeps the rows of question answering what they are in existing runs of such a vocabulary.
    kind = Kind(separate=separate.always, twins=twins, cuts_words_alone=not twins)
    return Tokenizer(literal, prompt, vocabulary, files, extend, kind)


def _extended(pieces: Sequence[str], rules: PublishedRules | WordPieceRules, more: Sequence[str]) -> Tokenizer:
    """The vocabulary `pieces` with `more` after it; `##more` continues a word. UserError for what the longest match never meets."""
    normalizer, splitter = rules.normalizer, rules.splitter
    for piece in more:
        continues = piece.startswith("##") and piece != "##"
        word = f"a{piece[2:]}" if continues else piece
        words = [part for part, _ in splitter.pre_tokenize_str(normalizer.normalize_str(word))]
        if continues and words:
            words[0] = f"##{words[0][1:]}"
        adding.must_be_a_word(piece, words)
        if len(word) > LONGEST_WORD:
            raise UserError(
                f"{piece[:20]!r}... is never found in a text: a word of more than {LONGEST_WORD} characters is [UNK]", fix="leave it out"
            )
    return _build([*pieces, *more], rules)
