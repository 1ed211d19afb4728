"""Folders as transformers 5.24 writes them, made with NumPy: names, shapes and layouts written down by hand, values random."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, INNER, LAYERS, VOCAB, ROWS, LABELS, EMBEDDING = 8, 12, 2, 131, 16, 3, 6
CODES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64"}


def _dense(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def encoder(base: str, types: int, embedding: int = WIDTH) -> dict[str, tuple[int, ...]]:
    """{name: shape} of BertModel or RobertaModel without a pooler, and of ElectraModel without a projection."""
    out: dict[str, tuple[int, ...]] = {
        f"{base}embeddings.word_embeddings.weight": (VOCAB, embedding),
        f"{base}embeddings.position_embeddings.weight": (ROWS, embedding),
        f"{base}embeddings.token_type_embeddings.weight": (types, embedding),
        **_norm(f"{base}embeddings.LayerNorm", embedding),
    }
    for n in range(LAYERS):
        layer = f"{base}encoder.layer.{n}"
        for part in ("query", "key", "value"):
            out |= _dense(f"{layer}.attention.self.{part}", WIDTH, WIDTH)
        out |= {**_dense(f"{layer}.attention.output.dense", WIDTH, WIDTH), **_norm(f"{layer}.attention.output.LayerNorm")}
        out |= {**_dense(f"{layer}.intermediate.dense", WIDTH, INNER), **_dense(f"{layer}.output.dense", INNER, WIDTH)}
        out |= _norm(f"{layer}.output.LayerNorm")
    return out


def shapes(architecture: str) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the tensors that a class of transformers saves."""
    if architecture.startswith("Electra"):
        return electra(architecture.removeprefix("Electra"))
    if architecture.startswith("XLNet"):
        return xlnet(architecture.removeprefix("XLNet"))
    family = "roberta" if architecture.startswith("Roberta") else "bert"
    kind = architecture.removeprefix("Roberta").removeprefix("Bert")
    base, types = "" if kind == "Model" else f"{family}.", 1 if family == "roberta" else 2
    pooler = _dense(f"{base}pooler.dense", WIDTH, WIDTH)
    mlm = {
        "bert": {
            "cls.predictions.bias": (VOCAB,),
            **_dense("cls.predictions.transform.dense", WIDTH, WIDTH),
            **_norm("cls.predictions.transform.LayerNorm"),
        },
        "roberta": {"lm_head.bias": (VOCAB,), **_dense("lm_head.dense", WIDTH, WIDTH), **_norm("lm_head.layer_norm")},
    }[family]
    texts = {
        "bert": {**pooler, **_dense("classifier", WIDTH, LABELS)},
        "roberta": {**_dense("classifier.dense", WIDTH, WIDTH), **_dense("classifier.out_proj", WIDTH, LABELS)},
    }[family]
    heads = {
        "Model": pooler,
        "ForMaskedLM": mlm,
        "ForPreTraining": {**pooler, **mlm, **_dense("cls.seq_relationship", WIDTH, 2)},
        "ForNextSentencePrediction": {**pooler, **_dense("cls.seq_relationship", WIDTH, 2)},
        "ForSequenceClassification": texts,
        "ForMultipleChoice": {**pooler, **_dense("classifier", WIDTH, 1)},
        "ForTokenClassification": _dense("classifier", WIDTH, LABELS),
        "ForQuestionAnswering": _dense("qa_outputs", WIDTH, 2),
    }
    return {**encoder(base, types), **heads[kind]}


