"""Reading the argument text that a provider sends.

Source: ``spec/behaviour.md`` G4.1, 0.4.2; ``docs/design.md``, Decisions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from ._json import JsonValue
from ._json_kinds import is_array, is_object

__all__ = ["parse_argument_text", "parse_json", "unwrap_double_encoded"]

_SPACE = re.compile(r"[ \t\n\r]*")

_CHUNK = 4000


def parse_argument_text(text: str) -> JsonValue:
    """What a raw argument text means.

    Returns:
        ``{}`` for the empty text, the value for JSON, and the text itself for anything else. The value may still
        not be lossless: ``1e999`` reads as infinity and ``-0`` as negative zero, as the model wrote them.
    """
    if not text:
        return {}
    try:
        return parse_json(text)
    except ValueError:
        return text


def parse_json(text: str) -> JsonValue:
    """Read JSON of any depth, with integers of any size.

    Raises:
        ValueError: It is not JSON; ``NaN`` and ``Infinity`` are not.
    """
    try:
        return json.loads(text, parse_int=_parse_int, parse_constant=_refuse)
    except RecursionError:
        return _Reader(text).read()


def _refuse(token: str) -> Any:
    msg = f"{token} is not JSON"
    raise ValueError(msg)


def _parse_int(token: str) -> float:
    if token == "-0":
        return -0.0
    if len(token) <= _CHUNK:
        return int(token)
    # int() refuses more than 4,300 digits at once; the text itself bounds the work.
    sign, digits = (-1, token[1:]) if token.startswith("-") else (1, token)
    value = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return sign * value


class _Reader:
    """Reads JSON with an explicit stack; scalars are left to the standard library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._scan = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse).raw_decode

    def read(self) -> JsonValue:
        root: list[JsonValue] = []
        # Each open container, with the key that its next value belongs to.
        stack: list[tuple[Any, str | None]] = [(root, None)]
        while True:
            container, key = stack[-1]
            opened = self._value(container, key)
            if opened is not None and self._begin(opened, stack):
                continue
            if self._end_values(stack):
                return root[0]

    def _value(self, container: Any, key: str | None) -> Any:
        """Read a scalar into its container, or open a new container and return it."""
        self._skip()
        char = self._text[self._at : self._at + 1]
        value: Any
        if char == "{":
            value = {}
            self._at += 1
        elif char == "[":
            value = []
            self._at += 1
        else:
            value, self._at = self._scan(self._text, self._at)
        if key is None:
            container.append(value)
        else:
            container[key] = value
        return value if char in ("{", "[") and char else None

    def _begin(self, opened: Any, stack: list[tuple[Any, str | None]]) -> bool:
        """Step into a container; ``False`` if it is empty and so over already."""
        self._skip()
        if self._text[self._at : self._at + 1] == ("}" if isinstance(opened, dict) else "]"):
            self._at += 1
            return False
        stack.append((opened, self._key() if isinstance(opened, dict) else None))
        return True

    def _end_values(self, stack: list[tuple[Any, str | None]]) -> bool:
        """Move to the next value, closing what ends; whether the text ends."""
        while len(stack) > 1:
            container, _ = stack[-1]
            self._skip()
            char = self._text[self._at : self._at + 1]
            self._at += 1
            if char == ",":
                stack[-1] = (container, self._key() if isinstance(container, dict) else None)
                return False
            if char != ("}" if isinstance(container, dict) else "]"):
                self._fail()
            stack.pop()
        self._skip()
        if self._at != len(self._text):
            self._fail()
        return True

    def _key(self) -> str:
        self._skip()
        if self._text[self._at : self._at + 1] != '"':
            self._fail()
        key, self._at = self._scan(self._text, self._at)
        self._skip()
        if self._text[self._at : self._at + 1] != ":":
            self._fail()
        self._at += 1
        return cast("str", key)

    def _skip(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = self._at if match is None else match.end()

    def _fail(self) -> None:
        msg = f"not JSON at character {self._at}"
        raise ValueError(msg)


def unwrap_double_encoded(schema: Mapping[str, JsonValue], arguments: JsonValue) -> JsonValue:
    """Undo one level of double encoding where the schema wants an object or array and a string holds one.

    Args:
        schema: JSON Schema of the arguments.
        arguments: What was read; left alone.

    Returns:
        The arguments, with such strings replaced by what they hold. A string is never touched where the schema lets
        a string pass.
    """
    unwrapped = _unwrapped(schema, arguments)
    properties = schema.get("properties")
    if not is_object(unwrapped) or not isinstance(properties, Mapping):
        return unwrapped
    return {
        key: _unwrapped(properties[key], value) if isinstance(properties.get(key), Mapping) else value
        for key, value in unwrapped.items()
    }


def _unwrapped(schema: Mapping[str, JsonValue], value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or schema.get("type") not in ("object", "array"):
        return value
    try:
        held = parse_json(value)
    except ValueError:
        return value
    wanted = is_object(held) if schema["type"] == "object" else is_array(held)
    return held if wanted else value
