"""Sentences in a file, one a line, and their words."""

from collections.abc import Iterator, Sequence

from jaxenc.data import readers
from jaxenc.errors import UserError
from jaxenc.inference import spans
from jaxenc.inference.model import Model
from jaxenc.storage import READ_HERE, must_be_local

OPTIONS = {"splitter": "--raw", "pieces": "--pieces"}
CUTS = ("blanks", *OPTIONS)  # what cuts a line into words


def read(name: str) -> Iterator[str]:
    r"""The lines of a UTF-8 file, also empty ones, without their ends, \n or \r\n. Raises UserError with the number of a line that is not
    UTF-8."""
    must_be_local(name, "--input", READ_HERE)
    readers.check_file(name)
    with open(name, "rb") as file:
        for number, raw in enumerate(file, 1):
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            try:
                yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError("not UTF-8", f"{name}:{number}", "save the file in UTF-8") from error


def cut(model: Model, line: str, by: str, word: str = "") -> Sequence[str]:
    """The words of a line. by: one of CUTS. `blanks`: what stands between blanks; `splitter`: what the word splitter of the model's
    tokenizer finds; `pieces`: `spans.of_pieces` with `word`. Raises UserError for the last two without a tokenizer."""
    if by == "blanks":
        return line.split()
    if model.tokenizer is None:
        raise UserError("this model has no tokenizer", OPTIONS[by], f"write blanks between the words and leave {OPTIONS[by]} out")
    return model.tokenizer.split(line) if by == "splitter" else spans.of_pieces(model.tokenizer, line, word)
