"""How published SentencePiece vocabularies read a text: the rules of transformers' XLNetTokenizer and AlbertTokenizer.

These are the rules of preprocess_text in zihangdai/xlnet:prepro_utils.py: `` and '' become ", compatibility characters are decomposed and
accents dropped (NFKD), then the model's own table of characters (nmt_nfkc) is applied. One thing differs from the original, as it does in
transformers: what counts as an accent is every Unicode mark (M), not a character with a combining class, so that the scripts of India lose
vowels. One thing differs from transformers, whose XLNet knows no Korean: letters are composed again before the table, as in the
sentencepiece library.
"""

import base64
import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import tokenizers as library
from tokenizers import models, normalizers, pre_tokenizers

from jaxenc.data.tokenizers import normalization
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK


class Rules(Protocol):
    """How a unigram vocabulary reads a text: `SentencePieceRules` for a published one, `UnigramRules` for one made here (unigram_rules.py).

    charsmap: the model's compiled table of characters, b'' for none. normalizer: of a text in a corpus. prompt_normalizer and
    prompt_splitter: of a text that special pieces cut into parts. word_writer: what `normalizer` makes of a word. facts: what the
    vocabulary's fingerprint covers. settings: its entries in a tokenizer_config.json.
    """

    charsmap: bytes
    normalizer: normalizers.Normalizer
    prompt_normalizer: normalizers.Normalizer
    prompt_splitter: pre_tokenizers.PreTokenizer
    word_writer: Callable[[str], str]
    facts: dict[str, Any]
    settings: dict[str, Any]

    def cuts_as(self, splitter: Mapping[str, Any]) -> bool:
        """Whether the section `pre_tokenizer` of a tokenizer.json cuts texts as this rule does."""


@dataclasses.dataclass(frozen=True)
class SentencePieceRules:
    """charsmap: the model's compiled table of characters, b'' for none."""

    lowercase: bool
    strip_accents: bool
    charsmap: bytes

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The rule as a normalizer of the tokenizers library."""
        # `Precompiled` looks up a character at a time, or a cluster of less than six bytes, of which it keeps the first match; the
        # sentencepiece library takes the longest match. So characters are composed before, and again after (half-width kana).
        table = [normalizers.NFC(), normalizers.Precompiled(self.charsmap), normalizers.NFC()] if self.charsmap else []
        return normalizers.Sequence([*_steps(True, self.lowercase, self.strip_accents), *table])

    @property
    def prompt_normalizer(self) -> normalizers.Normalizer:
        """The same rule in prompts."""
        return self.normalizer

    @property
    def prompt_splitter(self) -> pre_tokenizers.PreTokenizer:
        """Marks every word, also one after a special piece."""
        return word_splitter()

    @property
    def word_writer(self) -> Callable[[str], str]:
        """What `normalizer` makes of a word."""
        return self.normalizer.normalize_str

    def cuts_as(self, splitter: Mapping[str, Any]) -> bool:
        """See `Rules.cuts_as`."""
        return is_word_splitter(splitter)

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers."""
        charsmap = base64.b64encode(self.charsmap).decode()
        return {"charsmap": charsmap, "lowercase": self.lowercase, "strip_accents": self.strip_accents}

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return {"do_lower_case": self.lowercase, "keep_accents": not self.strip_accents}


@dataclasses.dataclass(frozen=True)
class Before:
    """What is done to a text before the sentencepiece library reads it.

    quotes: `` and '' become ". lowercase, strip_accents: as in `SentencePieceRules`. blanks: white space that becomes U+0020, the only one
    that the library takes for a blank: that which the model's own table leaves as it is.
    """

    quotes: bool
    lowercase: bool
    strip_accents: bool
    blanks: str

    def write(self, text: str) -> str:
        """What the model reads."""
        text = self._spaced(text)
        if not text.isascii():
            return self._normalizer.normalize_str(text) if self._steps else text
        text = text.replace("``", '"').replace("''", '"') if self.quotes else text
        return text.lower() if self.lowercase else text

    def places(self, text: str, written: str) -> Callable[[int, int], tuple[int, int]]:
        """A function from a place (start, end) in `written`, which `write` made of `text`, to the place in `text`."""
        if written == self._spaced(text):
            return lambda start, end: (start, end)
        characters = [*self._aligner.encode(text).offsets, (len(text), len(text))]

        def place(start: int, end: int) -> tuple[int, int]:
            first = characters[start][0]
            return first, characters[end - 1][1] if end > start else first

        return place

    @functools.cached_property
    def _steps(self) -> list[normalizers.Normalizer]:
        return _steps(self.quotes, self.lowercase, self.strip_accents)

    @functools.cached_property
    def _normalizer(self) -> normalizers.Normalizer:
        return normalizers.Sequence(self._steps)

    @functools.cached_property
    def _aligner(self) -> library.Tokenizer:
        """Gives each character that `write` makes the place of those it is made of."""
        tool = library.Tokenizer(models.WordLevel({"": 0}, ""))
        blanks = [normalizers.Replace(library.Regex(f"[{re.escape(self.blanks)}]"), " ")] if self.blanks else []
        tool.normalizer = normalizers.Sequence([*blanks, *self._steps])
        tool.pre_tokenizer = pre_tokenizers.Split(library.Regex(r"[\s\S]"), "isolated")
        return tool

    def _spaced(self, text: str) -> str:
        if not self.blanks or text.isprintable():
            return text
        return text.translate(dict.fromkeys(map(ord, self.blanks), " "))


def word_splitter() -> pre_tokenizers.PreTokenizer:
    """Ends words at white space, and marks the start of each."""
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always")])


def is_word_splitter(section: Mapping[str, Any]) -> bool:
    """Whether the section `pre_tokenizer` of a tokenizer.json is `word_splitter`, as any version of the library writes it."""
    return [part["type"] for part in section.get("pretokenizers", [])] == ["WhitespaceSplit", "Metaspace"]


def _steps(quotes: bool, lowercase: bool, strip_accents: bool) -> list[normalizers.Normalizer]:
    """What XLNet and ALBERT do before their model's own table of characters."""
    marks = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')] if quotes else []
    accents = [normalizers.NFKD(), normalizers.StripAccents()] if strip_accents else []
    return [*marks, *accents, *([normalizers.Lowercase()] if lowercase else [])]


def of_section(written: Mapping[str, Any]) -> SentencePieceRules | None:
    """The rule in the section `normalizer` of a tokenizer.json, as we or transformers write it; None for a rule of another kind."""
    steps = {_name(step): step for step in written.get("normalizers", [written] if written else [])}
    steps.pop("Replace  {2,}", None)  # joins white space, which only separates words
    charsmap = base64.b64decode(steps.get("Precompiled", {}).get("precompiled_charsmap", ""))
    # The names do not depend on the table's content, which the library would not check: it is left out here.
    names = normalization.section(SentencePieceRules("Lowercase" in steps, "StripAccents" in steps, b"").normalizer)["normalizers"]
    ours = [*map(_name, names), *(["NFC", "Precompiled"] if charsmap else [])]
    if list(steps) not in (ours, [name for name in ours if name != "NFC"]):
        return None
    return SentencePieceRules("Lowercase" in steps, "StripAccents" in steps, charsmap)


def _name(step: Mapping[str, Any]) -> str:
    return " ".join([step["type"], *step.get("pattern", {}).values()])
