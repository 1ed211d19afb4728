"""The files of a published word-level BPE, made by the tokenizers library alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers as library
from tokenizers import models, normalizers, pre_tokenizers, trainers


def write(folder: Path, texts: Sequence[str], vocab_size: int) -> Path:
    """vocab.json and merges.txt as GPT-1's were published: <unk> is id 0 and the only special piece, and ends of words are </w>. Returns
    the folder."""
    tool = library.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tool.normalizer, tool.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    options = {"vocab_size": vocab_size, "special_tokens": ["<unk>"], "end_of_word_suffix": "</w>", "show_progress": False}
    tool.train_from_iterator(texts, trainers.BpeTrainer(**options))
    model = json.loads(tool.to_str())["model"]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    return folder
