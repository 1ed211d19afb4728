"""Where the characters of a normalised text come from, for a normaliser of the `tokenizers` library."""

from tokenizers import PreTokenizedString, Regex, normalizers, pre_tokenizers


def of_characters(normalizer: normalizers.Normalizer | None, text: str) -> tuple[str, list[tuple[int, int]]]:
    """See `Tokenizer.written_places`. normalizer: None if texts stay as they are."""
    parts = PreTokenizedString(text)
    if normalizer:
        parts.normalize(normalizer.normalize)
    pre_tokenizers.Split(Regex("(?m:.)"), "isolated").pre_tokenize(parts)  # Oniguruma's m: a dot is any character, \n too
    found = [(piece, place) for piece, place, _ in parts.get_splits("original", "char")]
    return "".join(piece for piece, _ in found), [place for _, place in found]
