"""Checkpoints as google-research/bert's run_pretraining.py leaves them, written without TensorFlow: its file format and its names."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import google_crc32c
import numpy as np

from tests.parity.cases import golden

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
DTYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "bfloat16": 14, "float16": 19}


def archive(
    folder: Path, architecture: str = "BertForPreTraining", pieces: tuple[str, ...] = (), more: Mapping[str, np.ndarray] = {}
) -> Path:
    """A folder as google's archives unpack, with the golden weights and `more`: the checkpoint, bert_config.json and, with `pieces`,
    vocab.txt. Gives the prefix."""
    write(folder / "bert_model.ckpt", {**google_names(golden(architecture, "weights/")), **more})
    theirs = json.loads(str(golden(architecture)["config"]))
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size")
    config = {name: theirs[name] for name in (*names, "vocab_size")}
    (folder / "bert_config.json").write_text(json.dumps({**config, "hidden_act": "gelu", "pooler_type": "first_token_transform"}))
    if pieces:
        fillers = [f"##{i}" for i in range(config["vocab_size"] - len(SPECIALS) - len(pieces))]
        (folder / "vocab.txt").write_text("\n".join([*SPECIALS, *pieces, *fillers]) + "\n")
    return folder / "bert_model.ckpt"


def albert(folder: Path, architecture: str) -> Path:
    """As `archive`, of google-research/albert."""
    layer = "bert/encoder/transformer/group_0/inner_group_0"
    renamed = {
        r"^albert\.": "bert.",
        r"encoder\.albert_layer_groups\.0\.albert_layers\.0": layer.removeprefix("bert/").replace("/", "."),
        r"full_layer_layer_norm": "LayerNorm_1",
        r"attention\.LayerNorm": "LayerNorm",
        r"attention\.(query|key|value)": r"attention_1.self.\1",
        r"attention\.dense": "attention_1.output.dense",
        r"ffn_output": "ffn_1.intermediate.output.dense",
        r"ffn\.": "ffn_1.intermediate.dense.",
        r"^bert\.pooler\.": "bert.pooler.dense.",
        r"^predictions\.(dense|LayerNorm)": r"cls.predictions.transform.\1",
        r"^predictions\.bias": "cls.predictions.bias",
        r"^sop_classifier\.classifier": "cls.seq_relationship",
    }
    names = {}
    for name, value in golden(architecture, "weights/").items():
        for pattern, new in renamed.items():
            name = re.sub(pattern, new, name)
        names[name] = value
    write(folder / "model.ckpt", google_names(names))
    theirs = json.loads(str(golden(architecture)["config"]))
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size")
    config = {name: theirs[name] for name in (*sizes, "vocab_size", "embedding_size", "num_hidden_groups", "inner_group_num")}
    (folder / "albert_config.json").write_text(json.dumps({**config, "hidden_act": "gelu"}))
    return folder / "model.ckpt"


def google_names(theirs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights of transformers' BERT by google's names, with Adam's slots beside each and the step."""
    out = {}
    heads = {"classifier.weight": "output_weights", "qa_outputs.weight": "cls/squad/output_weights"}
    heads |= {name.replace("weight", "bias"): google.replace("weights", "bias") for name, google in heads.items()}
    for name, value in theirs.items():
        if name in heads:
            out[heads[name]] = value
            continue
        dense = name.endswith(".weight") and not re.search(r"LayerNorm|_embeddings|seq_relationship", name)
        name = re.sub(r"layer\.(\d+)", r"layer_\1", name)
        name = re.sub(r"(cls\.predictions|seq_relationship)\.bias", r"\1.output_bias", name)
        name = name.replace("seq_relationship.weight", "seq_relationship.output_weights").replace("_embeddings.weight", "_embeddings")
        name = re.sub(r"(LayerNorm(?:_1)?)\.(weight|bias)", lambda found: f"{found[1]}.{'gamma' if found[2] == 'weight' else 'beta'}", name)
        name = name.replace(".weight", ".kernel")
        out[name.replace(".", "/")] = value.T if dense else value
    slots = {f"{name}/{slot}": np.full_like(value, 7) for name, value in out.items() for slot in ("adam_m", "adam_v")}
    return {**out, **slots, "global_step": np.array(1000, np.int64)}


def write(prefix: Path, tensors: Mapping[str, np.ndarray], shards: int = 1) -> None:
    """PREFIX.index and its data files; tensor i goes to file i mod shards."""
    data, entries = [bytearray() for _ in range(shards)], []
    for i, name in enumerate(sorted(tensors)):
        value = np.asarray(tensors[name], order="C")
        raw, shard = value.tobytes(), i % shards
        shape = b"".join(message(2, number(1, size)) for size in value.shape)
        crc = _checksum(raw).to_bytes(4, "little")
        entry = number(1, DTYPES[value.dtype.name]) + message(2, shape) + number(3, shard) + number(4, len(data[shard]))
        entries.append((name.encode(), entry + number(5, len(raw)) + b"\x35" + crc))
        data[shard] += raw
    for shard, content in enumerate(data):
        Path(f"{prefix}.data-{shard:05d}-of-{shards:05d}").write_bytes(content)
    Path(f"{prefix}.index").write_bytes(table([(b"", number(1, shards)), *entries]))


def table(records: list[tuple[bytes, bytes]], block: int = 20) -> bytes:
    """A LevelDB table of blocks of at most `block` records."""
    out, handles = bytearray(), []
    for start in range(0, len(records), block):
        part = records[start : start + block]
        handles.append((part[-1][0], _append(out, part)))
    meta, index = _append(out, []), _append(out, handles)
    return bytes(out) + (meta + index).ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little")


def _append(out: bytearray, records: list[tuple[bytes, bytes]]) -> bytes:
    """Adds one block and gives the handle to it."""
    body = b"".join(_entries(records)) + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")
    handle = _varint(len(out)) + _varint(len(body))
    out += body + b"\0" + _checksum(body + b"\0").to_bytes(4, "little")
    return handle


def _checksum(data: bytes) -> int:
    """tensorflow/core/lib/hash/crc32c.h: rotated right by 15 bits, plus a constant, modulo 2^32."""
    value = google_crc32c.value(data)
    return ((value >> 15) + ((value & 0x7FFF) << 17) + 0xA282EAD8) % 2**32


def _entries(records: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    before = b""
    for key, value in records:
        shared = next((i for i, (a, b) in enumerate(zip(before, key, strict=False)) if a != b), min(len(before), len(key)))
        yield _varint(shared) + _varint(len(key) - shared) + _varint(len(value)) + key[shared:] + value
        before = key


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
