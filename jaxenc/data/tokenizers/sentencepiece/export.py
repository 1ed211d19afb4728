"""Which SentencePiece models a tokenizer.json can express, so that transformers gives the same ids."""

from jaxenc.data.tokenizers.sentencepiece import model_file
from jaxenc.data.tokenizers.sentencepiece.model_file import MARK, Model
from jaxenc.data.tokenizers.sentencepiece.rules import SentencePieceRules
from jaxenc.data.tokenizers.sentencepiece.specials import ENDS, Specials

SWITCHES = {
    model_file.DUMMY_PREFIX: "add_dummy_prefix",
    model_file.EXTRA_WHITESPACES: "remove_extra_whitespaces",
    model_file.ESCAPE: "escape_whitespaces",
}
# The table by which both libraries give the same ids where accents are dropped first.
EXACT = b"nmt_nfkc"
TABLES = (b"", EXACT, b"nfkc", b"identity")


def beyond(model: Model, rules: SentencePieceRules, specials: Specials) -> str:
    """The first field of the model that a tokenizer.json cannot express, such as `normalizer_spec.escape_whitespaces`; '' for none.

    Equal means: up to cuts whose scores differ by less than float32 can tell, which sentencepiece adds up along a text and transformers
    along a word.
    """
    trainer, normalizer = model.trainer, model.normalizer
    if trainer.get(model_file.MODEL_TYPE, model_file.UNIGRAM) != model_file.UNIGRAM:
        return "trainer_spec.model_type"
    if trainer.get(model_file.BYTE_FALLBACK) or model_file.BYTE in model.kinds:
        return "trainer_spec.byte_fallback"
    if trainer.get(model_file.SUFFIX):
        return "trainer_spec.treat_whitespace_as_suffix"
    if off := [name for setting, name in SWITCHES.items() if not normalizer.get(setting, 1)]:
        return f"normalizer_spec.{off[0]}"
    if model.facts.charsmap and normalizer.get(model_file.TABLE_NAME, b"") not in TABLES:
        return "normalizer_spec.precompiled_charsmap"
    if model.denormalizer.get(model_file.CHARSMAP):
        return "denormalizer_spec"
    if not specials.name:
        return "the choice of special pieces in tokenizer_config.json"
    return _of_pieces(model, rules, {*specials.pieces, *ENDS})


def nearly(model: Model, rules: SentencePieceRules) -> str:
    """What transformers reads otherwise in rare texts by the tokenizer.json of a model of which `beyond` finds nothing; '' for nothing."""
    if model.facts.charsmap and not rules.strip_accents:
        return "normalizer_spec.precompiled_charsmap where accents are kept: it drops a mark that it finds no entry for with its letter"
    if model.normalizer.get(model_file.TABLE_NAME, EXACT) != EXACT:
        return f"the character {MARK} in a text, which normalizer_spec.name={model.normalizer[model_file.TABLE_NAME].decode()} leaves there"
    return ""


def _of_pieces(model: Model, rules: SentencePieceRules, specials: set[str]) -> str:
    write = rules.normalizer.normalize_str
    for (piece, score), kind in zip(model.pieces, model.kinds, strict=True):
        if piece in specials or kind in (model_file.UNKNOWN, model_file.CONTROL):
            continue
        if kind == model_file.UNUSED:
            return "pieces.type UNUSED"
        if MARK in piece[1:] or any(character.isspace() for character in piece):
            return "pieces.piece with a blank in it"
        if kind == model_file.USER_DEFINED and (len(piece) > 1 or score or write(piece) != piece):
            return "pieces.type USER_DEFINED"
    return ""
