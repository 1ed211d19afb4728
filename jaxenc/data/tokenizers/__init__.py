"""Text to ids and back. One file or folder per kind of vocabulary; all of them build the same `Tokenizer`."""

from jaxenc.data.tokenizers.folder import load
from jaxenc.data.tokenizers.tokenizer import Tokenizer

__all__ = ["Tokenizer", "load"]
