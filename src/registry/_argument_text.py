"""Reading the argument text that a provider sends.

Source: ``spec/behaviour.md`` G4.1, 0.4.2; ``docs/design.md``, Decisions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from ._json import JsonValue
from ._json_kinds import is_array, is_object

__all__ = ["parse_argument_text", "parse_json", "unwrap_double_encoded"]

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_FEW_DIGITS: Final = 600
"""``int`` takes this many at any setting of the interpreter; at its default it refuses more than 4,300."""


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
    """Read JSON of any depth, with integers of any size. Of a repeated key the last value counts.

    Raises:
        ValueError: It is not JSON; ``NaN`` and ``Infinity`` are not.
    """
    try:
        return cast("JsonValue", _DECODER.decode(text))
    except RecursionError:
        return DeepReader(text).read()


def _refuse(token: str) -> NoReturn:
    msg = f"{token} is not JSON"
    raise ValueError(msg)


def _parse_int(token: str) -> float:
    if len(token) <= _FEW_DIGITS:
        return int(token) or (-0.0 if token[0] == "-" else 0)
    return -_parse_digits(token[1:]) if token.startswith("-") else _parse_digits(token)


def _parse_digits(digits: str) -> int:
    """Read digits by halves, which takes far less than the square of their number."""
    if len(digits) <= _FEW_DIGITS:
        return int(digits)
    low = len(digits) // 2
    scale: int = 10**low
    return _parse_digits(digits[:-low]) * scale + _parse_digits(digits[-low:])


_DECODER: Final = json.JSONDecoder(parse_int=_parse_int, parse_constant=_refuse)


class DeepReader:
    """Reads JSON with an explicit stack; scalars are left to the standard library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

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
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        if key is None:
            container.append(value)
        else:
            container[key] = value
        return value if char in ("{", "[") else None

    def _begin(self, opened: Any, stack: list[tuple[Any, str | None]]) -> bool:
        """Step into a container; ``False`` if it is empty and so over already."""
        self._skip()
        if self._text[self._at : self._at + 1] == ("}" if is_object(opened) else "]"):
            self._at += 1
            return False
        stack.append((opened, self._key() if is_object(opened) else None))
        return True

    def _end_values(self, stack: list[tuple[Any, str | None]]) -> bool:
        """Move to the next value, closing what ends; whether the text ends."""
        while len(stack) > 1:
            container, _ = stack[-1]
            self._skip()
            char = self._text[self._at : self._at + 1]
            self._at += 1
            if char == ",":
                stack[-1] = (container, self._key() if is_object(container) else None)
                return False
            if char != ("}" if is_object(container) else "]"):
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
        key, self._at = _DECODER.raw_decode(self._text, self._at)
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
        schema: JSON Schema of the arguments. Lists of types, ``oneOf``, ``anyOf`` and local ``$ref`` are understood.
        arguments: What was read; left alone.

    Returns:
        The arguments, with such a string at the root or at one of its properties replaced by what it holds. Where the
        schema also admits a string, the string stays.

    Source: ``docs/design.md`` section 5, argument text.
    """
    unwrapped = _unwrapped(schema, schema, arguments)
    properties = schema.get("properties")
    if not is_object(unwrapped) or not is_object(properties):
        return unwrapped
    return {
        key: _unwrapped(properties[key], schema, value) if key in properties else value
        for key, value in unwrapped.items()
    }


def _unwrapped(schema: object, root: Mapping[str, JsonValue], value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or value.lstrip(" \t\n\r")[:1] not in ("{", "["):
        return value
    admitted = _admitted_types(schema, root)
    if "string" in admitted or "any" in admitted:
        return value
    try:
        held = parse_json(value)
    except ValueError:
        return value
    return held if ("object" if is_object(held) else "array") in admitted else value


def _admitted_types(schema: object, root: Mapping[str, JsonValue]) -> set[str]:
    """The types that a schema lets pass, as far as its outline tells; ``any`` if it does not tell."""
    admitted: set[str] = set()
    pending: list[object] = [schema]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kinds = node.get("type") if is_object(node) else None
        if isinstance(kinds, str):
            admitted.add(kinds)
        elif is_array(kinds):
            admitted.update(kind for kind in kinds if isinstance(kind, str))
        else:
            further = _alternatives(node, root) if is_object(node) else []
            admitted.update(() if further else ("any",))
            pending.extend(further)
    return admitted


def _alternatives(node: dict[str, Any], root: Mapping[str, JsonValue]) -> list[Any]:
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            target = target.get(step) if is_object(target) else None
        return [target]
    branches = node.get("anyOf", node.get("oneOf"))
    return branches if is_array(branches) else []
