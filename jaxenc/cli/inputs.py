"""The arguments for input text, shared by `jaxenc tokenizer` and `jaxenc data`."""

import argparse

from jaxenc.data.readers import Reading
from jaxenc.data.readers.document import DOCUMENTS, FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --input, and the options for how it becomes documents."""
    rule = Reading()
    what = "files, folders, 'patterns', - for stdin, URLs, tfds:NAME[:SPLIT], docstrings; docs/text.md lists the formats"
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help=what)
    parser.add_argument("--field", default=rule.field, metavar="NAME", help="column or key of the text (default: text, or words)")
    lines = "what ends a document of plain text (default: blank_line)"
    parser.add_argument("--document", choices=DOCUMENTS, default=rule.document, help=lines)
    known = f"{FORMATS[0]} (default), {', '.join(FORMATS[1:])}"
    parser.add_argument("--format", choices=FORMATS, default=rule.format, metavar="KIND", help=known)
    parser.add_argument("--encoding", default=rule.encoding, metavar="NAME", help="of text (default: utf-8, or by its byte order mark)")
    where = "folder of prepared tfds data (default: TFDS_DATA_DIR, or ~/tensorflow_datasets)"
    parser.add_argument("--tfds-dir", default=rule.tfds_dir, metavar="DIR", help=where)


def reading(args: argparse.Namespace) -> Reading:
    """How the inputs become documents. Raises UserError."""
    return Reading(args.field, args.document, args.format, args.encoding, args.tfds_dir)
