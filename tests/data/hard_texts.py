"""Texts in every script of scripts.py that are hard to read: seeded mixtures of its sentences with what tokenizers treat apart."""

import random
import unicodedata
from collections.abc import Sequence

from tests.data.scripts import SENTENCES

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# What stands between words, or inside of them.
PARTS = [
    *("0", "12", "3.5", "1,000", "٣٤", "१२", "²", "½", "Ⅷ", "①"),
    *(".", "...", "?!", "--", "(", "))", "'s", "n't", "_", "$5", "^", "`", "``", "''", "“", "”", "—", "…", "´", "¿", "。"),
    *("、", "#", "##", "@@"),
    *("👨‍👩‍👧", "❤️", "👍🏽", "🏳️‍🌈", "🇮🇸", "1️⃣", "🥱", "☎︎", "☃"),
    *("É", "e\u0301", "ﬁ", "İ", "I\u0307", "ß", "ẞ", "Å", "\u212b", "ñ\u0303", "\u0301", "\u0e38", "o\u0302\u0323", "Ὀδυσσεύς", "ΣΊΣΥΦΟΣ"),
    *("ＡＢｃ", "１２", "！", "ｶﾞ", "カ\u3099", "㍿", "京都", "日本語", "안녕", "\u1112\u1161", "ﷺ", "ﻼ"),
    *("  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028", "\x85", "\x0b", "\x1c"),
    *("\0", "\x01", "\x7f", "\x97", "\u00ad", "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\u2060", "\ufeff", "\ufffd", "\ufffe"),
    *("\ue000", "\U000e0041"),
    *("▁", "Ġ", "Ċ", "</w>", "newton</w>", "##s", "[unused1]", "x" * 120, "ab" * 60, "ก" * 130),
]  # fmt: skip


def mixed(count: int, inserted: Sequence[str] = (), seed: int = 0) -> list[str]:
    """`count` texts, each of one script and all scripts in turn: words of SENTENCES, whole and cut, in any case and Unicode form, with
    PARTS and `inserted` between and inside of them; one in six is a sentence as it stands. The first two are empty and blank."""
    rng, scripts = random.Random(seed), list(SENTENCES.values())
    out = ["", " "]
    while len(out) < count:
        lines = scripts[len(out) % len(scripts)]
        words = [word for line in lines for word in line.split()]
        parts = [_part(rng, words, inserted) for _ in range(rng.randint(1, 14))]
        out.append(rng.choice(lines) if rng.random() < 1 / 6 else "".join(parts))
    return out


def _part(rng: random.Random, words: Sequence[str], inserted: Sequence[str]) -> str:
    word = rng.choice(words)
    changed = rng.choice([word, word, word.upper(), word.title(), word[: rng.randint(1, len(word))]])
    form = unicodedata.normalize(rng.choice(FORMS), changed) if rng.random() < 0.3 else changed
    if inserted and rng.random() < 0.3:
        cut = rng.randint(0, len(form))
        form = rng.choice([rng.choice(inserted), form[:cut] + rng.choice(inserted) + form[cut:]])
    elif rng.random() < 0.4:
        form = rng.choice([rng.choice(PARTS), form + rng.choice(PARTS)])
    return form + rng.choice([" ", " ", " ", ""])
