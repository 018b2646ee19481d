"""One JSON text for each value: compact, readable by every encoder, never crashing one.

Source: ``spec/behaviour.md`` 0.4.5, 0.4.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from ..errors import NotLosslessError
from ._json import JsonValue
from ._json_kinds import is_array, is_object

__all__ = ["canonical_text", "number_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_PLAIN_DIGITS = 21
_MOST_LEADING_ZEROS = 6


def canonical_text(value: JsonValue) -> str:
    """The compact JSON text: non-ASCII raw, lone surrogates escaped, integral floats as integers. Iterative.

    Raises:
        NotLosslessError: A part is not JSON.
    """
    parts: list[str] = []
    # Each frame is what is left of a container, and its closing bracket.
    stack: list[tuple[Iterator[tuple[str, JsonValue]], str]] = []
    _open(value, parts, stack)
    while stack:
        left, closing = stack[-1]
        try:
            prefix, item = next(left)
        except StopIteration:
            stack.pop()
            parts.append(closing)
            continue
        parts.append(prefix)
        _open(item, parts, stack)
    return "".join(parts)


def _open(value: JsonValue, parts: list[str], stack: list[tuple[Iterator[tuple[str, JsonValue]], str]]) -> None:
    if is_object(value):
        parts.append("{")
        stack.append((_members(value), "}"))
    elif is_array(value):
        parts.append("[")
        stack.append((_elements(value), "]"))
    else:
        parts.append(_scalar_text(value))


def _members(value: dict[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    comma = ""
    for key, item in value.items():
        yield f"{comma}{_string_text(key)}:", item
        comma = ","


def _elements(value: list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    comma = ""
    for item in value:
        yield comma, item
        comma = ","


def _scalar_text(value: object) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _string_text(value)
    if isinstance(value, int | float):
        return number_text(value)
    raise NotLosslessError("", f"a value of type {type(value).__qualname__} is not JSON")


def _string_text(text: str) -> str:
    # json.dumps escapes what JSON must, and leaves lone surrogates raw, which no UTF-8 encoder takes.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(text, ensure_ascii=False))


def number_text(value: float) -> str:
    """A number as ECMAScript prints it: ``1e-7``, ``100``, ``100000000000000000000``; an ``int`` exactly."""
    if isinstance(value, int):
        return _int_text(value)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    if len(digits) <= point <= _MOST_PLAIN_DIGITS:
        return digits.ljust(point, "0")
    if 0 < point <= _MOST_PLAIN_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if -_MOST_LEADING_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def _int_text(value: int) -> str:
    """The digits of an integer of any size; ``str`` refuses more than 4,300 of them."""
    try:
        return str(value)
    except ValueError:
        pass
    sign, value = ("-", -value) if value < 0 else ("", value)
    chunks: list[str] = []
    base = cast("int", 10**4000)
    while value:
        value, chunk = divmod(value, base)
        chunks.append(str(chunk).rjust(4000, "0"))
    return sign + "".join(reversed(chunks)).lstrip("0")
