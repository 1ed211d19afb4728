"""Training a SentencePiece unigram model, by the library and with the flags of zihangdai/xlnet (README.md, spm_train)."""

import io
import re
import sys
from collections.abc import Iterable, Iterator

import sentencepiece

from jaxenc.data.tokenizers import checks
from jaxenc.data.tokenizers.coverage import SHARE
from jaxenc.data.tokenizers.lines import cut
from jaxenc.data.tokenizers.sentencepiece import repeats
from jaxenc.errors import UserError

CONTROLS = ("<cls>", "<sep>", "<pad>", "<mask>", "<eod>")  # ids 3 to 7, after <unk>, <s> and </s>
SYMBOLS = ("<eop>", ".", "(", ")", '"', "-", "–", "£", "€")  # ids 8 to 16; but for <eop> they are text, and always pieces of their own
SENTENCES = 10_000_000  # trained on, drawn from all when there are more
LONGEST = 4096  # characters trained on in one piece
RESERVED = "▅"  # what the library writes for an unknown character: it leaves out a text that holds one
THREADS = 16  # the sums of a training are cut in so many: another number gives other last digits, the machine's cores do not


def trained(texts: Iterable[str], vocab_size: int) -> bytes:
    """The model file of a vocabulary of at most `vocab_size` pieces, with the specials of XLNet at the published ids.

    texts: read once; the library keeps them, up to SENTENCES, in memory. One longer than LONGEST characters is cut before a blank, or
    inside a word that is longer; one that repeats what was read before is cut at other places too (repeats.py). The library changes no
    character of them. A character that makes up less than a 20,000th of the text together with rarer ones is <unk>, and so is RESERVED,
    where words are cut.
    Raises UserError when no text holds a visible character, and for a vocab_size that is too small or too large; what `texts` raises
    comes through as it is.
    """
    checks.size(vocab_size, 3 + len(CONTROLS) + len(SYMBOLS), "the specials and punctuation")
    failed, out = [], io.BytesIO()

    def sentences() -> Iterator[str]:
        try:
            for text in repeats.broken(text.replace(RESERVED, " ") for text in texts):
                yield from cut(text, LONGEST)
            print("tokenizer: all is read; the pieces are chosen now", file=sys.stderr)
        except BaseException as error:  # the library would make a RuntimeError of it
            failed.append(error)
            raise

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences(),
            model_writer=out,
            model_type="unigram",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            character_coverage=SHARE,
            control_symbols=list(CONTROLS),
            user_defined_symbols=list(SYMBOLS),
            input_sentence_size=SENTENCES,
            shuffle_input_sentence=True,
            max_sentence_length=4 * LONGEST,
            num_threads=THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        if failed:
            raise failed[0] from None
        raise _refusal(str(error), vocab_size) from error
    return out.getvalue()


def _refusal(said: str, vocab_size: int) -> UserError:
    """What the trainer's message means to a person."""
    if small := re.search(r"smaller than required_chars\. \d+ vs (\d+)", said):
        taken = f"the specials, punctuation and characters alone take {small[1]} pieces"
        return UserError("too small", f"--vocab-size {vocab_size}", f"use more: {taken}")
    if "sentences_.empty()" in said or "all_chars_count" in said:
        return UserError("the input holds no text", "tokenizer", "name files with at least one line of text")
    return UserError(f"the input cannot be trained on ({' '.join(said.split())})", "tokenizer", "give more text or another --vocab-size")
