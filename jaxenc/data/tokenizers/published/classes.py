"""The tokenizer classes of transformers for the families here, and what each puts in place of the sections of a tokenizer.json.

From transformers 5 on only PreTrainedTokenizerFast follows a tokenizer.json to the letter. The others take its vocabulary and merges and
build the rest from tokenizer_config.json (models/*/tokenization_*.py of 5.24).
"""

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.file_names import SETTINGS
from jaxenc.data.tokenizers.published.settings import Settings
from jaxenc.errors import Unsupported, UserError
from jaxenc.files import read_json

FILE, BERT, ROBERTA, XLNET, ALBERT, GPT = "file", "bert", "roberta", "xlnet", "albert", "gpt"
# {class in tokenizer_config.json, without Fast: what opens the folder}; FILE follows the tokenizer.json
CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("PreTrainedTokenizer", "TokenizersBackend", "PythonBackend"), FILE),
    **dict.fromkeys(("BertTokenizer", "ElectraTokenizer", "DistilBertTokenizer", "MobileBertTokenizer", "ConvBertTokenizer"), BERT),
    **dict.fromkeys(("LayoutLMTokenizer", "SqueezeBertTokenizer", "LxmertTokenizer"), BERT),
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer", "LongformerTokenizer"), ROBERTA),
    **{"XLNetTokenizer": XLNET, "AlbertTokenizer": ALBERT, "OpenAIGPTTokenizer": GPT},
}
# {model_type in config.json: what opens the folder where no class is named}
MODEL_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("bert", "electra", "distilbert", "mobilebert", "convbert", "megatron-bert", "layoutlm", "squeezebert"), BERT),
    **dict.fromkeys(("roberta", "bart", "longformer", "roberta-prelayernorm", "data2vec-text", "ibert"), ROBERTA),
    **{"xlnet": XLNET, "albert": ALBERT, "openai-gpt": GPT},
}
NAMED = ("BertTokenizer", "RobertaTokenizer", "XLNetTokenizer", "AlbertTokenizer", "OpenAIGPTTokenizer")  # in messages
MODELS: Mapping[str, str] = {BERT: "WordPiece", ROBERTA: "BPE", XLNET: "Unigram", ALBERT: "Unigram", GPT: "BPE"}
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    FILE: {},
    BERT: {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"},
    ROBERTA: {
        **{"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>"},
        **{"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"},
    },
    XLNET: {
        **{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "<sep>"},
        **{"pad_token": "<pad>", "cls_token": "<cls>", "mask_token": "<mask>"},
    },
    ALBERT: {
        **{"bos_token": "[CLS]", "eos_token": "[SEP]", "sep_token": "[SEP]", "cls_token": "[CLS]"},
        **{"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "[MASK]"},
    },
    GPT: {"unk_token": "<unk>"},
}


@dataclasses.dataclass(frozen=True)
class Choice:
    """kind: FILE, BERT ...; reason: the field that says so; where: its file."""

    kind: str
    reason: str
    where: Path


def chosen(folder: Path, default: str = FILE) -> Choice:
    """What opens a folder: the class that its tokenizer_config.json or config.json names, or the one of its model_type.

    default: in place of FILE, for a folder without a tokenizer.json. Raises Unsupported for classes and types of other families:
    transformers has rules for them that are not built here.
    """
    to_the_letter = f"write PreTrainedTokenizerFast as tokenizer_class in {SETTINGS}, which follows tokenizer.json to the letter"
    if default != FILE:
        to_the_letter = f"save it again from AutoTokenizer, which writes a tokenizer.json, and {to_the_letter}"
    named = [(path, read_json(path, AGAIN)) for name in (SETTINGS, "config.json") if (path := folder / name).is_file()]
    for path, content in named:
        if (name := content.get("tokenizer_class")) is not None:
            if (found := CLASSES.get(str(name).removesuffix("Fast"))) is None:
                fix = f"{to_the_letter}, or one of {', '.join(NAMED)}"
                raise Unsupported(f"tokenizer_class is {name!r}", path, fix)
            return Choice(default if found == FILE else found, f"tokenizer_class is {name!r}", path)
    path, content = named[-1] if named else (folder / SETTINGS, {})
    family = content.get("model_type") if path.name == "config.json" else None
    if family is not None and family not in MODEL_TYPES:
        fix = f"{to_the_letter}, or one of {', '.join(NAMED)}"
        raise Unsupported(f"model_type is {family!r}, whose tokenizer is not known", path, fix)
    return Choice(MODEL_TYPES.get(str(family), default), f"model_type is {family!r}", path)


def model_type(model: object) -> str:
    """The kind of a model. Old files do not say it: only BPE has merges, and only Unigram a list for its vocabulary."""
    if not isinstance(model, dict):
        return "WordPiece"
    guess = "BPE" if "merges" in model else "Unigram" if isinstance(model.get("vocab"), list) else "WordPiece"
    return str(model.get("type") or guess)


def rebuilt(choice: Choice, path: Path, data: Mapping[str, Any], settings: Settings, roles: Mapping[str, Any]) -> library.Tokenizer:
    """The tokenizer that a class other than FILE builds from the vocabulary in `data`, without added pieces and framing.

    roles: {name: piece}, the class's own where the files name none. Raises UserError for a vocabulary of another model.
    """
    kind = choice.kind
    if (found := model_type(data["model"])) != MODELS[kind]:
        what = f"{choice.reason}, which stands for {MODELS[kind]}, and the model in {path.name} is {found}"
        fix = f'copy the right {path.name}, or write "tokenizer_class": "PreTrainedTokenizerFast" in {SETTINGS}'
        raise UserError(what, choice.where, fix)
    build = {BERT: _bert, ROBERTA: _roberta, XLNET: _unigram, ALBERT: _unigram, GPT: _gpt}[kind]
    return build(kind, data, settings.values, {name: str(piece) for name, piece in roles.items()})


def _bert(kind: str, data: Mapping[str, Any], values: Mapping[str, Any], roles: Mapping[str, str]) -> library.Tokenizer:
    out = library.Tokenizer(models.WordPiece(data["model"]["vocab"], unk_token=roles["unk_token"]))
    chinese, accents, lowercase = values.get("tokenize_chinese_chars", True), values.get("strip_accents"), values.get("do_lower_case", True)
    out.normalizer = normalizers.BertNormalizer(True, chinese, accents, lowercase)
    out.pre_tokenizer, out.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(prefix="##")
    return out


def _merges(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in data["model"].get("merges", [])]


def _roberta(kind: str, data: Mapping[str, Any], values: Mapping[str, Any], roles: Mapping[str, str]) -> library.Tokenizer:
    out = library.Tokenizer(models.BPE(data["model"]["vocab"], _merges(data), continuing_subword_prefix="", end_of_word_suffix=""))
    out.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=values.get("add_prefix_space", False))
    out.decoder = decoders.ByteLevel()
    return out


