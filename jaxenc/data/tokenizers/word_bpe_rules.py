"""How a published vocabulary of GPT-1 reads a text, and how a folder says it. New vocabularies follow `WordPieceRules`."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers, pre_tokenizers

from jaxenc.data.tokenizers import normalization, wordpiece_rules
from jaxenc.data.tokenizers.wordpiece_rules import PublishedRules, WordPieceRules
from jaxenc.errors import Unsupported, UserError

STANDARDIZE = "standardize"  # in a tokenizer_config.json
BERT = PublishedRules(lowercase=True, strip_accents=True)
# (characters, what the text that GPT-1 was trained on has instead): uncurl_quotes of ftfy, then text_standardize
UNIFIED = (("[\u02bc\u2018-\u201b\u00b4]", "'"), ("[\u201c-\u201f]", '"'), ("[\u2013\u2014\u2015]", "-"), ("\u2026", "..."))


@dataclasses.dataclass(frozen=True)
class GptRules:
    """BERT's uncased rule, as transformers reads texts for GPT-1.

    standardize: before it, curly quotes, dashes and the ellipsis become ASCII, as in the text that GPT-1 was trained on; most of them are
    <unk> without it.
    """

    standardize: bool = False

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The normalizer, of the tokenizers library."""
        unified = [normalizers.Replace(Regex(pattern), content) for pattern, content in UNIFIED]
        return normalizers.Sequence([*unified, BERT.normalizer]) if self.standardize else BERT.normalizer

    @property
    def splitter(self) -> pre_tokenizers.PreTokenizer:
        """The word splitter, of the tokenizers library."""
        return BERT.splitter

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers."""
        return {STANDARDIZE: self.standardize}

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return {STANDARDIZE: self.standardize}


Rules = GptRules | WordPieceRules


def settings(rules: Rules) -> dict[str, Any]:
    """The entries of `rules` in a tokenizer_config.json."""
    return rules.settings if isinstance(rules, GptRules) else rules.normalization.settings


def of_settings(path: Path, config: Mapping[str, Any]) -> Rules:
    """The rules in a tokenizer_config.json with the content `config`; those of transformers where it names none. Raises UserError."""
    if (rule := normalization.of_settings(path, config)) is not None:
        return WordPieceRules(rule)
    standardize = config.get(STANDARDIZE, False)
    if not isinstance(standardize, bool):
        raise UserError(f"{STANDARDIZE} is {standardize!r}", path, "write true or false")
    return GptRules(standardize)


def of_json(path: str | Path, normalizer: Mapping[str, Any], splitter: Mapping[str, Any]) -> Rules:
    """The rules in these two sections of a tokenizer.json. Raises Unsupported for others."""
    if splitter.get("type") == "BertPreTokenizer" and normalizer == normalization.section(GptRules(standardize=True).normalizer):
        return GptRules(standardize=True)
    found = wordpiece_rules.of_json(path, normalizer, splitter)
    if isinstance(found, WordPieceRules):
        return found
    if found != BERT:
        raise Unsupported("does not lower-case and split texts as GPT-1 does", path, "only GPT-1's rule can be opened")
    return GptRules()
