"""How a new vocabulary reads a text before pieces are looked up: one rule for every type, which the folder records.

The default, NFC, keeps every letter, mark and joiner of every script, and case. Published vocabularies have rules of their own, in
wordpiece_rules.py and xlnet_rules.py.
"""

import dataclasses
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers

from jaxenc.errors import UserError

FORMS = ("nfc", "nfkc", "none")
SETTING = "normalize"  # of a tokenizer_config.json: its presence says that a vocabulary reads by this rule
# Control characters that are no white space, and characters that only direct the layout: soft hyphen, direction marks, word joiner, byte
# order mark; and U+FFFD, which stands for damage. A vocabulary of characters would not know the rare ones, nor a word that holds one.
# Joiners (U+200C, U+200D), the zero width space and the Mongolian vowel separator carry meaning: they stay.
LAYOUT = "[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffd]"


@dataclasses.dataclass(frozen=True)
class Normalization:
    """form: nfc (canonical composition, Unicode standard annex 15), nfkc (also folds compatibility characters: ligatures, full-width
    letters, Arabic presentation forms), none (the text as it is). lowercase: of every character alone, in no language's own way: I becomes
    i, and İ becomes i and a dot. strip_accents: nonspacing marks (Mn) go, and with them vowels and tones of many scripts."""

    form: str = "nfc"
    lowercase: bool = False
    strip_accents: bool = False

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UserError(f"normalize is {self.form!r}: choose {', '.join(FORMS)}")

    def library(self, clean: bool) -> normalizers.Normalizer | None:
        """The rule as the library has it, None where it changes nothing. clean: LAYOUT goes, unless the form is none."""
        composed = [] if self.form == "none" else [normalizers.NFKC() if self.form == "nfkc" else normalizers.NFC()]
        steps = [normalizers.Replace(Regex(LAYOUT), "")] if clean and composed else []
        steps += composed
        if self.strip_accents:
            steps += [normalizers.NFD(), normalizers.Replace(Regex(r"\p{Mn}"), ""), *(composed or [normalizers.NFC()])]
        if self.lowercase:
            steps += [normalizers.Lowercase(), *composed]
        return normalizers.Sequence(steps) if len(steps) > 1 else steps[0] if steps else None

    @property
    def facts(self) -> dict[str, str | bool]:
        """What a fingerprint is made of."""
        return {SETTING: self.form, "lowercase": self.lowercase, "strip_accents": self.strip_accents}

    @property
    def settings(self) -> dict[str, str | bool]:
        """What a tokenizer_config.json says of it."""
        return {SETTING: self.form, "do_lower_case": self.lowercase, "strip_accents": self.strip_accents}


def choices() -> list[Normalization]:
    """All rules there are."""
    return [Normalization(*values) for values in itertools.product(FORMS, (False, True), (False, True))]


def section(rule: normalizers.Normalizer | None) -> Any:
    """`rule` as a tokenizer.json writes it."""
    return None if rule is None else json.loads(rule.__getstate__())


def of_section(written: Any, clean: bool) -> Normalization | None:
    """The rule in the section `normalizer` of a tokenizer.json; None for a rule of another kind."""
    return next((rule for rule in choices() if section(rule.library(clean)) == written), None)


def of_settings(path: str | Path, config: Mapping[str, Any]) -> Normalization | None:
    """The rule in a tokenizer_config.json with the content `config`; None where it names none. Raises UserError for other values."""
    if SETTING not in config:
        return None
    form, *switches = (config.get(name, default) for name, default in Normalization().settings.items())
    if form not in FORMS or not all(isinstance(switch, bool) for switch in switches):
        names = ", ".join(Normalization().settings)
        raise UserError(f"{path}: {names} are {form!r}, {switches[0]!r} and {switches[1]!r}; write {' or '.join(FORMS)}, and true or false")
    return Normalization(form, *switches)
