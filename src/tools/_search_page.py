"""What of a long list of search results is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from ..registry import JsonValue, Outcome
from ._cards import card_of

__all__ = ["cut_line", "cut_note", "fitting", "present_search"]

_META_BYTES: Final = 64 * 1024
_LINE_BYTES: Final = 2_000
_LINE_CUT: Final = " (line truncated)"


def cut_line(line: str) -> str:
    """``line``, cut after 2,000 bytes of UTF-8 with a note that says so."""
    encoded = line.encode("utf-8", "surrogatepass")
    if len(encoded) <= _LINE_BYTES:
        return line
    return encoded[:_LINE_BYTES].decode("utf-8", "ignore") + _LINE_CUT


def cut_note(shown: int, total: int, what: str) -> str:
    """The footer of a page that is not the whole list."""
    return f"[showing {shown} of {total} {what}; full list: (unavailable)]"


def fitting(items: Iterable[JsonValue]) -> list[JsonValue]:
    """The first of the items that together take at most 64 KiB as JSON."""
    kept: list[JsonValue] = []
    left = _META_BYTES
    for item in items:
        left -= len(json.dumps(item)) + 2
        if left < 0:
            break
        kept.append(item)
    return kept


def present_search(_arguments: object, outcome: Outcome) -> JsonValue:
    """The ``search`` card of a result, from its metadata."""
    return card_of(outcome.meta, "search", {"shape", "truncated", "total"})
