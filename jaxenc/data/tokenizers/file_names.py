"""Names of files in a tokenizer's folder, as transformers has them, that several kinds of vocabulary share."""

JSON = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
SPECIALS_MAP = "special_tokens_map.json"
