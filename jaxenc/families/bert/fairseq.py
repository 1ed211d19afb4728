"""Reads RoBERTa from checkpoints of fairseq.

Three layouts were published. The first (2019) has its names under `decoder.` and one matrix for query, key and value; later ones are under
`encoder.sentence_encoder.`, or under `encoder.` alone, with a matrix each (fairseq/models/roberta/model.py, upgrade_state_dict_named;
fairseq/modules/multihead_attention.py). All of torch's weights are [out, in]. The config of the training run says the number of attention
heads and the activation; everything else that the model needs follows from the tensors.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxenc.errors import UserError
from jaxenc.families import config_json
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.foreign import Import, Structure
from jaxenc.formats import leaves
from jaxenc.formats.key_map import TRANSPOSE, Entry
from jaxenc.formats.key_map import Part as Slice
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.heads.pooler import TANH
from jaxenc.layers.stack import layer_name

PAD = 1  # dict.txt has no specials: <s> 0, <pad> 1, </s> 2, <unk> 3 come before its lines (fairseq/data/dictionary.py)
NORM_EPSILON = 1e-5  # torch's default, which no config states
TOKENS = "embed_tokens.weight"
BASES = ("encoder.sentence_encoder.", "decoder.sentence_encoder.", "sentence_encoder.", "encoder.", "decoder.")
CLASSES = re.compile(r"classification_heads\.([^.]+)\.")
PACKED = ("query", "key", "value")
# Our activation for each value of `activation_fn` (fairseq/utils.py, get_activation_fn).
ACTIVATIONS = {"gelu": "gelu_erf", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "relu": "relu", "tanh": "tanh"}


class FairseqPart(NamedTuple):
    """As `distilbert.names.DistilbertPart`. theirs: `{base}` is the encoder's prefix, `{top}` that of the masked-token head, `{name}` the
    name of the classification head."""

    head: str
    ours: str
    theirs: str
    kind: str


LAYER = "{base}layers.{n}"
PARTS = (
    FairseqPart("", "embeddings/token/table", "{base}embed_tokens", "vocabulary"),
    FairseqPart("", "embeddings/position/table", "{base}embed_positions", "table"),
    FairseqPart("", "embeddings/norm", "{base}{norm}", "norm"),
    FairseqPart("", "encoder/{layer}/attention/query", f"{LAYER}.self_attn.q_proj", "dense"),
    FairseqPart("", "encoder/{layer}/attention/key", f"{LAYER}.self_attn.k_proj", "dense"),
    FairseqPart("", "encoder/{layer}/attention/value", f"{LAYER}.self_attn.v_proj", "dense"),
    FairseqPart("", "encoder/{layer}/attention/output", f"{LAYER}.self_attn.out_proj", "dense"),
    FairseqPart("", "encoder/{layer}/attention/norm", f"{LAYER}.self_attn_layer_norm", "norm"),
    FairseqPart("", "encoder/{layer}/feed_forward/up", f"{LAYER}.fc1", "dense"),
    FairseqPart("", "encoder/{layer}/feed_forward/down", f"{LAYER}.fc2", "dense"),
    FairseqPart("", "encoder/{layer}/feed_forward/norm", f"{LAYER}.final_layer_norm", "norm"),
    FairseqPart("pooler", "pooler/dense", "classification_heads.{name}.dense", "dense"),
    FairseqPart("mlm", "mlm/dense", "{top}lm_head.dense", "dense"),
    FairseqPart("mlm", "mlm/norm", "{top}lm_head.layer_norm", "norm"),
    FairseqPart("mlm", "mlm/bias", "{top}lm_head.bias", "bias"),
    FairseqPart("classifier", "classifier/dense", "classification_heads.{name}.out_proj", "dense"),
)


class FairseqFile(NamedTuple):
    """The naming scheme of one file. base: prefix of the encoder; top: of its masked-token head; norm: name of the norm of the embeddings;
    name: of the classification head, '' for none; packed: whether query, key and value are one matrix."""

    base: str
    top: str
    norm: str
    name: str
    packed: bool


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of fairseq.

    config: the settings of its training run, which hold those of the model under `args` or under `cfg` and `model`. Raises UserError, which
    begins with `where`, for what cannot be converted.
    """
    file = _file_of(tensors, where)
    structure = _structure(_settings(config), file, tensors, where)
    table = tuple(entry for part in PARTS if part.head in ("", *structure.heads) for entry in _of_part(part, structure.model, file))
    # Buffers: the number of the layout, and the dtype of positions that no table holds.
    return Import(structure, tensors, table, (re.escape(file.base) + r"(version|embed_positions\._float_tensor)",))


