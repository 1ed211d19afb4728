"""The one interface of every kind of vocabulary."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxenc.data import characters, sentences
from jaxenc.data.frames import Frame
from jaxenc.data.tokenizers import checks, frame_files, model_frame, model_settings, new_pieces, prompts, templates, written_places
from jaxenc.data.tokenizers import separate as separation
from jaxenc.data.tokenizers.engine import Engine
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.data.tokenizers.kind import Kind
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK
from jaxenc.data.tokenizers.word_cache import Encoded, WordCache
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.files import user_errors, write_bytes


class Tokenizer:
    """Owns two engines over one vocabulary: objects of the `tokenizers` library, or of another that has their methods (engine.py).

    The first takes text literally, the second recognises special pieces and frames a text by CLS and SEP. Two objects, because the
    library makes the choice by a switch on the object, which calls on several threads would share.
    """

    def __init__(
        self,
        literal: Engine,
        prompt: Engine,
        vocabulary: Vocabulary,
        files: Mapping[str, str | bytes],
        extend: Callable[[Sequence[str]], Tokenizer],
        kind: Kind = Kind(),
        reframed: bool = False,
    ):
        """files: {name: content} of what `save` writes, tokenizer.json included.

        extend: what this kind of vocabulary does for `extended`, with pieces that are new, once each; it refuses what no text can give.
        reframed: whether texts have another frame than the vocabulary came with; see `framed_as`. The attributes `only_here` and
        `cuts_words_alone` are those of `kind`.
        """
        self._literal, self._prompt, self._files, self._extend, self._kind = literal, prompt, dict(files), extend, kind
        self._added = {index: piece.content for index, piece in prompt.get_added_tokens_decoder().items()}
        separate = separation.never if kind.flat else separation.alone(kind.separate, literal)
        self._cache = WordCache(self.encode_words, separate, kind.by_word)
        self.vocabulary, self.reframed = vocabulary, reframed
        self.only_here, self.cuts_words_alone = kind.only_here, kind.cuts_words_alone

    @property
    def files(self) -> dict[str, bytes]:
        """{name: content} of what `save` writes."""
        return {name: content if isinstance(content, bytes) else content.encode() for name, content in self._files.items()}

    @property
    def definition(self) -> str:
        """The content of its tokenizer.json, '' for a vocabulary that such a file cannot hold."""
        return str(self._files.get(JSON, ""))

    @property
    def rules(self) -> str:
        """Its rules in the form of a tokenizer.json: `definition`, or what that would be with two ids for a piece. Only of vocabularies
        that the `tokenizers` library reads."""
        return self.definition or self._prompt.to_str()

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
        return [(found.ids, found.word_ids, found.offsets) for found in self._literal.encode_batch(texts, add_special_tokens=False)]

    def encode_flat(self, texts: Sequence[str]) -> Encoded:
        """Corpus mode: as `encode_words`, in three flat arrays.

        It is the fastest way for a corpus: the ids of words seen before are cached, in about 100 MB of memory at most (word_cache.py).
        """
        return self._kind.flat(texts) if self._kind.flat else self._cache.encode(texts)

    def sentences(self, line: str) -> list[str]:
        """Corpus mode: the sentences of one line of a text, none of them blank."""
        return [line] * bool(line.strip()) if self._kind.by_line else sentences.split(line)

    def split(self, text: str) -> list[str]:
        """Corpus mode: the words of a text, as the vocabulary's normaliser writes and its word splitter cuts them, known or not.

        Raises UserError as `encode_prompt`.
        """
        written = self.written(text)
        places = [place for _, place in self._literal.pre_tokenizer.pre_tokenize_str(written)]
        return [word for start, end in places if (word := written[start:end].strip())]

    def written(self, text: str) -> str:
        """`text` as the vocabulary's normaliser writes it. Raises UserError as `encode_prompt`."""
        checks.characters(text)
        return self._literal.normalizer.normalize_str(text) if self._literal.normalizer else text

    def written_places(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """`written`, and of each of its characters the offsets in `text` of what it was written for: the first character and the end
        (exclusive). Where several are composed to one these may be those of the first. Raises UserError as `encode_prompt`.
        """
        checks.characters(text)
        return self._kind.places(text) if self._kind.places else written_places.of_characters(self._literal.normalizer, text)

    def characters(self) -> np.ndarray | None:
        """uint16 [vocabulary.ids, 50]: of each id the characters of its word, and of CLS and SEP those of the markers of a sentence; see
        data/characters.py. None for a kind whose pieces are not read by characters."""
        return characters.of_vocabulary(self._kind.words, self.vocabulary.cls, self.vocabulary.sep) if self._kind.words else None

    def encode_prompt(self, text: str) -> list[int]:
        """Prompt mode: the ids of the text with the special pieces in it recognised, framed as the family does it: CLS, text, SEP for most.

        Raises UserError for a text that UTF-8 cannot hold, as Python makes of bytes that are none.
        """
        return self.encode_framed(text)[0]

    def encode_start(self, text: str) -> list[int]:
        """Corpus mode: the ids of a text to continue: CLS where the vocabulary frames rows, then the text, without an end.

        Raises UserError as `encode_prompt`.
        """
        checks.characters(text)
        return [self.vocabulary.cls] * self.vocabulary.frames + self.encode([text])[0]

    def encode_framed(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of `encode_prompt` and the type of each."""
        checks.characters(text)
        encoding = self._prompt.encode(text)
        return encoding.ids, encoding.type_ids

    def encode_split(self, words: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
        """Of a text that is split into words already: the ids, framed as `encode_prompt` frames them, the type of each, and the number of
        its word, -1 for a special piece around the text.

        The words stand with one blank between them and are taken literally. A piece belongs to the word of its last character. A word may
        give no piece: a blank one, or one that the normaliser takes away. Of a vocabulary of words each gives one id, cut no further.
        Raises UserError as `encode_prompt`.
        """
        if not self._kind.words:
            return prompts.of_split(self._literal, self._prompt, words)
        known = [self._literal.token_to_id(self.written(word)) for word in words]
        return prompts.of_ids(self.frame(1), [self.vocabulary.unk if index is None else index for index in known])

    def encode_framed_places(self, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """Of a text, taken literally: the ids, framed as `encode_prompt` frames them, the type of each, and its offsets, (-1, -1) for a
        special piece around the text. Raises UserError as `encode_prompt`."""
        return prompts.with_places(self._literal, self._prompt, text)

    def frame(self, texts: int, fallback: Sequence[str] = ()) -> tuple[tuple[int, int], ...]:
        """How one or two texts are framed: (id, type) of each special piece, in order, and (FIRST, type) and (SECOND, type)
        where the texts stand.

        fallback: for a vocabulary without special pieces around texts, its pieces before, between and after them, such as GPT's `_start_`,
        `_delimiter_` and `_classify_`. Raises UserError for a vocabulary that lacks them.
        """
        return templates.of(self._literal, self._prompt, texts) or templates.by_pieces(self._prompt, texts, fallback)

    @property
    def ends_in_cls(self) -> bool:
        """Whether CLS is after a text; also False for a vocabulary that puts no CLS around texts."""
        return model_frame.ends_in_cls(templates.of(self._literal, self._prompt, 1), self.vocabulary)

    def framed_as(self, frame: Frame) -> Tokenizer:
        """This tokenizer, if its own frame agrees with `frame`, that of a model (`ModelConfig.row_frame`), else a copy that frames texts by
        `frame`, in its files too. Ids, fingerprint and the way to add pieces are the same.

        Two agree with CLS on the same side of a text and no token type above those of `frame`, as RoBERTa's `<s> A </s></s> B </s>` and
        BERT's do. A vocabulary that puts no CLS around texts agrees with any.
        """
        own = [templates.of(self._literal, self._prompt, texts) for texts in (1, 2)]
        return self if model_frame.agrees(*own, self.vocabulary, frame) else self.in_frame(frame)

    def in_frame(self, frame: Frame) -> Tokenizer:
        """A copy of this tokenizer, whose vocabulary has CLS and SEP, that frames texts by `frame`; see model_frame.py."""
        pieces = [(self.token(index), index) for index in (self.vocabulary.cls, self.vocabulary.sep)]
        beyond = "" if self.definition else "its files cannot hold the model's frame of a text: AutoTokenizer puts other pieces around it"
        kind = dataclasses.replace(self._kind, only_here=self.only_here or beyond)
        prompt, files = model_frame.Reframed(self._prompt, frame, self.vocabulary), frame_files.files(self._files, frame, *pieces)
        extend = lambda more: self._extend(more).in_frame(frame)
        return Tokenizer(self._literal, prompt, self.vocabulary, files, extend, kind, reframed=True)

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text of `ids`, special and unknown pieces included.

        Without unknown pieces it is the text as `written` gives it, except for white space: byte-level BPE restores all of it; unigram
        gives one space for any; WordPiece, GPT-1's BPE and word lists put one space between words, also around punctuation and Chinese
        characters.
        """
        return self._prompt.decode([self._kind.twins.get(index, index) for index in ids], skip_special_tokens=False)

    def token(self, index: int) -> str:
        """The piece of one id, '' where it has none. Raises ValueError outside the vocabulary."""
        index = self._kind.twins.get(index, index)
        piece = self._added.get(index) or self._prompt.id_to_token(index)  # the library normalizes added pieces here
        if piece is None and not 0 <= index < self.vocabulary.ids:
            raise ValueError(f"id {index} is outside a vocabulary of {self.vocabulary.ids}")
        return piece or ""

    def readable(self, index: int) -> str:
        """The piece of one id as a person reads it: bytes as characters; marks such as `##` and `Ġ` stay. Raises as `token`."""
        return self._kind.readable(self.token(index))

    def extended(self, pieces: Sequence[str]) -> Tokenizer:
        """A tokenizer with `pieces` after its own: every id stays, and a text that holds a new piece as a word gives its id.

        Raises UserError for no pieces, and for one that is empty, there already, given twice, or that no text could ever give.
        """
        new_pieces.check(pieces, self._kind.spelled, self._prompt.token_to_id)
        return self._extend(pieces)

    def save(self, directory: str | Path, longest: int = 0, typed: bool = True) -> None:
        """Writes the files that `load` and transformers' AutoTokenizer open. Raises UserError when the disk refuses.

        longest: tokens that the model takes, to which transformers cuts texts when it is asked to; 0 where that is not known. typed: False
        for a model without token types: transformers then gives it none.
        """
        folder, settings = Path(directory), model_settings.written(self.files[SETTINGS], longest, typed)
        with user_errors(folder, "choose a folder that can be written"):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in (self.files | {SETTINGS: settings}).items():
                write_bytes(folder / name, content)
