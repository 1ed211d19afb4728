"""How a new vocabulary reads a text before pieces are looked up: one rule for every type, which the folder records.

The default, NFC, keeps every letter, mark and joiner of every script, and case. Published vocabularies have rules of their own, in
wordpiece_rules.py and sentencepiece/rules.py.
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
SETTING = "normalize"  # in a tokenizer_config.json: a vocabulary that has it follows this rule
# Removed: control characters other than white space; characters that only control layout (soft hyphen, direction marks, word joiner, byte
# order mark); and U+FFFD, the mark of damaged text. They are rare, so a word with one would be unknown. Joiners (U+200C, U+200D), the zero
# width space and the Mongolian vowel separator carry meaning and stay.
LAYOUT = "[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffd]"


@dataclasses.dataclass(frozen=True)
class Normalization:
    """form: nfc (canonical composition, Unicode standard annex 15), nfkc (also folds compatibility characters: ligatures, full-width
    letters, Arabic presentation forms), none (the text as it is). lowercase: each character alone, by no language's own rule: I becomes
    i, and İ becomes i and a dot. strip_accents: removes nonspacing marks (Mn), and with them vowels and tones of many scripts."""

    form: str = "nfc"
    lowercase: bool = False
    strip_accents: bool = False

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UserError(f"normalize is {self.form!r}", fix=f"choose {', '.join(FORMS)}")

    def normalizer(self, clean: bool) -> normalizers.Normalizer | None:
        """The rule as a normalizer of the tokenizers library, None where it changes nothing. clean: drop LAYOUT, except in form none."""
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
        """What the vocabulary's fingerprint covers."""
        return {SETTING: self.form, "lowercase": self.lowercase, "strip_accents": self.strip_accents}

    @property
    def settings(self) -> dict[str, str | bool]:
        """Its entries in a tokenizer_config.json."""
        return {SETTING: self.form, "do_lower_case": self.lowercase, "strip_accents": self.strip_accents}


UNCHANGED = Normalization("none")  # texts as they are: published byte-level BPE and bilm-tf


def choices() -> list[Normalization]:
    """Every rule."""
    return [Normalization(*values) for values in itertools.product(FORMS, (False, True), (False, True))]


def section(rule: normalizers.Normalizer | None) -> Any:
    """`rule` as a tokenizer.json writes it."""
    return None if rule is None else json.loads(rule.__getstate__())


def of_section(written: Any, clean: bool) -> Normalization | None:
    """The rule in the section `normalizer` of a tokenizer.json; None for a rule of another kind."""
    return next((rule for rule in choices() if section(rule.normalizer(clean)) == written), None)


def of_settings(path: str | Path, config: Mapping[str, Any]) -> Normalization | None:
    """The rule in a tokenizer_config.json with the content `config`; None where it names none. Raises UserError for other values."""
    if SETTING not in config:
        return None
    form, *switches = (config.get(name, default) for name, default in Normalization().settings.items())
    if form not in FORMS or not all(isinstance(switch, bool) for switch in switches):
        names = ", ".join(Normalization().settings)
        raise UserError(
            f"{names} are {form!r}, {switches[0]!r} and {switches[1]!r}", path, f"write {' or '.join(FORMS)}, and true or false"
        )
    return Normalization(form, *switches)
