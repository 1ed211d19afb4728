"""The sections of a tokenizer.json that decide the ids of a text, in one form of those that mean the same."""

from collections.abc import Iterator, Mapping
from typing import Any

from jaxenc.data.tokenizers import frame_files
from jaxenc.data.tokenizers.bpe import BYTES


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(field, value in the first, value in the second) of two tokenizer.json, where they differ in a rule."""
    return list(_differences(rules(one), rules(two)))


def rules(data: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a tokenizer.json that decide the ids of a text, each in one form of those that mean the same."""
    held = {name: data["model"][name] for name in ("vocab", "merges") if name in data["model"]}
    written = {**data, "model": {name: value for name, value in data["model"].items() if name not in held}}
    out = {name: _bare(written.get(name)) for name in ("normalizer", "pre_tokenizer", "model", "added_tokens", "post_processor")}
    model, normalizer = out["model"], out["normalizer"] or {}
    model |= held
    if isinstance(held.get("vocab"), list):  # the library reads scores with an error in the last digit
        model["vocab"] = [[piece, float(f"{score:.9g}")] for piece, score in held["vocab"]]
    if model.get("type") == "Unigram" and "normalizers" in normalizer:  # joins white space, which only separates words
        normalizer["normalizers"] = [step for step in normalizer["normalizers"] if step.get("pattern") != {"Regex": " {2,}"}]
    if model.get("type") == "BPE" and model["vocab"].keys() >= BYTES:  # no byte is unknown
        model.pop("unk_token", None), model.pop("fuse_unk", None)
    out["post_processor"] = _template(out["post_processor"])
    return out


def frame(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The section of `rules` that frames texts."""
    return _template(_bare(data.get("post_processor")))


def _template(frame: dict[str, Any] | None) -> dict[str, Any] | None:
    """A post-processor as a TemplateProcessing, None for one that adds nothing."""
    if frame is None or frame.get("type") == "ByteLevel":  # changes offsets alone
        return None
    if frame.get("type") in ("RobertaProcessing", "BertProcessing"):
        second = int(frame["type"] == "BertProcessing")
        (sep, last), (cls, first) = frame["sep"], frame["cls"]
        middle = [] if second else [frame_files.special(sep, 0)]
        single = [frame_files.special(cls, 0), frame_files.text("A", 0), frame_files.special(sep, 0)]
        pair = [*single, *middle, frame_files.text("B", second), frame_files.special(sep, second)]
        pieces = {piece: {"id": piece, "ids": [index], "tokens": [piece]} for piece, index in ((cls, first), (sep, last))}
        return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": pieces}
    return None if frame.get("single") == [frame_files.text("A", 0)] else frame


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if isinstance(value, dict):
        if value.get("type") == "BertNormalizer" and value.get("strip_accents") is None:
            value = {**value, "strip_accents": value.get("lowercase")}  # where it is not given it follows lower-casing
        return {name: _bare(one) for name, one in value.items() if one is not None and one is not False and one != ""}
    return value


def _differences(one: Any, two: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if one == two:
        return
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted({*one, *two}):
            yield from _differences(one.get(key), two.get(key), f"{name}.{key}".removeprefix("."))
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for index, parts in enumerate(zip(one, two, strict=True)):
            yield from _differences(*parts, f"{name}[{index}]")
    else:
        yield name, one, two
