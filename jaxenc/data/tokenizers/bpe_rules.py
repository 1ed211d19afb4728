"""Where byte-level BPE cuts a text into words: GPT-2's pattern for published vocabularies, and one that keeps marks for new ones."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers, pre_tokenizers

from jaxenc.data.tokenizers import normalization
from jaxenc.data.tokenizers.normalization import UNCHANGED, Normalization
from jaxenc.errors import Unsupported, UserError

SETTING = "word_pattern"  # in a tokenizer_config.json
GPT2, MARKS = "gpt2", "marks"
# GPT-2's pattern (openai/gpt-2:src/encoder.py), in which a letter also takes the marks and joiners after it: those of the scripts of India,
# of Tibetan, Burmese, Khmer and Thai are vowels and tones, and end a word in the original
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}[\p{L}\p{M}\x{200c}\x{200d}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@dataclasses.dataclass(frozen=True)
class BytesRules:
    """How a vocabulary of bytes reads a text: the normalization, and the pattern of its words, GPT2 or MARKS."""

    normalization: Normalization
    pattern: str

    @property
    def normalizer(self) -> normalizers.Normalizer | None:
        """The normalizer, of the tokenizers library; None where texts stay as they are."""
        return self.normalization.normalizer(clean=False)

    @property
    def splitter(self) -> pre_tokenizers.PreTokenizer:
        """The word splitter, of the tokenizers library: it also writes bytes as letters."""
        if self.pattern == GPT2:
            return pre_tokenizers.ByteLevel(add_prefix_space=False)
        words = pre_tokenizers.Split(Regex(PATTERN), "isolated")
        return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers: nothing for PUBLISHED, and no pattern for GPT2, so that old fingerprints hold."""
        return {} if self == PUBLISHED else self.normalization.facts | self._named

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return self.normalization.settings | self._named

    @property
    def _named(self) -> dict[str, str]:
        return {} if self.pattern == GPT2 else {SETTING: self.pattern}


PUBLISHED = BytesRules(UNCHANGED, GPT2)


def of_json(path: str | Path, normalizer: Any, splitter: Mapping[str, Any]) -> BytesRules:
    """The rules in these two sections of a tokenizer.json. Raises Unsupported for others."""
    rule = normalization.of_section(normalizer, clean=False)
    if rule is not None and splitter == json.loads(BytesRules(rule, MARKS).splitter.__getstate__()):
        return BytesRules(rule, MARKS)
    if splitter.get("type") != "ByteLevel" or rule is None:
        raise Unsupported("holds a BPE that is not byte-level", path, "only RoBERTa's and ours can be opened")
    if splitter.get("add_prefix_space") or not splitter.get("use_regex", True):
        raise Unsupported("add_prefix_space must be off and use_regex on", path, "write false and true")
    return BytesRules(rule, GPT2)


def of_settings(path: Path, config: Mapping[str, Any]) -> BytesRules:
    """The rules in a tokenizer_config.json with the content `config`, PUBLISHED where it names none. Raises UserError."""
    if (pattern := config.get(SETTING, GPT2)) not in (GPT2, MARKS):
        raise UserError(f"{SETTING} is {pattern!r}", path, f"write {GPT2} or {MARKS}")
    return BytesRules(normalization.of_settings(path, config) or UNCHANGED, pattern)
