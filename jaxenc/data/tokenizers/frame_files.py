"""The files of a tokenizer that frames texts by the frame of another family than its vocabulary came with.

Such a folder holds a tokenizer.json with that frame and names the class of transformers that follows it. Its tokenizer_config.json has an
entry FRAME with the frame and with the post-processor that the vocabulary came with: `load` opens the vocabulary as it was, so that its
fingerprint and the way to add pieces stay the same, and frames it again.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.frames import Frame
from jaxenc.data.tokenizers.checks import AGAIN, damaged
from jaxenc.data.tokenizers.file_names import JSON, SETTINGS
from jaxenc.files import read_json

SECTION = "post_processor"  # of JSON
CLASS, FOLLOWS = "tokenizer_class", "PreTrainedTokenizerFast"  # in SETTINGS, as the next two; the class that follows JSON to the letter
FRAME = "frame"
SAME = "tokenizer_json_sha256"  # of a tokenizer.json that was written from the .model beside it


def files(own: Mapping[str, str | bytes], frame: Frame, cls: tuple[str, int], sep: tuple[str, int]) -> dict[str, str | bytes]:
    """`own`, the files of a vocabulary by name, with this frame. cls, sep: (piece, id). Without a tokenizer.json only `load` reads it."""
    config, out = json.loads(own[SETTINGS]), dict(own)
    mark = {"single": frame.single, "pair": frame.pair, "left": frame.pads_left}
    if JSON in own:
        data = json.loads(own[JSON])
        mark["own"] = config[FRAME]["own"] if FRAME in config else data[SECTION]
        out[JSON] = written = json.dumps({**data, SECTION: section(frame, cls, sep)}, indent=2, ensure_ascii=False)
        config |= {SAME: checksum(written)} if SAME in config else {}
        inputs = ["input_ids", *["token_type_ids"] * (frame.types > 1), "attention_mask"]
        config |= {CLASS: FOLLOWS, "padding_side": "left" if frame.pads_left else "right", "model_input_names": inputs}
    config[FRAME] = mark
    return out | {SETTINGS: json.dumps(config, indent=2, ensure_ascii=False) + "\n"}


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
