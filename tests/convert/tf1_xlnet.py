"""Checkpoints as zihangdai/xlnet leaves them, written without TensorFlow."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jaxenc.data.tokenizers import Tokenizer
from tests.convert import tf1

STACKED = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")


def google_names(theirs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights of transformers' XLNet by the names of zihangdai/xlnet, with Adam's slots beside each and the step."""
    heads = {"sequence_summary.summary": "sequnece_summary/summary", "logits_proj": "classification_mnli/logit", "lm_loss": "lm_loss"}
    out = {}
    for name, value in theirs.items():
        module, _, leaf = name.rpartition(".")
        if module in heads:
            out[f"model/{heads[module]}/{'kernel' if leaf == 'weight' else leaf}"] = value.T
        elif leaf in STACKED:
            if module.endswith("layer.0.rel_attn"):
                out[f"model/transformer/{leaf}"] = np.stack([theirs[f"transformer.layer.{n}.rel_attn.{leaf}"] for n in range(2)])
        else:
            name = name.replace("word_embedding.weight", "word_embedding/lookup_table").replace("mask_emb", "mask_emb/mask_emb")
            name = re.sub(r"(rel_attn\.[qkvor])$", r"\1.kernel", re.sub(r"layer\.(\d+)", r"layer_\1", name))
            name = name.replace("layer_norm.weight", "LayerNorm.gamma").replace("layer_norm.bias", "LayerNorm.beta")
            out["model/" + name.replace(".weight", ".kernel").replace(".", "/")] = value.T if re.search(r"ff.*weight", name) else value
    slots = {f"{name}/{slot}": np.full_like(value, 7) for name, value in out.items() for slot in ("adam_m", "adam_v", "Adam", "Adam_1")}
    return {**out, **slots, "global_step": np.array(1000, np.int64), "beta1_power": np.array(0.9, np.float32)}


def archive(folder: Path, theirs: Mapping[str, np.ndarray], size: int, spoken: Tokenizer | None = None) -> Path:
    """A folder as the authors' archives unpack: the checkpoint, xlnet_config.json and spiece.model. Gives the prefix."""
    folder.mkdir(exist_ok=True)
    tf1.write(folder / "xlnet_model.ckpt", google_names(theirs))
    width, inner = theirs["transformer.layer.0.ff.layer_1.weight"].shape[::-1]
    sizes = {"d_model": width, "d_inner": inner, "d_head": width // 2, "n_head": 2, "n_layer": 2, "n_token": size}
    (folder / "xlnet_config.json").write_text(json.dumps({**sizes, "ff_activation": "gelu", "untie_r": True}))
    if spoken:
        spoken.save(folder / "whole")
        (folder / "whole" / "spiece.model").rename(folder / "spiece.model")
    return folder / "xlnet_model.ckpt"
