"""Reads run directories of earlier formats: renames the fields of config.json and the paths of a checkpoint's arrays.

A config.json has a `format`; one without is format 1. The tables below go from one format to the next and are applied in turn from the
format of the folder on. Nothing on the disk is rewritten.

Format 2 stores moments under the name of the optimizer's stage (`moments/adam/mu/...`), format 1 under its index in the chain
(`moments/0/mu/...`).
"""

import re
from collections.abc import Mapping
from typing import Any

from jaxenc.errors import UserError

FORMAT = 2

# {format: (pattern of an old path, replacement) of every path that the next format renames}.
PATHS = {
    1: (
        (r"moments/0/(count|mu|nu)(/.*)?", r"moments/adam/\1\2"),
        (r"moments/0/sum_of_squares(/.*)?", r"moments/adagrad/sum_of_squares\1"),
    )
}


def format_of(config: Mapping[str, Any], where: str) -> int:
    """The format of a config.json. Raises UserError, which begins with `where`, for one that this version does not know."""
    number = config.get("format", 1)
    if type(number) is not int or not 1 <= number <= FORMAT:
        advice = "install a newer jaxenc" if type(number) is int and number > FORMAT else "no version has written that: restore the file"
        raise UserError(f"format is {number!r}, and this version reads 1 to {FORMAT}", where, advice)
    return number


def fields(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a config.json of any format in the current format, without `format`. Raises UserError as `format_of`."""
    format_of(config, where)
    return {name: value for name, value in config.items() if name != "format"}


def path(old: str, number: int) -> str:
    """The current path of an array that a checkpoint of format `number` has at `old`."""
    for step in range(number, FORMAT):
        for pattern, new in PATHS[step]:
            if re.fullmatch(pattern, old):
                old = re.sub(pattern, new, old)
                break
    return old
