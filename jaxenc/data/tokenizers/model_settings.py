"""The entries of a tokenizer_config.json that depend on the model that a tokenizer is saved beside."""

import json

from jaxenc.data.tokenizers.frame_files import CLASS


def written(content: bytes, longest: int, typed: bool) -> bytes:
    """The content of the file, changed for a model. longest: tokens that it takes, 0 if not known. typed: whether it has token types."""
    config = json.loads(content)
    changed = {"model_max_length": longest} if longest else {}
    if not typed and _asks_for_types(config):
        # GPT-1 would add the embedding of a token for each type (OpenAIGPTModel of transformers).
        changed["model_input_names"] = ["input_ids", "attention_mask"]
    return (json.dumps(config | changed, indent=2) + "\n").encode() if changed else content


def _asks_for_types(config: dict[str, object]) -> bool:
    """Whether transformers passes token types to a model when its tokenizer has these settings."""
    return "token_type_ids" in config.get("model_input_names", ["token_type_ids"] * (config.get(CLASS) == "BertTokenizer"))
