"""Frames texts as a model does, where its vocabulary came with another frame. frame_files.py writes such a vocabulary."""

from collections.abc import Mapping, Sequence

from tokenizers import AddedToken

from jaxenc.data.frames import FIRST, Frame
from jaxenc.data.tokenizers.engine import Encoding, Engine
from jaxenc.data.tokenizers.templates import Template, fill
from jaxenc.data.vocabulary import Vocabulary


def ends_in_cls(single: Template, vocabulary: Vocabulary) -> bool:
    """Whether CLS is after the text in the template of one text; also False for a template without CLS."""
    ids = [index for index, _ in single]
    return vocabulary.cls in ids and FIRST in ids and ids.index(vocabulary.cls) > ids.index(FIRST)


def agrees(single: Template, pair: Template, vocabulary: Vocabulary, frame: Frame) -> bool:
    """Whether the templates of a vocabulary put CLS on the side of a text where `frame` does, without a token type above those of `frame`.
    Templates without CLS agree with any frame."""
    if not vocabulary.frames or vocabulary.cls not in dict(single):
        return True
    types = {kind for _, kind in (*single, *pair)}
    return ends_in_cls(single, vocabulary) == frame.ends_in_cls and max(types) < frame.types


class Reframed:
    """An engine with another frame around texts; everything else is as `engine` does it."""

    def __init__(self, engine: Engine, frame: Frame, vocabulary: Vocabulary):
        self._engine, self._templates = engine, [frame.template(texts, vocabulary) for texts in (1, 2)]
        self.normalizer, self.pre_tokenizer = engine.normalizer, engine.pre_tokenizer

    def encode(self, sequence: str, add_special_tokens: bool = True) -> Encoding:
        """See `Engine.encode`."""
        bare = self._engine.encode(sequence, add_special_tokens=False)
        return self.post_process(bare) if add_special_tokens else bare

    def encode_batch(self, input: Sequence[str], add_special_tokens: bool = True) -> list[Encoding]:
        """`encode` of each text."""
        return [self.encode(sequence, add_special_tokens) for sequence in input]

    encode_batch_fast = encode_batch

    def post_process(self, encoding: Encoding, pair: Encoding | None = None) -> Encoding:
        """See `Engine.post_process`."""
        return fill(self._templates[pair is not None], [encoding] if pair is None else [encoding, pair])

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """See `Engine.decode`."""
        return self._engine.decode(ids, skip_special_tokens=skip_special_tokens)

    def get_added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """See `Engine.get_added_tokens_decoder`."""
        return self._engine.get_added_tokens_decoder()

    def id_to_token(self, index: int) -> str | None:
        """See `Engine.id_to_token`."""
        return self._engine.id_to_token(index)

    def token_to_id(self, piece: str) -> int | None:
        """See `Engine.token_to_id`."""
        return self._engine.token_to_id(piece)
