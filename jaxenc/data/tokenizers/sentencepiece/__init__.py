"""SentencePiece: `.model` files that others made, and unigram vocabularies of new tokenizers."""