def _settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the model: an argparse.Namespace until 2020, then a tree of omegaconf's."""
    tree = config.get("cfg")
    model = tree.get("model") if isinstance(tree, Mapping) else None
    found = config.get("args") or model
    return found if isinstance(found, Mapping) else {}


def _file_of(tensors: Mapping[str, Tensor], where: Path) -> FairseqFile:
    base = next((base for base in BASES if base + TOKENS in tensors), None)
    if base is None:
        raise UserError(f"no tensor {BASES[0]}{TOKENS} in it", where, "name a RoBERTa of fairseq")
    if any(name.startswith(f"{base}layer_norm.") for name in tensors):
        raise UserError("it has a norm before each layer", where, "only models with a norm after each layer can be converted")
    names = list(dict.fromkeys(found[1] for name in tensors if (found := CLASSES.match(name))))
    if len(names) > 1:
        others = " ".join(f"--leave-out 'classification_heads.{name}.*'" for name in names[1:])
        raise UserError(f"it has the classification heads {', '.join(names)}", where, f"keep one, as `{others}` does")
    norm = "emb_layer_norm" if f"{base}emb_layer_norm.weight" in tensors else "layernorm_embedding"
    top = base.partition("sentence_encoder.")[0]
    packed = f"{base}layers.0.self_attn.in_proj_weight" in tensors
    return FairseqFile(base, top, norm, names[0] if names else "", packed)


def _structure(settings: Mapping[str, Any], file: FairseqFile, tensors: Mapping[str, Tensor], where: Path) -> Structure:
    def rows(name: str, axis: int = 0) -> int:
        shape = tensors[name].shape if name in tensors else ()
        if len(shape) <= axis:
            raise UserError(f"no tensor {name} with {axis + 1} axes", where, "name a RoBERTa of fairseq")
        return shape[axis]

    activation, heads = settings.get("activation_fn", "gelu"), settings.get("encoder_attention_heads")
    if type(heads) is not int or heads < 1:
        raise UserError(
            f"its settings have encoder_attention_heads {heads!r}", where, "name a checkpoint with the settings of its training"
        )
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise UserError(f"activation_fn is {activation!r}", where, f"only {', '.join(ACTIVATIONS)} can be converted")
    if settings.get("pooler_activation_fn", TANH) != TANH and file.name:
        raise UserError(f"pooler_activation_fn is {settings['pooler_activation_fn']!r}", where, f"only {TANH} can be converted")
    numbers = {int(found[1]) for name in tensors if (found := re.match(re.escape(file.base) + r"layers\.(\d{1,4})\.", name))}
    rates = {ours: settings.get(theirs) for ours, theirs in (("dropout", "dropout"), ("attention_dropout", "attention_dropout"))}
    model = {
        "vocab_size": rows(file.base + TOKENS),
        "width": rows(file.base + TOKENS, 1),
        "positions": rows(f"{file.base}embed_positions.weight") - PAD - 1,
        "first_position": PAD + 1,
        "types": 0,
        "layers": len(numbers),
        "heads": heads,
        "feed_forward": rows(f"{file.base}layers.0.fc1.weight"),
        "init": "normal",
        "activation": ACTIVATIONS[activation],
        "norm_epsilon": NORM_EPSILON,
        **{name: float(rate) for name, rate in rates.items() if isinstance(rate, int | float)},
    }
    found = {"mlm"} if any(name.startswith(f"{file.top}lm_head.") for name in tensors) else set()
    found |= {"pooler", "classifier"} if file.name else set()
    classes = rows(f"classification_heads.{file.name}.out_proj.weight") if file.name else 0
    labels = tuple(f"LABEL_{i}" for i in range(classes))
    return Structure(
        config_json.built(BertConfig, model, where, {"heads": "encoder_attention_heads"}),
        tuple(head for head in BUILT_IN if head in found),
        labels,
    )


def _of_part(part: FairseqPart, config: BertConfig, file: FairseqFile) -> Iterator[Entry]:
    copies = {"embeddings/token/table": f"{file.top}lm_head.weight"}
    for n in range(config.layers if "{n}" in part.theirs else 1):
        ours = part.ours.format(layer=layer_name(n))
        theirs = part.theirs.format(n=n, base=file.base, top=file.top, norm=file.norm, name=file.name)
        name = ours.rpartition("/")[2]
        if file.packed and name in PACKED and part.kind == "dense":
            packed, place = theirs.rpartition(".")[0], PACKED.index(name)
            yield Entry(f"{packed}.in_proj_weight", f"{ours}/kernel", TRANSPOSE, part=Slice(place, len(PACKED), 0))
            yield Entry(f"{packed}.in_proj_bias", f"{ours}/bias", part=Slice(place, len(PACKED), 0))
        else:
            yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, False, False, copies)
