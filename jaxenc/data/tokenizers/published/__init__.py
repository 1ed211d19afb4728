"""Published tokenizer folders of any kind, read as AutoTokenizer of transformers reads them."""
