"""Where a family puts CLS and SEP around one text and around two. Families declare it, and every kind of vocabulary follows it."""

import dataclasses
import re

from jaxenc.data.vocabulary import Vocabulary

FIRST, SECOND = -1, -2  # where the texts stand in `Frame.template`


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special pieces around a text, and around a pair of texts; by default CLS is first.

    single, pair: the parts of a row in order: `cls` and `sep`, and the texts `A` and `B`; `:1` after a part is its type, 0 where none is
    given. pads_left: whether texts to classify are padded on the left. fallback: the pieces before, between and after texts to classify
    where the vocabulary has no pieces around texts; see `Tokenizer.frame`. Raises ValueError for other parts.
    """

    single: str = "cls A sep"
    pair: str = "cls A sep B:1 sep:1"
    pads_left: bool = False
    fallback: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for texts, wanted in ((1, ["A"]), (2, ["A", "B"])):
            names = [name for name, _ in self.parts(texts)]
            if [name for name in names if name not in ("cls", "sep")] != wanted:
                raise ValueError(f"{names}: a row has {' and '.join(wanted)} once, in this order, and otherwise cls and sep")

    def parts(self, texts: int) -> tuple[tuple[str, int], ...]:
        """(part, type) of a row of one text or two, in order."""
        split = (part.partition(":") for part in (self.single, self.pair)[texts - 1].split())
        return tuple((name, int(kind or 0)) for name, _, kind in split)

    @property
    def ends_in_cls(self) -> bool:
        """Whether CLS is after the text."""
        names = [name for name, _ in self.parts(1)]
        return "cls" in names[names.index("A") :]

    @property
    def types(self) -> int:
        """How many token types there are."""
        return 1 + max(kind for texts in (1, 2) for _, kind in self.parts(texts))

    def within(self, types: int) -> "Frame":
        """This frame for a model with `types` token types, at least 1: a larger type becomes its largest. RoBERTa of transformers has one
        type, so both texts of a pair are of type 0."""
        narrow = lambda parts: re.sub(r":(\d+)", lambda found: f":{min(int(found[1]), types - 1)}".removesuffix(":0"), parts)
        return dataclasses.replace(self, single=narrow(self.single), pair=narrow(self.pair))

    def template(self, texts: int, vocabulary: Vocabulary) -> tuple[tuple[int, int], ...]:
        """(id, type) of each part of a row of one text or two; FIRST and SECOND stand for the texts."""
        ids = {"cls": vocabulary.cls, "sep": vocabulary.sep, "A": FIRST, "B": SECOND}
        return tuple((ids[name], kind) for name, kind in self.parts(texts))

    def written(self, texts: int, cls: str, sep: str) -> str:
        """The parts of a row with the pieces `cls` and `sep`, as the `tokenizers` library takes them: `$A <sep> <cls>:2`."""
        names = {"cls": cls, "sep": sep, "A": "$A", "B": "$B"}
        return " ".join(f"{names[name]}:{kind}".removesuffix(":0") for name, kind in self.parts(texts))


CLS_FIRST = Frame()
# zihangdai/xlnet classifier_utils.py: CLS has a type of its own, and padding is on the left.
CLS_LAST = Frame("A sep cls:2", "A sep B:1 sep:1 cls:2", pads_left=True)
