"""The advice about folders that are converted, followed: another source, a command that it prints, or a field of config.json."""

import functools
import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jaxenc.convert import fairseq, hf, runs, tf
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.foreign import Structure
from jaxenc.inference.model import Model
from tests import tiny
from tests.advice import edits
from tests.advice.edits import GONE, Edit, Rule, in_copies, put, removed, rewrite, together
from tests.advice.following import follow, literal
from tests.convert import folders

SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32}
# name -> kind of model, its sizes, its heads, its classes
BASES: Mapping[str, tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "bert": ("bert", {**SIZES, "positions": 24}, ("mlm",), ()),
    "roberta": ("bert", {**SIZES, "positions": 24, "first_position": 1, "types": 1, "activation": "gelu_erf"}, ("mlm",), ()),
    "classifier": ("bert", {**SIZES, "positions": 24}, ("pooler", "classifier"), ("no", "yes")),
    "albert": ("albert", {**SIZES, "positions": 24, "embedding": 8}, ("mlm",), ()),
    "distilbert": ("distilbert", {**SIZES, "positions": 24}, ("mlm",), ()),
    "gpt": ("gpt", {**SIZES, "feed_forward": 64, "positions": 24}, ("next_token",), ()),
    "xlnet": ("xlnet", SIZES, ("lm",), ()),
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A folder of transformers for each of BASES, with random weights and without a tokenizer."""
    root = tmp_path_factory.mktemp("bases")
    for name, (kind, sizes, heads, classes) in BASES.items():
        run = runs.run_for(Structure(MODELS[kind](vocab_size=60, **sizes), heads, classes))
        hf.save(root / name, Model(run, tiny.drawn(run), None), "float32")
    return {path.name: path for path in root.iterdir()}


CONFIG = "config.json"
FIELDS: list[tuple[str, str, Any]] = [
    ("bert", "position_embedding_type", "relative_key"),
    ("bert", "hidden_act", "silu"),
    ("bert", "vocab_size", 70),
    ("bert", "num_hidden_layers", 2**40),
    ("bert", "num_hidden_layers", 3),
    ("bert", "model_type", "t5"),
    ("bert", "hidden_size", GONE),
    ("roberta", "pad_token_id", "x"),
    ("classifier", "id2label", {"0": "a", "1": "a"}),
    ("classifier", "id2label", {"x": "a", "1": "b"}),
    ("classifier", "id2label", 3),
    ("classifier", "problem_type", "guess"),
    ("albert", "inner_group_num", 2),
    ("albert", "position_embedding_type", "relative_key"),
    ("distilbert", "activation", "silu"),
    ("gpt", "afn", "silu"),
    ("gpt", "n_positions", 2),
    ("xlnet", "attn_type", "uni"),
    ("xlnet", "bi_data", True),
    ("xlnet", "clamp_len", "x"),
    ("xlnet", "d_head", 3),
    ("xlnet", "ff_activation", "silu"),
]


def _put(*values: Any) -> Rule:
    return lambda match, error: [put(CONFIG, edits._field(error), value) for value in values]


RULES: dict[str, Rule] = {
    r"^fix it: no array is that large$": _put(1),
    r"^set \w+ to (\d+) there, or use the file that belongs to these weights$": lambda match, error: _put(int(match[1]))(match, error),
    r"^here a row says its direction, set it to (\w+)$": _put(False),
    r"^it takes a whole number, (-1) for none$": _put(-1),
    r"^only d_model / n_head, (\d+), can be converted$": lambda match, error: _put(int(match[1]))(match, error),
    r"^only (\S+) can be converted$": lambda match, error: _put(literal(match[1]))(match, error),
    r"^(?:only )?(.+) can be converted$": lambda match, error: _put(*map(literal, match[1].split(", ")))(match, error),
    r"^give each its own, or remove the field$": _put({"0": "a", "1": "b"}, GONE),
    r"^number the classes 0, 1, 2 \.\.\.$": _put({"0": "a", "1": "b"}),
    r"^remove it$": _put(GONE),
    r"^set vocab_size to (\d+) there": lambda match, error: [put(CONFIG, "vocab_size", int(match[1]))],
    r"^set it to (\w+) or (\w+) or (\w+), or remove it$": lambda match, error: [*_put(*match.groups(), GONE)(match, error)],
}


def again(base: Path) -> dict[str, Rule]:
    """The advice to take the file that belongs to the weights."""
    whole = lambda match, error: [lambda folder: (folder / CONFIG).write_bytes((base / CONFIG).read_bytes()) and None]
    return {
        **RULES,
        r"use the config of these weights|name a folder whose files belong together|fix it$|copy .*again|both are whole numbers": whole,
        r"^name a model of ": whole,
    }


@pytest.mark.parametrize("name, field, value", FIELDS)
def test_of_fields(name: str, field: str, value: Any, bases: Mapping[str, Path], tmp_path: Path) -> None:
    act = in_copies(bases[name], tmp_path, hf.load)
    assert follow(act, (put(CONFIG, field, value),), functools.partial(edits.advised, more=again(bases[name])))


WEIGHTS = "model.safetensors"


def _header(change: Callable[[dict[str, Any]], object]) -> Edit:
    """Changes the header of the weights."""

    def edit(content: bytes) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        change(header)
        written = json.dumps(header).encode()
        return len(written).to_bytes(8, "little") + written + content[8 + size :]

    return rewrite(WEIGHTS, edit)


def _shift(header: dict[str, Any]) -> None:
    first = min((one for name, one in header.items() if name != "__metadata__"), key=lambda one: one["data_offsets"])
    first["data_offsets"][0] += 4


FILES: dict[str, Edit] = {
    "cut": rewrite(WEIGHTS, lambda content: content[:-5]),
    "short": rewrite(WEIGHTS, lambda content: content[:4]),
    "other": rewrite(WEIGHTS, lambda content: b"text" * 99),
    "header": rewrite(WEIGHTS, lambda content: content[:8] + b"x" + content[9:]),
    "places": _header(_shift),
    "lfs": rewrite(WEIGHTS, lambda content: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
    "none": removed(WEIGHTS),
    "index": together(removed(WEIGHTS), rewrite(f"{WEIGHTS}.index.json", lambda content: b"{}")),
    "shard": together(removed(WEIGHTS), put(f"{WEIGHTS}.index.json", "weight_map", {"a": "model-1.safetensors"})),
    "extra": _header(lambda header: header.update(zebra={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})),
    "config": rewrite(CONFIG, lambda content: content[:-9]),
}


@pytest.mark.parametrize("name", FILES)
def test_of_files(name: str, bases: Mapping[str, Path], tmp_path: Path) -> None:
    """What is damaged is copied again, and a tensor too many is left out."""
    left_out: list[str] = []

    def whole(folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(bases["bert"], folder)

    def named(match: re.Match[str], error: UserError) -> list[Edit]:
        left_out.append(match[1].strip("'"))
        return [lambda folder: None]

    rules: dict[str, Rule] = {
        r"again|git lfs pull|^name a folder|copy the config|^name the folder": lambda match, error: [whole],
        r"`--leave-out (\S+)` converts without": named,
    }
    act = in_copies(bases["bert"], tmp_path, lambda folder: hf.load(folder, leave_out=left_out))
    assert follow(act, (FILES[name],), functools.partial(edits.advised, more=rules))


def model(folder: Path) -> Path:
    return folders.write(folder, folders.tensors("BertModel"), folders.config("BertModel"))


# How a folder is not what is named, and what is named.
PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "training run": (lambda root: [model(root / f"checkpoint-{step}") for step in (5, 10)], "hf:."),
    "cache": (lambda root: model(root / "snapshots" / "abc"), "hf:."),
    "inner": (lambda root: model(root / "inner"), "hf:."),
    "file": (model, "hf:model.safetensors"),
    "renamed config": (lambda root: model(root) and (root / CONFIG).rename(root / "bert_config.json"), "hf:."),
    "renamed weights": (lambda root: model(root) and (root / "model.safetensors").rename(root / "best.safetensors"), "hf:."),
    "not tf": (model, "tf:."),
}


def convert(source: str) -> None:
    kind, _, place = source.partition(":")
    {"hf": hf.load, "tf": tf.load, "fairseq": fairseq.load}[kind](Path(place))


def other_source(error: UserError, source: str) -> list[str]:
    """The source that the advice names, or the same one after the command that it prints."""
    if match := re.search(r"use --from (.+)$", error.fix):
        return shlex.split(match[1])[:1]
    if match := re.search(r"^`(cp .+)` gives it the name", error.fix):
        edits.shell(match[1])(Path.cwd())
        return [source]
    return []


@pytest.mark.parametrize("name", PLACES)
def test_of_places(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, source = PLACES[name]
    make(tmp_path)
    assert follow(convert, source, other_source)
