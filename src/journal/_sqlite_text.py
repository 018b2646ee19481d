"""The text of an event in a SQLite column: exact, at any depth, for every string that Python can hold."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

from ..errors import NotLosslessError
from ..registry import canonical_text, freeze, parse_argument_text
from ._events import Event, event_from_json, event_to_json

__all__ = ["Column", "event_from_column", "event_to_column", "text_to_column"]

Column: TypeAlias = str | bytes

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Floats by their repr, so that they come back as the same float; canonical_text prints them as ECMAScript does.
# Frozen values hold no cycle, so none is looked for.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def event_to_column(event: Event) -> Column:
    """The event as one JSON text: ``str`` in all but one case, see ``text_to_column``.

    Raises:
        TypeError: Something in it is not JSON.
        ValueError: Something in it is not lossless JSON.
    """
    data = event_to_json(event)
    try:
        text = _ENCODER.encode(data)
    except (RecursionError, ValueError):  # too deep, or an integer of more digits than int() prints
        text = _deep_text(data)
    return text_to_column(text)


def text_to_column(text: str) -> Column:
    """A JSON text as SQLite can hold it.

    Lone surrogates are escaped, which every JSON reader takes. Two of them that stand beside each other as if they were
    one character would be read as that character: such a text is kept as bytes, in UTF-8 that lets surrogates pass.
    """
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    if _PAIR.search(text) is not None:
        return text.encode("utf-8", "surrogatepass")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def event_from_column(column: Column) -> Event:
    """Read what ``event_to_column`` wrote; the values inside are frozen.

    Raises:
        ValueError: It is not an event.
    """
    text = column.decode("utf-8", "surrogatepass") if isinstance(column, bytes) else column
    data = parse_argument_text(text)
    # The values in an event were checked when it was made; only a time can be -0.0, and what it is in is not frozen.
    with suppress(NotLosslessError):
        data = freeze(data)
    if not isinstance(data, dict):
        msg = f"not a JSON object: {text[:40]!r}"
        raise ValueError(msg)  # noqa: TRY004 - the text is wrong, not the type of an argument
    return event_from_json(data)


def _deep_text(value: object) -> str:
    parts: list[str] = []
    # What is left to write, last first: values, and text that goes between them.
    todo: list[tuple[bool, Any]] = [(False, value)]
    while todo:
        is_text, item = todo.pop()
        if is_text:
            parts.append(item)
        elif isinstance(item, dict):
            members = cast("dict[str, object]", item)
            todo.append((True, "}"))
            for number, key in reversed(list(enumerate(members))):
                todo += (False, members[key]), (True, f"{',' if number else ''}{_ENCODER.encode(key)}:")
            parts.append("{")
        elif isinstance(item, list):
            elements = cast("list[object]", item)
            todo.append((True, "]"))
            for number, element in reversed(list(enumerate(elements))):
                todo += (False, element), (True, "," if number else "")
            parts.append("[")
        elif type(item) is int:
            parts.append(canonical_text(item))
        else:
            parts.append(_ENCODER.encode(item))
    return "".join(parts)
