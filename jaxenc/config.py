"""Frozen dataclasses to plain dicts and back, with errors that name the field and the nearest spelling.

Every part of jaxenc has its settings in one frozen dataclass next to its code; this file converts any of them. A field holds an int, a
float, a bool, a str, a tuple of those, or another such dataclass. "Not set" is 0, '' or (). A field that can hold one of several
dataclasses is declared with `kinds(name)` and written with a `kind` entry; the caller of `from_dict` passes the classes it may hold.
"""

import dataclasses
import difflib
import hashlib
import json
import sys
import typing
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jaxenc.errors import UserError

# The largest whole number of a field: devices count in int32, and a larger one would wrap around or overflow there.
LARGEST = 2**31 - 1
# A value of each type of tuple, for messages.
EXAMPLES = MappingProxyType({int: (1, 2), float: (1.0, 2.0), str: ("one", "two")})
# {name: {kind: class}}: the classes that a field declared with `kinds(name)` may hold, by their class attribute `kind`.
Tables = Mapping[str, Mapping[str, type]]


def kinds(name: str) -> dict[str, Any]:
    """Field metadata: the value is an instance of one of the classes in the table `name` of `Tables`."""
    return {"kinds": name}


def to_dict(value: Any) -> dict[str, Any]:
    """A frozen dataclass as a plain dict of nested dicts, tuples and scalars; `from_dict` inverts it."""
    out: dict[str, Any] = {"kind": value.kind} if hasattr(value, "kind") else {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        out[field.name] = to_dict(item) if dataclasses.is_dataclass(item) else item
    return out


def paths_of_strings(value: Any, prefix: str = "") -> Iterator[str]:
    """The dotted paths of the fields of a frozen dataclass, and of its parts, that hold a tuple of str."""
    hints = typing.get_type_hints(type(value))
    for field in dataclasses.fields(value):
        item, path = getattr(value, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(item):
            yield from paths_of_strings(item, f"{path}.")
        elif hints[field.name] == tuple[str, ...]:
            yield path


def from_dict(cls: type, data: Mapping[str, Any], where: str = "config", tables: Tables = MappingProxyType({})) -> Any:
    """An instance of `cls` from a nested mapping; missing fields take their default.

    where: the name of `data` in messages. tables: for the fields declared with `kinds`, each of which takes the classes of its table that
    are of its type. Raises UserError for an unknown key (with the nearest names), a missing field without a default, a value of the wrong
    type, a whole number above LARGEST and `data` that is not a mapping.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}
    if not isinstance(data, Mapping):
        raise UserError(f"{where} is {data!r}", fix=f"it holds the fields {', '.join(fields)}")
    unknown = [key for key in data if key not in fields]
    if unknown:
        raise UserError(f"{where}.{unknown[0]} is not a field", fix=_nearest(unknown[0], fields))
    hints = typing.get_type_hints(cls)
    values = {name: _convert(fields[name], hints[name], item, f"{where}.{name}", tables) for name, item in data.items()}
    required = [f.name for f in fields.values() if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise UserError(f"{where}.{missing[0]} is missing and has no default", fix="set it in the recipe")
    try:
        return cls(**values)
    except UserError as error:
        # A part of a part, such as a pair's generator: its class knows its fields as those of `model`.
        raise error.at(where) if where.count(".") > 1 else error from error


def _nearest(key: str, names: Mapping[str, Any], what: str = "fields") -> str:
    close = difflib.get_close_matches(key, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else f"use one of the {what} {', '.join(sorted(names))}"


def _convert(field: dataclasses.Field, hint: Any, value: Any, where: str, tables: Tables) -> Any:
    named = field.metadata.get("kinds")
    table = None if named is None else tables[named]
    if (table is not None or dataclasses.is_dataclass(hint)) and not isinstance(value, Mapping):
        fields = ["kind"] if table is not None else [f.name for f in dataclasses.fields(hint)]
        raise UserError(f"{where} is {value!r}", fix=f"it holds the fields {', '.join(fields)}{' and those of its kind' if table else ''}")
    if table is not None:
        rest = dict(value)
        kind = rest.pop("kind", "")
        # Before its fields are read: a pair of pairs of pairs may be deeper than Python's stack.
        fitting = {name: cls for name, cls in table.items() if issubclass(cls, hint)}
        if not isinstance(kind, str) or kind not in fitting:
            raise UserError(f"{where}.kind is {kind!r}", fix=_nearest(str(kind), fitting, "kinds"))
        return from_dict(table[kind], rest, where, tables)
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, where, tables)
    if typing.get_origin(hint) is tuple:
        item = typing.get_args(hint)[0]
        if not isinstance(value, (tuple, list)):
            raise UserError(f"{where} is {value!r}", fix=f"it takes a tuple such as {EXAMPLES[item]}")
        return tuple(_scalar(item, element, f"{where}[{i}]") for i, element in enumerate(value))
    return _scalar(hint, value, where)


def _scalar(hint: type, value: Any, where: str) -> Any:
    """`value` as an int up to LARGEST, a finite float, bool or str; an int is a float too, a bool is never a number."""
    # math.isfinite would raise OverflowError for an int that is too large for a float.
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if hint is float and number:
        return float(value)
    if hint is int and number and float(value).is_integer():
        if value > LARGEST:
            raise UserError(f"{where} is {int(value)}", fix="it is at most 2^31 - 1")
        return int(value)
    if hint in (bool, str) and isinstance(value, hint):
        return value
    raise UserError(f"{where} is {value!r}", fix=f"it takes a value of type {hint.__name__}")


def at_least(low: float, part: str, values: Any, *names: str) -> None:
    """Raises UserError for the first of the fields `names` of the dataclass `values` that is below `low` or no number (NaN), or has such an
    item.

    part: the name of the dataclass in the message, such as `train`.
    """
    for name in names:
        held = getattr(values, name)
        if any(not value >= low for value in (held if isinstance(held, tuple) else (held,))):
            raise UserError(f"{part}.{name} is {held}", fix=f"it is at least {low}")


def flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every leaf of a nested dict, in its order."""
    for key, value in data.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{path}.")
        else:
            yield path, value


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(path, left, right) of every leaf that differs; the missing side of a leaf is ''. A list equals a tuple with the same items."""
    a = {path: _plain(value) for path, value in flatten(left)}
    b = {path: _plain(value) for path, value in flatten(right)}
    return [(path, a.get(path, ""), b.get(path, "")) for path in dict.fromkeys([*a, *b]) if a.get(path, "") != b.get(path, "")]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def fingerprint(data: Any) -> str:
    """sha256 of the canonical JSON of `data`: the same for equal values on every machine."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
