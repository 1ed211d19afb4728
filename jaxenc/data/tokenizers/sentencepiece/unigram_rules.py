"""How unigram vocabularies that are made here read a text. The rules of published ones are in rules.py."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tokenizers import Regex, normalizers, pre_tokenizers

from jaxenc.data.tokenizers import normalization
from jaxenc.data.tokenizers.normalization import Normalization
from jaxenc.data.tokenizers.sentencepiece import rules
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK


@dataclasses.dataclass(frozen=True)
class UnigramRules:
    """How a new vocabulary reads a text: `normalization` alone decides which letters, marks and joiners are lost.

    continues: whether the text after a special piece continues a word where no blank is between them, as in the rows of pretraining. In
    text without blanks between words what follows a mask would else be read as the start of a line. False for a folder whose files say so,
    as XLNet's of transformers do.
    """

    charsmap: ClassVar[bytes] = b""  # only published models have a table of characters
    normalization: Normalization
    continues: bool = True

    @property
    def normalizer(self) -> normalizers.Normalizer:
        """The rule as a normalizer of the tokenizers library."""
        return self.normalization.normalizer(clean=True) or normalizers.Sequence([])

    @property
    def prompt_normalizer(self) -> normalizers.Normalizer:
        """`normalizer` for a text that special pieces cut into parts, before `prompt_splitter`.

        If `continues`, white space becomes one blank, and a part does not end in one. What is removed from the start of a text becomes a
        blank too: the library takes a part for the start of the text only where it begins with the text's first character.
        """
        if not self.continues:
            return self.normalizer
        gone = [r"\p{Mn}"] * self.normalization.strip_accents + [normalization.LAYOUT] * (self.normalization.form != "none")
        removed = [normalizers.Replace(Regex(f"^({'|'.join(gone)})+"), " ")] if gone else []
        # A mark in the text takes the place of the blanks before it, as it does in a word of `rules.word_splitter`.
        joined = ((rf"\s+(?={MARK})", ""), (r"\s+", " "), (" $", ""))
        blanks = [normalizers.Replace(Regex(pattern), to) for pattern, to in joined]
        return normalizers.Sequence([*removed, self.normalizer, *blanks])

    @property
    def prompt_splitter(self) -> pre_tokenizers.PreTokenizer:
        """If `continues`, it marks the first word of a text and every word after a blank; else also each word after a special piece."""
        return pre_tokenizers.Metaspace(MARK, "first") if self.continues else rules.word_splitter()

    @property
    def word_writer(self) -> Callable[[str], str]:
        """What `normalizer` makes of a word: ASCII without controls is in every form of Unicode already, and has no accents."""
        normalize, ascii_case = self.normalizer.normalize_str, str.lower if self.normalization.lowercase else str
        return lambda word: ascii_case(word) if word.isascii() and word.isprintable() else normalize(word)

    def cuts_as(self, splitter: Mapping[str, Any]) -> bool:
        """See `rules.Rules.cuts_as`."""
        return normalization.section(self.prompt_splitter) == splitter if self.continues else rules.is_word_splitter(splitter)

    @property
    def facts(self) -> dict[str, Any]:
        """What the vocabulary's fingerprint covers."""
        return self.normalization.facts

    @property
    def settings(self) -> dict[str, Any]:
        """Its entries in a tokenizer_config.json."""
        return {**self.normalization.settings, "keep_accents": not self.normalization.strip_accents}


def of_section(section: Mapping[str, Any]) -> rules.Rules | None:
    """The rules in the section `normalizer` of a tokenizer.json, of a vocabulary made here or published; None for unknown rules."""
    for rule in normalization.choices():
        if normalization.section((new := UnigramRules(rule)).prompt_normalizer) == section:
            return new
        if normalization.section((old := UnigramRules(rule, continues=False)).normalizer) == section:
            return old
    return rules.of_section(section)
