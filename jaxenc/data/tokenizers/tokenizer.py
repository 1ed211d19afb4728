"""The one interface of every kind of vocabulary."""

from __future__ import annotations

import bisect
import copy
import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import PreTokenizedString, Regex, pre_tokenizers

from jaxenc.data import characters, sentences
from jaxenc.data.frames import FIRST, Frame
from jaxenc.data.tokenizers import frame_files, templates
from jaxenc.data.tokenizers import separate as separation
from jaxenc.data.tokenizers.engine import Engine
from jaxenc.data.tokenizers.frame_files import SETTINGS
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK
from jaxenc.data.tokenizers.word_cache import Encoded, WordCache
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.errors import UserError
from jaxenc.files import user_errors, write_bytes

SPECIALS_MAP = "special_tokens_map.json"


class Tokenizer:
    """Owns two engines over one vocabulary: objects of the `tokenizers` library, or of another that has their methods (engine.py).

    The first takes text literally, the second recognises special pieces and frames a text by CLS and SEP. Two objects, because the
    library makes the choice by a switch on the object, which calls on several threads would share.
    """

    def __init__(
        self,
        literal: Engine,
        framed: Engine,
        vocabulary: Vocabulary,
        files: Mapping[str, str | bytes],
        extend: Callable[[Sequence[str]], Tokenizer],
        spelled: Callable[[str], str] = str,
        readable: Callable[[str], str] = str,
        words: Sequence[str] = (),
        by_line: bool = False,
        separate: separation.Rule = separation.never,
        by_word: Callable[[Sequence[str]], Encoded] | None = None,
        twins: Mapping[int, int] = {},
        flat: Callable[[Sequence[str]], Encoded] | None = None,
        only_here: str = "",
    ):
        """files: {name: content} of what `save` writes, tokenizer.json included. The attribute `reframed` says whether texts are framed in
        another way than the vocabulary came with; see `framed_as`.

        extend: what this kind of vocabulary does for `extended`, with pieces that are new, once each; it refuses what no text can give.
        spelled: how it writes a piece that a person names. readable: how a person reads a piece.
        words: of a kind whose words are read by their characters, all of them by id.
        by_line: every line of a text is a sentence; else the rule of data/sentences.py says where one ends.
        separate: which words are tokenised by themselves, wherever they are; see separate.py. by_word: the ids of such words, as
        `encode_flat` gives them, if there is a faster way than `encode_words`.
        twins: {id that no text gives: id of the same piece that texts give}, of a piece that the vocabulary holds twice.
        flat: `encode_flat`, of an engine that needs no cache of words. only_here: why transformers may read a text otherwise, '' where it
        gives the same ids.
        """
        self._literal, self._framed, self._files, self._extend = literal, framed, dict(files), extend
        self._spelled, self._readable = spelled, readable
        self._words, self._by_line, self._twins = words, by_line, twins
        self._added = {index: piece.content for index, piece in framed.get_added_tokens_decoder().items()}
        self._cache = WordCache(self.encode_words, separation.never if flat else separation.alone(separate, literal), by_word)
        self._flat = flat or self._cache.encode
        self.vocabulary, self.only_here, self.reframed = vocabulary, only_here, False

    @property
    def files(self) -> dict[str, bytes]:
        """{name: content} of what `save` writes."""
        return {name: content if isinstance(content, bytes) else content.encode() for name, content in self._files.items()}

    @property
    def definition(self) -> str:
        """The content of its tokenizer.json, '' for a vocabulary that such a file cannot hold."""
        return str(self._files.get("tokenizer.json", ""))

    @property
    def rules(self) -> str:
        """Its rules in the form of a tokenizer.json: `definition`, or what that would be with two ids for a piece. Only of vocabularies
        that the `tokenizers` library reads."""
        return self.definition or self._framed.to_str()

    @property
    def cuts_words_alone(self) -> bool:
        """Whether a word gives the same pieces whatever stands before it: so of WordPiece; other kinds mark the space before a word."""
        return bool(self.definition) and json.loads(self.definition)["model"].get("type") == "WordPiece"

    @functools.cached_property
    def cuts_at_blanks(self) -> bool:
        """Whether the ids of a text are those of its parts, where each part but the first starts with a blank.

        Not with some models of SentencePiece: those that keep every blank write a second one before such a part, those that write it after
        a word need the next word, and those that were not trained to end pieces at blanks have pieces of several words.
        """
        whole, first, second = self.encode(["a. A", "a.", " A"])
        return whole == first + second and not any(MARK in self.token(index).strip(MARK) for index in range(self.vocabulary.ids))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Corpus mode: the ids of each text, literally. `[MASK]` in a text is brackets and letters, and nothing is added."""
        return [encoding.ids for encoding in self._literal.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_words(self, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Corpus mode: of each text the ids, as `encode` gives them, and of each id the number of its word in the text.

        A word is what the vocabulary's word splitter cuts before pieces are looked up: its numbers rise from 0, with gaps where a word
        gives no piece. It takes a tenth more time than `encode` (measured): the fast way of the library counts no words.
        """
        return [(encoding.ids, encoding.word_ids) for encoding in self._literal.encode_batch(texts, add_special_tokens=False)]

    def encode_offsets(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Corpus mode: of each text the ids, and of each id its offsets: the first character that it stands for and the end (exclusive)."""
        return [(encoding.ids, encoding.offsets) for encoding in self._literal.encode_batch(texts, add_special_tokens=False)]

    def encode_places(self, texts: Sequence[str]) -> list[tuple[list[int], list[int], list[tuple[int, int]]]]:
        """Corpus mode: of each text the ids, the numbers of their words as in `encode_words`, and their offsets as in `encode_offsets`."""
        return [
            (encoding.ids, encoding.word_ids, encoding.offsets) for encoding in self._literal.encode_batch(texts, add_special_tokens=False)
        ]

    def encode_flat(self, texts: Sequence[str]) -> Encoded:
        """Corpus mode: as `encode_words`, in three flat arrays.

        It is the fastest way for a corpus: the ids of words seen before are cached, in about 100 MB of memory at most (word_cache.py).
        """
        return self._flat(texts)

    def sentences(self, line: str) -> list[str]:
        """Corpus mode: the sentences of one line of a text, none of them blank."""
        return [line] * bool(line.strip()) if self._by_line else sentences.split(line)

    def split(self, text: str) -> list[str]:
        """Corpus mode: the words of a text, as the vocabulary's normaliser writes and its word splitter cuts them, known or not.

        Raises UserError as `encode_prompt`.
        """
        written = self.written(text)
        places = [place for _, place in self._literal.pre_tokenizer.pre_tokenize_str(written)]
        return [word for start, end in places if (word := written[start:end].strip())]

    def written(self, text: str) -> str:
        """`text` as the vocabulary's normaliser writes it. Raises UserError as `encode_prompt`."""
        _check_characters(text)
        return self._literal.normalizer.normalize_str(text) if self._literal.normalizer else text

    def written_places(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """`written`, and of each of its characters the offsets in `text` of what it was written for: the first character and the end
        (exclusive). Where several are composed to one these may be those of the first. Raises UserError as `encode_prompt`.
        """
        _check_characters(text)
        parts = PreTokenizedString(text)
        if self._literal.normalizer:
            parts.normalize(self._literal.normalizer.normalize)
        pre_tokenizers.Split(Regex("(?m:.)"), "isolated").pre_tokenize(parts)  # Oniguruma's m: a dot is any character, \n too
        found = [(piece, place) for piece, place, _ in parts.get_splits("original", "char")]
        return "".join(piece for piece, _ in found), [place for _, place in found]

    def characters(self) -> np.ndarray | None:
        """uint16 [vocabulary.ids, 50]: of each id the characters of its word, and of CLS and SEP those of the markers of a sentence; see
        data/characters.py. None for a kind whose pieces are not read by characters."""
        if not self._words:
            return None
        table = characters.of_words(self._words)
        table[self.vocabulary.cls], table[self.vocabulary.sep] = characters.begin(), characters.end()
        return table

    def encode_prompt(self, text: str) -> list[int]:
        """Prompt mode: the ids of the text with the special pieces in it recognised, framed as the family does it: CLS, text, SEP for most.

        Raises UserError for a text that UTF-8 cannot hold, as Python makes of bytes that are none.
        """
        return self.encode_framed(text)[0]

    def encode_start(self, text: str) -> list[int]:
        """Corpus mode: the ids of a text to continue: CLS where the vocabulary frames rows, then the text, without an end.

        Raises UserError as `encode_prompt`.
        """
        _check_characters(text)
        return [self.vocabulary.cls] * self.vocabulary.frames + self.encode([text])[0]

    def encode_framed(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of `encode_prompt` and the type of each."""
        _check_characters(text)
        encoding = self._framed.encode(text)
        return encoding.ids, encoding.type_ids

    def encode_split(self, words: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
        """Of a text that is split into words already: the ids, framed as `encode_prompt` frames them, the type of each, and the number of
        its word, -1 for a special piece around the text.

        The words stand with one blank between them and are taken literally. A piece belongs to the word of its last character. A word may
        give no piece: a blank one, or one that the normaliser takes away. Of a vocabulary of words each gives one id, cut no further.
        Raises UserError as `encode_prompt`.
        """
        if self._words:
            known = [self._literal.token_to_id(self.written(word)) for word in words]
            ids = [self.vocabulary.unk if index is None else index for index in known]
            bare = templates.Pieces(ids, [0] * len(ids), [*range(len(ids))], [(0, 0)] * len(ids), [0] * len(ids))
            found = templates.fill(self.frame(1), [bare])
            return found.ids, found.type_ids, [-1 if number is None else number for number in found.word_ids]
        there = [word if word.strip() else "" for word in words]
        text = " ".join(filter(None, there))
        _check_characters(text)
        ends = list(itertools.accumulate((len(word) + 1 if word else 0 for word in there), initial=-1))[1:]
        found = self._framed.post_process(self._literal.encode(text, add_special_tokens=False))
        places = zip(found.special_tokens_mask, found.offsets, strict=True)
        return found.ids, found.type_ids, [-1 if special else bisect.bisect_right(ends, max(b - 1, a)) for special, (a, b) in places]

    def encode_framed_places(self, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Of a text, taken literally: the ids, framed as `encode_prompt` frames them, the type of each, and its offsets, (-1, -1) for a
        special piece around the text. Raises UserError as `encode_prompt`."""
        _check_characters(text)
        found = self._framed.post_process(self._literal.encode(text, add_special_tokens=False))
        places = zip(found.special_tokens_mask, found.offsets, strict=True)
        return found.ids, found.type_ids, [(-1, -1) if special else place for special, place in places]

    def frame(self, texts: int, fallback: Sequence[str] = ()) -> tuple[tuple[int, int], ...]:
        """How one or two texts are framed: (id, type) of each special piece, in order, and (FIRST, type) and (SECOND, type)
        where the texts stand.

        fallback: for a vocabulary without special pieces around texts, its pieces before, between and after them, such as GPT's `_start_`,
        `_delimiter_` and `_classify_`. Raises UserError for a vocabulary that lacks them.
        """
        template = self._template(texts)
        return template if any(index >= 0 for index, _ in template) else templates.by_pieces(self._framed, texts, fallback)

    def _template(self, texts: int) -> tuple[tuple[int, int], ...]:
        return templates.of(self._literal, self._framed, texts)

    @property
    def ends_in_cls(self) -> bool:
        """Whether CLS is after a text; also False for a vocabulary that puts no CLS around texts."""
        ids = [index for index, _ in self._template(1)]
        return self.vocabulary.cls in ids and FIRST in ids and ids.index(self.vocabulary.cls) > ids.index(FIRST)

    def framed_as(self, frame: Frame) -> Tokenizer:
        """This tokenizer, if it puts its special pieces around texts as a family does, else a copy that frames texts by `frame`, in its
        files too. Ids, fingerprint and the way to add pieces are the same.

        They agree if CLS is on the same side of a text and no token type is above those of `frame` (`ModelConfig.row_frame`): RoBERTa's
        `<s> A </s></s> B </s>` agrees with BERT's frame. A vocabulary that puts no CLS and SEP around texts agrees with any.
        """
        own = {kind for texts in (1, 2) for _, kind in self._template(texts)}
        unframed = not self.vocabulary.frames or self.vocabulary.cls not in dict(self._template(1))
        if unframed or (self.ends_in_cls == frame.ends_in_cls and max(own) < frame.types):
            return self
        return self.in_frame(frame)

    def in_frame(self, frame: Frame) -> Tokenizer:
        """A copy of this tokenizer, whose vocabulary has CLS and SEP, that frames texts by `frame`; see frame_files.py."""
        out, pieces = copy.copy(self), [(self.token(index), index) for index in (self.vocabulary.cls, self.vocabulary.sep)]
        out._framed = templates.Reframed(self._framed, frame, self.vocabulary)
        out._files = frame_files.files(self._files, frame, *pieces)
        out._extend = lambda more: self._extend(more).in_frame(frame)
        out.reframed = True
        if not self.definition:
            out.only_here = self.only_here or "its files cannot hold the model's frame of a text: AutoTokenizer puts other pieces around it"
        return out

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text of `ids`, special and unknown pieces included.

        Without unknown pieces it is the text as `written` gives it, except for white space: byte-level BPE restores all of it; unigram
        gives one space for any; WordPiece, GPT-1's BPE and word lists put one space between words, also around punctuation and Chinese
        characters.
        """
        return self._framed.decode([self._twins.get(index, index) for index in ids], skip_special_tokens=False)

    def token(self, index: int) -> str:
        """The piece of one id, '' where it has none. Raises ValueError outside the vocabulary."""
        index = self._twins.get(index, index)
        piece = self._added.get(index) or self._framed.id_to_token(index)  # the library normalizes added pieces here
        if piece is None and 0 <= index < self.vocabulary.ids:
            return ""
        if piece is None:
            raise ValueError(f"id {index} is outside a vocabulary of {self.vocabulary.ids}")
        return piece

    def readable(self, index: int) -> str:
        """The piece of one id as a person reads it: bytes as characters; marks such as `##` and `Ġ` stay. Raises as `token`."""
        return self._readable(self.token(index))

    def extended(self, pieces: Sequence[str]) -> Tokenizer:
        """A tokenizer with `pieces` after its own: every id stays, and a text that holds a new piece as a word gives its id.

        Raises UserError for no pieces, and for one that is empty, there already, given twice, or that no text could ever give.
        """
        if not pieces:
            raise UserError("no piece is given", fix="name at least one")
        given: set[str] = set()
        for piece in pieces:
            _check_characters(piece)
            if not piece.strip():
                raise UserError(f"{piece!r} is blank", fix="give pieces with at least one character")
            if self._framed.token_to_id(self._spelled(piece)) is not None:
                raise UserError(f"{piece!r} is in the vocabulary already", fix="leave it out")
            if self._spelled(piece) in given:
                raise UserError(f"{piece!r} is given twice", fix="give every piece once")
            given.add(self._spelled(piece))
        return self._extend(pieces)

    def save(self, directory: str | Path, longest: int = 0, typed: bool = True) -> None:
        """Writes the files that `load` and transformers' AutoTokenizer open. Raises UserError when the disk refuses.

        longest: tokens that the model takes, to which transformers cuts texts when it is asked to; 0 where that is not known. typed: False
        for a model without token types: transformers then gives it none.
        """
        changed = ({"model_max_length": longest} if longest else {}) | ({} if typed else frame_files.untyped(self._files[SETTINGS]))
        folder = Path(directory)
        with user_errors(folder, "choose a folder that can be written"):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                if changed and name == SETTINGS:
                    content = (json.dumps(json.loads(content) | changed, indent=2) + "\n").encode()
                write_bytes(folder / name, content)


def _check_characters(text: str) -> None:
    """Raises UserError for half of a surrogate pair: Python puts it where the bytes of an argument are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{text!a} holds {text[error.start]!a}, which is not a character", fix="give text in UTF-8") from error
