"""A model folder of transformers, in and out."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from jaxenc import tree
from jaxenc.convert import bert, bert_config, key_map, shards, weights
from jaxenc.convert.bert import Layout
from jaxenc.convert.weights import Tensor
from jaxenc.data import tokenizers
from jaxenc.data.files import made
from jaxenc.data.tokenizers import Tokenizer
from jaxenc.errors import UserError
from jaxenc.models.bert import BertConfig
from jaxenc.objectives.heads import NAMES
from jaxenc.pretrained import objective_of
from jaxenc.run import Run
from jaxenc.train.state import parameters
from jaxenc.tree import Tree

# Any of them in a folder means that it has a tokenizer, of a kind that we open or not.
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")
WITHOUT = "`--tokenizer none` converts without it"
EXPORTED = ("float32", "float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Imported:
    """What `pretrained.save` takes. tokenizer: None where there is none."""

    run: Run
    params: Tree
    tokenizer: Tokenizer | None


def load(folder: Path, tokenizer: str = "") -> Imported:
    """The model in a folder that transformers' save_pretrained wrote, in float32.

    tokenizer: another folder to take it from, 'none' for no tokenizer, '' for the folder's own, or none where it has no such files.
    Raises UserError, one line that names the file, the tensor or the field, for what cannot be converted.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: name one that transformers wrote; a model of the hub is downloaded first")
    where = folder / "config.json"
    data = weights.read_json(where)
    family = bert_config.family_of(data, where)
    tensors = shards.open_folder(folder)
    layout = bert.layout_of(family, tensors)
    heads = bert.heads_of(tensors, layout, bert_config.architecture_of(data))
    labels = bert_config.labels_of(data, where) if {"classifier", "tags"} & set(heads) else ()
    model = bert_config.model_of(data, family, where)
    bert_config.check(model, heads, family, where)
    return convert(folder, model, heads, labels, layout, tensors, open_tokenizer(folder, tokenizer))


def convert(
    where: Path,
    model: BertConfig,
    heads: Collection[str],
    labels: tuple[str, ...],
    layout: Layout,
    tensors: Mapping[str, Tensor],
    tokenizer: Tokenizer | None,
) -> Imported:
    """Tensors of one of the layouts to a model of ours. where: what messages call the source. Raises UserError for what disagrees."""
    if model.layers > len(tensors):
        raise UserError(f"{where}: its config has {model.layers} layers and there are {len(tensors)} tensors: both must belong together")
    _check_tokenizer(tokenizer, model, where)
    run = bert_config.run_of(model, heads, labels)
    shapes, _ = parameters(objective_of(run, tokenizer))
    table = bert.entries(model, heads, layout)
    wanted = {path: leaf.shape for path, leaf in tree.leaves(shapes)}
    return Imported(run, key_map.to_ours(table, tensors, wanted, str(where), bert.skipped(layout, heads)), tokenizer)


def open_tokenizer(folder: Path, choice: str) -> Tokenizer | None:
    """The tokenizer that `choice` asks for, see `load`; None where the folder has no such files. Raises UserError."""
    if choice == "none" or not (choice or any((folder / name).exists() for name in TOKENIZER_FILES)):
        return None
    place = Path(choice).expanduser() if choice else folder
    try:
        return tokenizers.load(place)
    except UserError as error:
        raise UserError(f"{error}; {WITHOUT}") from error


def _check_tokenizer(tokenizer: Tokenizer | None, model: BertConfig, where: Path) -> None:
    if tokenizer is None:
        return
    vocabulary = tokenizer.vocabulary
    if vocabulary.size != model.vocab_size:
        raise UserError(
            f"{where}: the tokenizer has {vocabulary.size} tokens and the model {model.vocab_size} embedding rows: "
            f"name the right one with --tokenizer DIR; {WITHOUT}"
        )
    if model.first_position and vocabulary.pad != model.first_position - 1:
        raise UserError(
            f"{where}: the tokenizer's pad id is {vocabulary.pad} and config.json's pad_token_id {model.first_position - 1}: "
            f"name the right one with --tokenizer DIR; {WITHOUT}"
        )


def save(out: Path, run: Run, params: Tree, tokenizer: Tokenizer | None, dtype: str = "float32") -> str:
    """Writes a new folder that transformers opens: config.json, model.safetensors and the tokenizer's files, whole or not at all.

    Returns the class of transformers that opens it. dtype: of the weights, one of EXPORTED. An encoder without heads is written as
    BertModel or RobertaModel saves itself, names bare.
    Raises UserError for a model that transformers does not have, numbers too large for `dtype`, and a disk that refuses.
    """
    heads = [name for name in NAMES if name in params]
    data = bert_config.config_json(run, heads, tokenizer.vocabulary if tokenizer else None, dtype)
    family, model = data["model_type"], run.model
    bert_config.check(model, heads, family, out)
    if not model.types:
        # transformers always adds a row of types: zeros change nothing.
        model = dataclasses.replace(model, types=1)
        params = tree.merge(params, {"embeddings": {"type": {"table": np.zeros((1, model.width), np.float32)}}})
    layout = Layout(family, f"{family}." if set(heads) - {"pooler"} else "")
    arrays = key_map.to_theirs(bert.entries(model, heads, layout), params)
    with made(out) as folder:
        weights.write_safetensors(folder / "model.safetensors", arrays, weights.NAMED[dtype])
        (folder / "config.json").write_text(json.dumps(data, indent=2) + "\n")
        if tokenizer is not None:
            tokenizer.save(folder, model.positions)
    return data["architectures"][0]
