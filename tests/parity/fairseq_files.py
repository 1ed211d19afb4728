"""Checkpoints as fairseq wrote them, from a model of transformers: names of fairseq/models/roberta/model.py, in a table of their own."""

import argparse
import json
import re
from pathlib import Path

import torch
import transformers

# (pattern of a name in transformers, its name in fairseq); `BASE` and `TOP` differ from layout to layout.
RENAMED = (
    (r"roberta\.embeddings\.word_embeddings", "BASE.embed_tokens"),
    (r"roberta\.embeddings\.position_embeddings", "BASE.embed_positions"),
    (r"roberta\.embeddings\.LayerNorm", "BASE.NORM"),
    (r"roberta\.encoder\.layer\.(\d+)\.attention\.self\.query", r"BASE.layers.\1.self_attn.q_proj"),
    (r"roberta\.encoder\.layer\.(\d+)\.attention\.self\.key", r"BASE.layers.\1.self_attn.k_proj"),
    (r"roberta\.encoder\.layer\.(\d+)\.attention\.self\.value", r"BASE.layers.\1.self_attn.v_proj"),
    (r"roberta\.encoder\.layer\.(\d+)\.attention\.output\.dense", r"BASE.layers.\1.self_attn.out_proj"),
    (r"roberta\.encoder\.layer\.(\d+)\.attention\.output\.LayerNorm", r"BASE.layers.\1.self_attn_layer_norm"),
    (r"roberta\.encoder\.layer\.(\d+)\.intermediate\.dense", r"BASE.layers.\1.fc1"),
    (r"roberta\.encoder\.layer\.(\d+)\.output\.dense", r"BASE.layers.\1.fc2"),
    (r"roberta\.encoder\.layer\.(\d+)\.output\.LayerNorm", r"BASE.layers.\1.final_layer_norm"),
    (r"lm_head\.decoder\.weight", "TOPlm_head.weight"),
    (r"lm_head\.decoder\.bias", "TOPlm_head.bias"),
    (r"lm_head\.", "TOPlm_head."),
    (r"classifier\.", "classification_heads.sentence_head."),
)
LAYOUTS = {
    "2019": ("decoder.sentence_encoder", "decoder.", "emb_layer_norm"),
    "2020": ("encoder.sentence_encoder", "encoder.", "layernorm_embedding"),
    "new": ("encoder", "encoder.", "layernorm_embedding"),
}


class AverageMeter:
    """Stands for one of fairseq's own classes in a checkpoint."""

    def __init__(self) -> None:
        self.total = 3.5


def write(folder: Path, theirs: transformers.RobertaPreTrainedModel, layout: str, old_file: bool = False) -> Path:
    """model.pt in `folder`, with the settings of its training as the fairseq of that time saved them. old_file: in the format of torch
    before 1.6."""
    config, (base, top, norm) = theirs.config, LAYOUTS[layout]
    weights = {}
    for name, value in theirs.state_dict().items():
        if name.endswith("token_type_embeddings.weight"):
            assert not value.any(), "fairseq has no types"
            continue
        for pattern, new in RENAMED:
            if re.match(pattern, name):
                name = re.sub(f"^{pattern}", new, name)
                break
        weights[name.replace("BASE", base).replace("TOP", top).replace("NORM", norm)] = value
    if layout == "2019":
        weights = packed(weights)
    else:
        weights[f"{base}.version"] = torch.tensor([3.0])
    settings = {
        "arch": "roberta_base",
        "encoder_layers": config.num_hidden_layers,
        "encoder_embed_dim": config.hidden_size,
        "encoder_attention_heads": config.num_attention_heads,
        "activation_fn": "gelu",
        "dropout": 0.1,
        "max_positions": config.max_position_embeddings - 2,
    }
    # Written under its own name, the class could be imported by a reader that runs what it finds.
    meters = {"train_loss": AverageMeter()}
    content = {"model": weights, "optimizer_history": [{"criterion_name": "MaskedLmLoss"}], "extra_state": {"train_meters": meters}}
    if layout == "new":
        content |= {"args": None, "cfg": {"_name": None, "model": argparse.Namespace(**settings), "common": {"fp16": True}}}
    else:
        content["args"] = argparse.Namespace(**settings)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(content, folder / "model.pt", _use_new_zipfile_serialization=not old_file)
    return folder


def packed(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`weights` with query, key and value in one matrix, as torch's MultiheadAttention has them."""
    out = {}
    for name, value in weights.items():
        if ".q_proj." in name:
            parts = [weights[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            out[name.replace(".q_proj.", ".in_proj_")] = torch.cat(parts)
        elif ".k_proj." not in name and ".v_proj." not in name:
            out[name] = value
    return out


def dictionary(folder: Path, pieces: list[str], fillers: int = 3) -> list[str]:
    """dict.txt, encoder.json and vocab.bpe of GPT-2's `pieces`; the lines of dict.txt are in another order than GPT-2's ids. Returns the
    pieces by fairseq's ids."""
    (folder / "encoder.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    order = list(reversed(range(len(pieces))))
    lines = [f"{number} {1000 - place}" for place, number in enumerate(order)] + [f"madeupword{i:04d} 0" for i in range(fillers)]
    (folder / "dict.txt").write_text("\n".join(lines) + "\n")
    return ["<s>", "<pad>", "</s>", "<unk>", *(pieces[i] for i in order), *(f"madeupword{i:04d}" for i in range(fillers)), "<mask>"]
