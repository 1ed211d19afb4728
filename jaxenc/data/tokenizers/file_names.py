"""The files of a tokenizer's folder that more than one kind of vocabulary has, by the names that transformers gives them."""

JSON = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
SPECIALS_MAP = "special_tokens_map.json"