def _gpt(kind: str, data: Mapping[str, Any], values: Mapping[str, Any], roles: Mapping[str, str]) -> library.Tokenizer:
    marks = {"continuing_subword_prefix": "", "end_of_word_suffix": "</w>"}
    out = library.Tokenizer(models.BPE(data["model"]["vocab"], _merges(data), unk_token=roles["unk_token"], **marks))
    out.normalizer, out.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    out.decoder = decoders.BPEDecoder(suffix="</w>")
    return out


def _unigram(kind: str, data: Mapping[str, Any], values: Mapping[str, Any], roles: Mapping[str, str]) -> library.Tokenizer:
    """XLNet's and ALBERT's: XLNet's ignores keep_accents and add_prefix_space."""
    vocab = [(piece, float(score)) for piece, score in data["model"]["vocab"]]
    out = library.Tokenizer(models.Unigram(vocab, values.get("unk_id", 0) if kind == XLNET else 1, False))
    keep = kind == ALBERT and values.get("keep_accents", False)
    lowercase = values.get("do_lower_case", kind == ALBERT)
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    steps += [] if keep else [normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase()] * lowercase
    table = next((step["precompiled_charsmap"] for step in normalizer_steps(data) if step.get("type") == "Precompiled"), None)
    steps += [normalizers.Precompiled(base64.b64decode(table))] if table is not None else []
    out.normalizer = normalizers.Sequence(steps)
    scheme = "never" if kind == ALBERT and not values.get("add_prefix_space", True) else "always"
    splitters = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)]
    out.pre_tokenizer, out.decoder = pre_tokenizers.Sequence(splitters), decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    return out


def normalizer_steps(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of the section `normalizer`."""
    section = data.get("normalizer") or {}
    return section["normalizers"] if section.get("type") == "Sequence" else [section]


def frame(kind: str, tool: library.Tokenizer, roles: Mapping[str, str], values: Mapping[str, Any], own: Any) -> Any:
    """How a class frames texts: a post-processor. own: that of tokenizer.json, which ALBERT's and GPT's classes keep, and FILE."""
    cls, sep = roles.get("cls_token", ""), roles.get("sep_token", "")
    ids = [(piece, tool.token_to_id(piece)) for piece in dict.fromkeys((cls, sep))]
    if kind == BERT:
        return processors.TemplateProcessing(f"{cls}:0 $A:0 {sep}:0", f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1", ids)
    if kind == XLNET:
        return processors.TemplateProcessing(f"$A:0 {sep}:0 {cls}:2", f"$A:0 {sep}:0 $B:1 {sep}:1 {cls}:2", ids)
    if kind == ROBERTA:
        trim, prefix = values.get("trim_offsets", True), values.get("add_prefix_space", False)
        return processors.RobertaProcessing((sep, tool.token_to_id(sep)), (cls, tool.token_to_id(cls)), trim, prefix)
    if kind == ALBERT and own is None:
        ids = [("[CLS]", tool.token_to_id(cls)), ("[SEP]", tool.token_to_id(sep))]
        return processors.TemplateProcessing("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", ids)
    return own
