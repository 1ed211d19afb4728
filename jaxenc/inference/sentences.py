"""Sentences in a file, one a line, and their words."""

from collections.abc import Iterator

from jaxenc.data import readers
from jaxenc.errors import UserError
from jaxenc.inference.model import Model


def read(name: str) -> Iterator[str]:
    r"""The lines of a UTF-8 file, also empty ones, without their ends, \n or \r\n. Raises UserError with the number of a line that is not
    UTF-8."""
    readers.check_file(name)
    with open(name, "rb") as file:
        for number, raw in enumerate(file, 1):
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            try:
                yield raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError("not UTF-8", f"{name}:{number}", "save the file in UTF-8") from error


def cut(model: Model, line: str, raw: bool) -> list[str]:
    """The words of a line: split at blanks, or with `raw` by the model's tokenizer. Raises UserError for `raw` without a tokenizer."""
    if not raw:
        return line.split()
    if model.tokenizer is None:
        raise UserError("this model has no tokenizer", "--raw", "write blanks between the words and leave --raw out")
    return model.tokenizer.split(line)
