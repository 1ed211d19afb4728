"""`jaxenc tokenizer`: trains a vocabulary on text, or shows how one reads a text."""

import argparse

from jaxenc.cli import inputs
from jaxenc.cli.parser import Parser
from jaxenc.data.read_text import describe
from jaxenc.data.tokenizers.from_text import TYPES, VOCAB_SIZE, train_tokenizer
from jaxenc.data.tokenizers.normalization import FORMS, Normalization


def add_arguments(parser: Parser) -> None:
    inputs.add_arguments(parser)
    parser.add_argument("--type", choices=TYPES, default="wordpiece", help="kind of vocabulary (default: wordpiece)")
    parser.add_argument(
        "--vocab-size", type=int, default=VOCAB_SIZE, metavar="N", help=f"pieces, or words to predict (default: {VOCAB_SIZE})"
    )
    rule, switch = Normalization(), argparse.BooleanOptionalAction
    normalize = "nfc: letters and marks composed; nfkc: also ligatures, full-width and presentation forms folded; none: text as it is"
    parser.add_argument("--normalize", choices=FORMS, default=rule.form, help=f"{normalize} (default: {rule.form})")
    parser.add_argument("--lowercase", action=switch, default=rule.lowercase, help="lower-case the text (default: off)")
    accents = "remove accents, and with them vowels and tones of many scripts (default: off)"
    parser.add_argument("--strip-accents", action=switch, default=rule.strip_accents, help=accents)
    parser.add_argument("--pretokenized", action="store_true", help="characters: words stand between blanks and a line is a sentence")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="threads that count words; the result is the same (default: 1)")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    only = "print the pieces of a text, and what the vocabulary of a folder changes in it; takes no other option"
    parser.add_alone("--inspect", ("DIR", "TEXT"), only)
    parser.add_examples(
        "jaxenc tokenizer --input text/*.txt --vocab-size 16000 --out tokenizer",
        "jaxenc tokenizer --inspect tokenizer 'A text to read.'",
    )


def run(args: argparse.Namespace) -> int:
    """Trains and saves; prints the folder and the size. With --inspect: prints how a vocabulary reads a text. Raises UserError."""
    if args.inspect:
        for line in describe(*args.inspect):
            print(line)
        return 0
    rule = Normalization(args.normalize, args.lowercase, args.strip_accents)
    reading = inputs.reading(args)
    tool = train_tokenizer(args.input, args.out, args.vocab_size, args.type, rule, reading, args.pretokenized, args.workers)
    size, words_read = tool.vocabulary.size, tool.vocabulary.words
    print(f"{args.out}: {size:,} words to predict, {words_read:,} to read" if words_read else f"{args.out}: {size:,} pieces")
    return 0
