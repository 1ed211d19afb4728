"""How WordPiece reads a text: BERT's own rule for published vocabularies, and the rule of new ones."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers, pre_tokenizers

from jaxenc.data.tokenizers import normalization
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

LONGEST_WORD = 100  # the library's max_input_chars_per_word, above which a word is [UNK]; google-research/bert has 200
# Where a text is split before its words are found: around a zero width space, which ends a word in Khmer, Thai or Burmese; and every
# LONGEST_WORD letters or a little less in a longer run of letters, before a mark or a joiner only where more than 20 come together.
LETTER = r"[^\s\p{P}$+<=>^`|~\x{200b}]"
NEAR = LONGEST_WORD - 20
PARTS = (
    rf"\x{{200b}}|(?={LETTER}{{{LONGEST_WORD + 1}}})"
    rf"(?:{LETTER}{{{NEAR},{LONGEST_WORD}}}(?![\p{{M}}\x{{200c}}\x{{200d}}])|{LETTER}{{{LONGEST_WORD}}})"
)


@dataclasses.dataclass(frozen=True)
class PublishedRules:
    """The text normaliser and word splitter of google-research/bert:tokenization.py, as the library has them.

    Control and format characters are removed (zero width joiners too), and a word of more than LONGEST_WORD characters is [UNK].
    split_chinese: every Chinese character is a word; Japanese models leave this out.
    """

    lowercase: bool
    strip_accents: bool
    split_chinese: bool = True

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The normalizer, of the tokenizers library."""
        return normalizers.BertNormalizer(True, self.split_chinese, self.strip_accents, self.lowercase)

    @property
    def splitter(self) -> pre_tokenizers.PreTokenizer:
        """White space ends a word, and every punctuation mark is a word."""
        return pre_tokenizers.BertPreTokenizer()

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers; `split_chinese` only where it is off, so that old fingerprints hold."""
        return {"lowercase": self.lowercase, "strip_accents": self.strip_accents} | ({} if self.split_chinese else {"split_chinese": False})

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.split_chinese,
        }


@dataclasses.dataclass(frozen=True)
class WordPieceRules:
    """The rule of a new vocabulary: `normalization` alone decides which letters, marks and joiners are lost.

    Words end at white space; punctuation, Chinese characters and zero width spaces are words of their own. A word longer than LONGEST_WORD
    is split into several, so that a line without a space is not [UNK].
    """

    normalization: Normalization

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The normalizer, of the tokenizers library."""
        apart = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
        written = self.normalization.normalizer(clean=True)
        return normalizers.Sequence([apart] if written is None else [written, apart])

    @property
    def splitter(self) -> pre_tokenizers.PreTokenizer:
        """The word splitter, of the tokenizers library."""
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PARTS), "isolated"), pre_tokenizers.BertPreTokenizer()])

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers."""
        return self.normalization.facts

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json. The class BertTokenizer of transformers would apply BERT's rule instead."""
        inputs = ["input_ids", "token_type_ids", "attention_mask"]
        return {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs, **self.normalization.settings}


def of_settings(path: Path) -> PublishedRules | WordPieceRules:
    """The rule that a tokenizer_config.json beside a vocab.txt names; BERT's defaults, all of them on, when there is none.

    Raises UserError for one that is damaged, Unsupported for words that are split in another way than BERT's.
    """
    data = read_json(path, AGAIN) if path.is_file() else {}
    if (found := normalization.of_settings(path, data)) is not None:
        return WordPieceRules(found)
    lowercase, strip_accents = data.get("do_lower_case", True), data.get("strip_accents")
    split_chinese = data.get("tokenize_chinese_chars", True)
    if not isinstance(lowercase, bool) or not isinstance(strip_accents, bool | None) or not isinstance(split_chinese, bool):
        given = f"{lowercase!r}, {strip_accents!r} and {split_chinese!r}"
        raise UserError(f"do_lower_case, strip_accents and tokenize_chinese_chars are {given}", path, "write true or false")
    kinds = (data.get("word_tokenizer_type", "basic"), data.get("subword_tokenizer_type", "wordpiece"))
    if kinds != ("basic", "wordpiece"):
        raise Unsupported(f"word_tokenizer_type and subword_tokenizer_type are {kinds}", path, "only basic and wordpiece can be opened")
    return PublishedRules(lowercase, _accents(strip_accents, lowercase), split_chinese)


def of_json(path: str | Path, normalizer: Mapping[str, Any], splitter: Mapping[str, Any]) -> PublishedRules | WordPieceRules:
    """The rule in these two sections of a tokenizer.json. Raises Unsupported for another rule."""
    for rules in map(WordPieceRules, normalization.choices()):
        if normalization.section(rules.normalizer) == normalizer and json.loads(rules.splitter.__getstate__()) == splitter:
            return rules
    kinds = (normalizer.get("type"), splitter.get("type"))
    if kinds != ("BertNormalizer", "BertPreTokenizer"):
        raise Unsupported(f"reads texts by {kinds}", path, "only BERT's WordPiece and ours can be opened")
    if not normalizer.get("clean_text"):
        raise Unsupported("clean_text is off", path, "write true")
    lowercase = normalizer["lowercase"]
    return PublishedRules(lowercase, _accents(normalizer.get("strip_accents"), lowercase), normalizer["handle_chinese_chars"])


def _accents(strip_accents: bool | None, lowercase: bool) -> bool:
    """BERT's rule: where strip_accents is not given it follows lower-casing."""
    return lowercase if strip_accents is None else strip_accents
