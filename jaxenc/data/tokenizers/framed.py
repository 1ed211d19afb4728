"""A tokenizer with the special pieces of another family around its texts: the engine that frames them so, and the files that say so.

Such a folder holds a tokenizer.json with that frame and names the class of transformers that follows it. Its tokenizer_config.json has an
entry FRAME with the frame and with the post-processor that the vocabulary came with: `load` opens the vocabulary as it was, so that its
fingerprint and the way to add pieces stay the same, and frames it again.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from jaxenc.data.frames import FIRST, Frame
from jaxenc.data.tokenizers.checks import AGAIN, damaged
from jaxenc.data.tokenizers.engine import Encoding, Engine
from jaxenc.data.vocabulary import Vocabulary
from jaxenc.files import read_json

JSON, SETTINGS = "tokenizer.json", "tokenizer_config.json"
SECTION = "post_processor"  # of JSON
CLASS, FOLLOWS = "tokenizer_class", "PreTrainedTokenizerFast"  # in SETTINGS, as the next two; the class that follows JSON to the letter
FRAME = "frame"
SAME = "tokenizer_json_sha256"  # of the tokenizer.json that says what the .model beside it says


@dataclasses.dataclass(frozen=True)
class Pieces:
    """See `engine.Encoding`."""

    ids: list[int]
    type_ids: list[int]
    word_ids: list[int | None]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]


def framed(template: Sequence[tuple[int, int]], texts: Sequence[Encoding]) -> Pieces:
    """The encoding of a text, or of two, with special pieces around. template: (id, type) of each part, FIRST and SECOND for the texts."""
    out = Pieces([], [], [], [], [])
    for index, kind in template:
        if index >= 0:
            added: Encoding = Pieces([index], [kind], [None], [(0, 0)], [1])
        else:
            text = texts[FIRST - index]
            added = Pieces(text.ids, [kind] * len(text.ids), text.word_ids, text.offsets, text.special_tokens_mask)
        for field in dataclasses.fields(Pieces):
            getattr(out, field.name).extend(getattr(added, field.name))
    return out


class Reframed:
    """An engine that frames texts by `frame`, and does all else as another."""

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
        return framed(self._templates[pair is not None], [encoding] if pair is None else [encoding, pair])

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


def files(own: Mapping[str, str | bytes], frame: Frame, cls: tuple[str, int], sep: tuple[str, int]) -> dict[str, str | bytes]:
    """`own`, the files of a vocabulary by name, with this frame. cls, sep: (piece, id). Without a tokenizer.json only `load` reads it."""
    config, out = json.loads(own[SETTINGS]), dict(own)
    mark = {"single": frame.single, "pair": frame.pair, "left": frame.left}
    if JSON in own:
        data = json.loads(own[JSON])
        mark["own"] = config[FRAME]["own"] if FRAME in config else data[SECTION]
        out[JSON] = written = json.dumps({**data, SECTION: section(frame, cls, sep)}, indent=2, ensure_ascii=False)
        config |= {SAME: checksum(written)} if SAME in config else {}
        inputs = ["input_ids", *["token_type_ids"] * (frame.types > 1), "attention_mask"]
        config |= {CLASS: FOLLOWS, "padding_side": "left" if frame.left else "right", "model_input_names": inputs}
    config[FRAME] = mark
    return out | {SETTINGS: json.dumps(config, indent=2, ensure_ascii=False) + "\n"}


def untyped(settings: str | bytes) -> dict[str, list[str]]:
    """What keeps transformers from giving a model token types, {} where a tokenizer_config.json with this content does not ask for them.
    GPT-1 would add the embedding of a token for each type (OpenAIGPTModel)."""
    config = json.loads(settings)
    asks = "token_type_ids" in config.get("model_input_names", ["token_type_ids"] * (config.get(CLASS) == "BertTokenizer"))
    return {"model_input_names": ["input_ids", "attention_mask"]} if asks else {}


def checksum(content: str | bytes) -> str:
    """The sha256 of a file, for SAME."""
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def section(frame: Frame, cls: tuple[str, int], sep: tuple[str, int]) -> dict[str, Any]:
    """The post-processor of a tokenizer.json. cls, sep: (piece, id)."""
    names = {"cls": cls[0], "sep": sep[0]}

    def part(name: str, kind: int) -> dict[str, Any]:
        return special(names[name], kind) if name in names else text(name, kind)

    return {
        "type": "TemplateProcessing",
        "single": [part(*one) for one in frame.parts(1)],
        "pair": [part(*one) for one in frame.parts(2)],
        "special_tokens": {piece: {"id": piece, "ids": [index], "tokens": [piece]} for piece, index in sorted((cls, sep))},
    }


def special(piece: str, kind: int) -> dict[str, Any]:
    """A special piece in a post-processor, with its type."""
    return {"SpecialToken": {"id": piece, "type_id": kind}}


def text(name: str, kind: int) -> dict[str, Any]:
    """The text `A` or `B` in a post-processor, with its type."""
    return {"Sequence": {"id": name, "type_id": kind}}


@dataclasses.dataclass(frozen=True)
class Mark:
    """What the entry FRAME says: the frame, and the post-processor of the vocabulary's own tokenizer.json, None where it has none."""

    frame: Frame
    own: Mapping[str, Any] | None


def read(settings: Path) -> Mark | None:
    """What a tokenizer_config.json says of a frame, None where it says nothing. Raises UserError for an entry that is damaged."""
    found = read_json(settings, AGAIN).get(FRAME) if settings.is_file() else None
    if found is None:
        return None
    with damaged(settings):
        return Mark(Frame(found["single"], found["pair"], bool(found["left"])), found.get("own"))