def electra(kind: str, embedding: int = EMBEDDING) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the tensors that the class Electra + `kind` saves."""
    base, generator, discriminator = "" if kind == "Model" else "electra.", "generator_predictions", "discriminator_predictions"
    heads = {
        "Model": {},
        "ForMaskedLM": {
            **_norm(f"{generator}.LayerNorm", embedding),
            **_dense(f"{generator}.dense", WIDTH, embedding),
            "generator_lm_head.bias": (VOCAB,),
        },
        "ForPreTraining": {**_dense(f"{discriminator}.dense", WIDTH, WIDTH), **_dense(f"{discriminator}.dense_prediction", WIDTH, 1)},
        "ForSequenceClassification": {**_dense("classifier.dense", WIDTH, WIDTH), **_dense("classifier.out_proj", WIDTH, LABELS)},
        "ForTokenClassification": _dense("classifier", WIDTH, LABELS),
        "ForQuestionAnswering": _dense("qa_outputs", WIDTH, 2),
    }
    project = _dense(f"{base}embeddings_project", embedding, WIDTH) if embedding != WIDTH else {}
    return {**encoder(base, 2, embedding), **project, **heads[kind]}


def xlnet(kind: str) -> dict[str, tuple[int, ...]]:
    """{name: shape} of the tensors that the class XLNet + `kind` saves; heads of attention are an axis of their own."""
    base, split = "" if kind == "Model" else "transformer.", (2, WIDTH // 2)
    out: dict[str, tuple[int, ...]] = {f"{base}word_embedding.weight": (VOCAB, WIDTH), f"{base}mask_emb": (1, 1, WIDTH)}
    for n in range(LAYERS):
        attention, inner = f"{base}layer.{n}.rel_attn", f"{base}layer.{n}.ff"
        out |= {f"{attention}.{letter}": (WIDTH, *split) for letter in "qkvor"}
        out |= {f"{attention}.{name}": split for name in ("r_r_bias", "r_s_bias", "r_w_bias")}
        out |= {f"{attention}.seg_embed": (2, *split), **_norm(f"{attention}.layer_norm")}
        out |= {**_dense(f"{inner}.layer_1", WIDTH, INNER), **_dense(f"{inner}.layer_2", INNER, WIDTH), **_norm(f"{inner}.layer_norm")}
    summary = _dense("sequence_summary.summary", WIDTH, WIDTH)
    heads = {
        "Model": {},
        "LMHeadModel": {"lm_loss.bias": (VOCAB,)},
        "ForSequenceClassification": {**summary, **_dense("logits_proj", WIDTH, LABELS)},
        "ForMultipleChoice": {**summary, **_dense("logits_proj", WIDTH, 1)},
        "ForTokenClassification": _dense("classifier", WIDTH, LABELS),
        "ForQuestionAnsweringSimple": _dense("qa_outputs", WIDTH, 2),
        "ForQuestionAnswering": {
            **_dense("start_logits.dense", WIDTH, 1),
            **_dense("end_logits.dense_0", 2 * WIDTH, WIDTH),
            **_norm("end_logits.LayerNorm"),
            **_dense("end_logits.dense_1", WIDTH, 1),
            **_dense("answer_class.dense_0", 2 * WIDTH, WIDTH),
            "answer_class.dense_1.weight": (1, WIDTH),
        },
    }
    return {**out, **heads[kind]}


KINDS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
BERTS = ("BertForPreTraining", "BertForNextSentencePrediction")
ELECTRAS = tuple(f"Electra{kind}" for kind in (*KINDS, "ForPreTraining"))
XLNETS = tuple(f"XLNet{kind}" for kind in ("Model", "LMHeadModel", *KINDS[2:], "ForQuestionAnsweringSimple"))
ARCHITECTURES = (*(family + kind for family in ("Bert", "Roberta") for kind in KINDS), *BERTS)


def tensors(architecture: str, seed: int = 0) -> dict[str, np.ndarray]:
    """{name: random float32 array}, each distinct from every other."""
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes(architecture).items()}


def config(architecture: str) -> dict[str, Any]:
    """config.json as save_pretrained writes it, the fields that matter and some that do not."""
    if architecture.startswith("XLNet"):
        return _xlnet_config(architecture)
    family = next(family for family in ("bert", "roberta", "electra") if architecture.lower().startswith(family))
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2} if family == "roberta" else {"pad_token_id": 0}
    return {
        "architectures": [architecture],
        "attention_probs_dropout_prob": 0.2,
        "classifier_dropout": None,
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": WIDTH,
        "id2label": {"0": "no", "1": "maybe", "2": "yes"},
        "initializer_range": 0.02,
        "intermediate_size": INNER,
        "is_decoder": False,
        "layer_norm_eps": 1e-05 if family == "roberta" else 1e-12,
        "max_position_embeddings": ROWS,
        "model_type": family,
        "num_attention_heads": 2,
        "num_hidden_layers": LAYERS,
        "position_embedding_type": "absolute",
        "type_vocab_size": 1 if family == "roberta" else 2,
        "transformers_version": "5.24.0",
        "vocab_size": VOCAB,
        **special,
        **({"embedding_size": EMBEDDING} if family == "electra" else {}),
    }


def _xlnet_config(architecture: str) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "attn_type": "bi",
        "bi_data": False,
        "bos_token_id": 1,
        "clamp_len": -1,
        "d_head": WIDTH // 2,
        "d_inner": INNER,
        "d_model": WIDTH,
        "dropout": 0.2,
        "dtype": "float32",
        "end_n_top": 5,
        "eos_token_id": 2,
        "ff_activation": "gelu",
        "id2label": {"0": "no", "1": "maybe", "2": "yes"},
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "mem_len": None,
        "model_type": "xlnet",
        "n_head": 2,
        "n_layer": LAYERS,
        "pad_token_id": 5,
        "reuse_len": None,
        "same_length": False,
        "start_n_top": 5,
        "summary_activation": "tanh",
        "summary_last_dropout": 0.2,
        "summary_type": "last",
        "summary_use_proj": True,
        "transformers_version": "5.24.0",
        "untie_r": True,
        "use_mems_eval": True,
        "use_mems_train": False,
        "vocab_size": VOCAB,
    }


def safetensors_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """A safetensors file, written from its specification."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        header[name] = {"dtype": CODES[array.dtype.name], "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
        assert array.nbytes == math.prod(array.shape) * array.dtype.itemsize
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write(folder: Path, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Path:
    """A folder with config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings, indent=2))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(arrays))
    return folder


def read(path: Path) -> dict[str, np.ndarray]:
    """{name: float32 array} of a safetensors file of float32, read from its specification."""
    content = path.read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    header.pop("__metadata__")
    out = {}
    for name, fields in header.items():
        assert fields["dtype"] == "F32"
        begin, end = fields["data_offsets"]
        out[name] = np.frombuffer(content[start + begin : start + end], np.float32).reshape(fields["shape"])
    return out
