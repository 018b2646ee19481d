"""One JSON text for each value: compact, readable by every encoder, never crashing one; and equality of values.

Source: ``spec/behaviour.md`` 0.4.1, 0.4.5, 0.4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json.encoder import encode_basestring as _quoted
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

from ..errors import NotLosslessError

if TYPE_CHECKING:
    from ._json import JsonValue

__all__ = ["canonical_text", "json_equal", "number_text"]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOST_PLAIN_DIGITS: Final = 21
_MOST_LEADING_ZEROS: Final = 6
_LEVELS: Final = 64
"""How many levels the fast writer recurses; deeper values are written from the start with an explicit stack."""


class _GiveUpError(Exception):
    """The fast writer cannot write the value."""


def canonical_text(value: JsonValue) -> str:
    """The compact JSON text: non-ASCII raw, lone surrogates escaped, numbers as ECMAScript prints them, ints exactly.

    A reader gets the same JSON back. Only a float without fraction from 2**53 to 1e21 is written by the shortest digits
    that mean the same double, so a reader with exact integers may see another integer.

    Args:
        value: Lossless JSON of any depth; frozen containers too.

    Raises:
        NotLosslessError: A part is not JSON.
    """
    try:
        text = _write_fast(value, _LEVELS)
    except (_GiveUpError, RecursionError, TypeError, ValueError):  # too deep, a key that is no string, a huge int
        text = _write_slowly(value)
    # encode_basestring leaves lone surrogates raw, which no UTF-8 encoder takes.
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _write_fast(value: JsonValue, levels: int) -> str:  # noqa: C901 - helpers would cost a call for each container
    if isinstance(value, dict):
        if not levels:
            raise _GiveUpError
        members: list[str] = []
        for key, item in value.items():
            if type(item) is str:
                members.append(f"{_quoted(key)}:{_quoted(item)}")
            elif type(item) is int:
                members.append(f"{_quoted(key)}:{item!r}")
            else:
                members.append(f"{_quoted(key)}:{_write_fast(item, levels - 1)}")
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        if not levels:
            raise _GiveUpError
        elements: list[str] = []
        for item in value:
            if type(item) is str:
                elements.append(_quoted(item))
            elif type(item) is int:
                elements.append(repr(item))
            else:
                elements.append(_write_fast(item, levels - 1))
        return f"[{','.join(elements)}]"
    return _scalar_text(value)


def _write_slowly(value: JsonValue) -> str:
    parts: list[str] = []
    # Each frame is what is left of a container, and its closing bracket.
    stack: list[tuple[Iterator[tuple[str, JsonValue]], str]] = []
    prefix, item = "", value
    while True:
        if isinstance(item, dict):
            parts.append(prefix + "{")
            stack.append((_members(item), "}"))
        elif isinstance(item, list):
            parts.append(prefix + "[")
            stack.append((_elements(item), "]"))
        else:
            parts.append(prefix + _scalar_text(item))
        while stack:
            following = next(stack[-1][0], None)
            if following is not None:
                prefix, item = following
                break
            parts.append(stack.pop()[1])
        else:
            return "".join(parts)


def _members(value: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    comma = ""
    for key, item in value.items():
        yield f"{comma}{_key_text(key)}:", item
        comma = ","


def _elements(value: list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    comma = ""
    for item in value:
        yield comma, item
        comma = ","


def _key_text(key: object) -> str:
    if isinstance(key, str):
        return _quoted(key)
    raise NotLosslessError("", f"the key {key!r:.80} is not a string")


def _scalar_text(value: object) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | float):
        return number_text(value)
    raise NotLosslessError("", f"a value of type {type(value).__qualname__} is not JSON")


def number_text(value: float) -> str:
    """A number as ECMAScript prints it: ``1e-7``, ``100``, ``100000000000000000000``; an ``int`` exactly.

    Raises:
        NotLosslessError: It is not finite.
    """
    if isinstance(value, int):
        return _int_text(value)
    if not isfinite(value):
        raise NotLosslessError("", f"{value!r} is not a JSON number")
    # Both languages print the shortest digits that read back the same; they differ in when they print an exponent.
    mantissa, _, exponent = float.__repr__(value).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0") if value else "0"
    sign = "-" if value < 0 else ""
    return sign + _place_point(mantissa.removeprefix("-").replace(".", ""), int(exponent) + 1)


def _place_point(digits: str, point: int) -> str:
    """The text of 0.DIGITS times ten to the power of ``point``, where the point is not among the digits."""
    if len(digits) <= point <= _MOST_PLAIN_DIGITS:
        return digits.ljust(point, "0")
    if -_MOST_LEADING_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def _int_text(value: int) -> str:
    """The digits of an integer of any size; ``int`` itself refuses to write more than 4,300 of them."""
    try:
        return int.__repr__(value)
    except ValueError:
        pass
    sign, value = ("-", -value) if value < 0 else ("", value)
    chunks: list[str] = []
    base: int = 10**4000
    while value:
        value, chunk = divmod(value, base)
        chunks.append(str(chunk).rjust(4000, "0"))
    return sign + "".join(reversed(chunks)).lstrip("0")


def json_equal(one: object, other: object) -> bool:
    """Whether two values are the same JSON: ``1`` is ``1.0``, ``True`` is not ``1``, the order of keys does not matter.

    Args:
        one: A value of any depth; a frozen container is the same as a plain one.
        other: Another. What is not JSON equals nothing but itself.
    """
    pairs = [(cast("JsonValue", one), cast("JsonValue", other))]
    while pairs:
        a, b = pairs.pop()
        if a is b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs.extend((item, b[key]) for key, item in a.items())
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif not _scalars_equal(a, b):
            return False
    return True


def _scalars_equal(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return False  # equal booleans are identical
    if isinstance(one, int | float):
        return isinstance(other, int | float) and one == other
    return isinstance(one, str) and isinstance(other, str) and one == other
