"""Words that are read and predicted whole (allenai/bilm-tf): a list by falling frequency, of which the first `size` are predicted."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import models, pre_tokenizers, processors, trainers

from jaxenc.config import fingerprint
from jaxenc.data.tokenizers import checks, normalization, separate
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.normalization import UNCHANGED, Normalization
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.data.vocabulary import of_words
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json, read_lines

SPECIALS = ("<S>", "</S>", "<UNK>")
MOST_WORDS = 1 << 21  # of a list, the specials beside them: at 100 bytes each their characters take 210 MB
SIZE = "predicted_words"  # in SETTINGS


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a text becomes words. pretokenized: blanks alone separate them and a line is one sentence; else punctuation stands apart."""

    normalization: Normalization
    pretokenized: bool

    def apply(self, tool: library.Tokenizer) -> None:
        """Gives `tool` the rules as the library has them."""
        if (written := self.normalization.normalizer(clean=False)) is not None:
            tool.normalizer = written
        tool.pre_tokenizer = pre_tokenizers.WhitespaceSplit() if self.pretokenized else pre_tokenizers.BertPreTokenizer()

    @property
    def facts(self) -> dict[str, str | bool]:
        """What the fingerprint covers. Rules older than the form leave it out, so that old fingerprints hold."""
        rule = self.normalization
        own = rule.facts if self.recorded else {"lowercase": rule.lowercase}
        return {**own, "pretokenized": self.pretokenized}

    @property
    def recorded(self) -> bool:
        """Whether SETTINGS names the rule. Rules older than the form are only in tokenizer.json."""
        return self.normalization not in (UNCHANGED, dataclasses.replace(UNCHANGED, lowercase=True))


def train(texts: Iterable[str], vocab_size: int, rule: Normalization = Normalization(), pretokenized: bool = False) -> Tokenizer:
    """<S>, </S>, <UNK> and the words of `texts` by falling frequency, equal ones by the word; MOST_WORDS at most.

    The first vocab_size of them are predicted; the others are read by their characters and predicted as <UNK>. texts: read once and not
    kept; memory is that of the different words. A marker in a text is not a word. rule: how texts are written before they are cut into
    words; no character is left out, since words are read by their bytes.
    Raises UserError when no text holds a word, and for a vocab_size that is too small or too large.
    """
    checks.size(vocab_size, len(SPECIALS), "the specials")
    reading = Reading(rule, pretokenized)
    tool = library.Tokenizer(models.WordLevel({}, unk_token=SPECIALS[2]))
    reading.apply(tool)
    tool.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=MOST_WORDS, min_frequency=1, show_progress=False))
    ids = tool.get_vocab(with_added_tokens=False)
    found = [word for word in sorted(ids, key=ids.__getitem__) if word not in SPECIALS]
    if not found:
        raise UserError("the input holds no text", "tokenizer", "name files with at least one line of text")
    return _build([*SPECIALS, *found], vocab_size, reading)


def is_list(path: Path) -> bool:
    """Whether a vocab.txt is one of words: one of the markers of bilm-tf is among its first lines."""
    with path.open("rb") as file:
        return any(line.strip().decode("utf-8", "replace") in SPECIALS for line in itertools.islice(file, len(SPECIALS)))


def from_vocab(path: Path) -> Tokenizer:
    """The tokenizer of a vocab.txt of bilm-tf: one word a line, blanks around it left out, all of them predicted, for text that is
    tokenised already. Raises UserError naming the line of a word that is empty or repeated, and first lines that are not the specials.
    """
    words = [line.strip() for line in read_lines(path, "name a vocab.txt in UTF-8")]
    _check(words, path)
    return _build(words, len(words), Reading(UNCHANGED, pretokenized=True))


def _check(words: Sequence[str], path: str | Path) -> None:
    if tuple(words[:3]) != SPECIALS:
        raise UserError(f"starts with {' '.join(words[:3])!r}", path, f"start it with {' '.join(SPECIALS)}, in this order")
    seen: dict[str, int] = {}
    for number, word in enumerate(words, 1):
        if not word:
            raise UserError("an empty word", f"{path}:{number}", "remove the line")
        if (first := seen.setdefault(word, number)) != number:
            raise UserError(f"{word!r} is already word {first}", f"{path}:{number}", "remove the line: every word has one id")


def from_json(path: Path, data: Mapping) -> Tokenizer:
    """The tokenizer of a tokenizer.json of ours with the content `data`; the tokenizer_config.json beside it says how many words are
    predicted. Raises UserError for a list that is not sound, Unsupported for rules of reading that are not ours.
    """
    with checks.damaged(path):
        words, reading = checks.by_id(data["model"]["vocab"], path), _reading(path, data)
        _check(words, path)
    settings = path.with_name(SETTINGS)
    size = read_json(settings, AGAIN).get(SIZE)
    if not isinstance(size, int) or not len(SPECIALS) <= size <= len(words):
        raise UserError(f"{SIZE} is {size!r}", settings, f"write how many words are predicted, {len(SPECIALS)} to {len(words)}")
    return _build(words, size, reading)


def _reading(path: Path, data: Mapping) -> Reading:
    kinds = tuple((data.get(part) or {}).get("type", "") for part in ("normalizer", "pre_tokenizer"))
    rule = normalization.of_section(data.get("normalizer"), clean=False)
    if rule is None or kinds[1] not in ("WhitespaceSplit", "BertPreTokenizer"):
        held = " and ".join(filter(None, kinds))
        raise Unsupported(f"reads words by {held}", path, "only lists made by jaxenc can be opened")
    return Reading(rule, kinds[1] == "WhitespaceSplit")


def _build(words: Sequence[str], size: int, reading: Reading) -> Tokenizer:
    size = min(size, len(words))
    # No word holds a blank, so one that starts with it is never found in a text.
    literal = _library([" " * (word in SPECIALS) + word for word in words], reading)
    prompt = _library(words, reading)
    prompt.add_special_tokens([library.AddedToken(word, special=True, normalized=False) for word in SPECIALS])
    prompt.post_processor = processors.TemplateProcessing(
        single="<S> $A </S>", pair="<S> $A </S> <S> $B:1 </S>:1", special_tokens=[("<S>", 0), ("</S>", 1)]
    )
    facts = {"type": "words", "words": list(words), "size": size, **reading.facts}
    vocabulary = dataclasses.replace(of_words(size), fingerprint=fingerprint(facts), words=len(words))
    names = {"bos": "<S>", "eos": "</S>", "cls": "<S>", "sep": "</S>", "unk": "<UNK>"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", SIZE: size, "clean_up_tokenization_spaces": False}
    config |= reading.normalization.settings if reading.recorded else {}
    config |= {f"{name}_token": word for name, word in names.items()}
    files = {JSON: prompt.to_str(pretty=True), SETTINGS: json.dumps(config, indent=2) + "\n"}
    kind = Kind(words=words, by_line=reading.pretokenized, separate=separate.always)
    return Tokenizer(literal, prompt, vocabulary, files, _extended, kind)


def _library(words: Sequence[str], reading: Reading) -> library.Tokenizer:
    out = library.Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token=words[2]))
    reading.apply(out)
    return out


def _extended(more: Sequence[str]) -> Tokenizer:
    raise UserError(f"{more[0]!r} cannot be added: which words are predicted is a matter of their order", fix="make a new list of words")
