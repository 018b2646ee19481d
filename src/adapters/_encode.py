"""JSON text that every file and socket can take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

import attrs

from ..errors import NotLosslessError
from ..registry import JsonValue, canonical_text

__all__ = ["encode"]

_INDENT = "  "


@attrs.define
class _Open:
    """A container that is being written."""

    identity: int
    members: Iterator[tuple[str, str, object]]
    close: str
    at: str = ""
    is_empty: bool = True


def encode(document: object, *, pretty: bool = False) -> str:
    """Write a document as JSON.

    Args:
        document: JSON: dicts with text keys, lists, tuples, texts, numbers, booleans and ``None``, of any depth.
        pretty: Indent by two spaces, one member a line; compact otherwise.

    Returns:
        The text. It always encodes as UTF-8: lone surrogates are escaped, all else outside ASCII is kept.

    Raises:
        NotLosslessError: A part is not JSON, such as NaN or an object that contains itself; it names the place.

    Source: ``docs/design.md``, section 5, lone surrogates and depth.
    """
    pieces: list[str] = []
    stack: list[_Open] = []
    ancestors: set[int] = set()
    _begin(document, pieces, stack, ancestors)
    while stack:
        top = stack[-1]
        member = next(top.members, None)
        if member is None:
            stack.pop()
            ancestors.discard(top.identity)
            if pretty and not top.is_empty:
                pieces.append("\n" + _INDENT * len(stack))
            pieces.append(top.close)
            continue
        top.at, key, value = member
        if not top.is_empty:
            pieces.append(",")
        top.is_empty = False
        if pretty:
            pieces.append("\n" + _INDENT * len(stack))
        if key:
            pieces.append(key + (": " if pretty else ":"))
        _begin(value, pieces, stack, ancestors)
    return "".join(pieces)


def _begin(value: object, pieces: list[str], stack: list[_Open], ancestors: set[int]) -> None:
    """Write a scalar whole, or open a container."""
    if isinstance(value, Mapping):
        members, brackets = _object_members(cast("Mapping[object, object]", value), stack), "{}"
    elif isinstance(value, list | tuple):
        members, brackets = _list_members(cast("list[object]", value)), "[]"
    else:
        pieces.append(_scalar(value, stack))
        return
    identity = id(cast("object", value))
    if identity in ancestors:
        raise NotLosslessError(_path(stack), "it contains itself")
    ancestors.add(identity)
    pieces.append(brackets[0])
    stack.append(_Open(identity, members, brackets[1]))


def _object_members(members: Mapping[object, object], stack: list[_Open]) -> Iterator[tuple[str, str, object]]:
    for key, value in members.items():
        if not isinstance(key, str):
            raise NotLosslessError(_path(stack[:-1]), f"a key is of type {type(key).__name__}, not text")
        yield f".{key}", canonical_text(key), value


def _list_members(elements: list[object]) -> Iterator[tuple[str, str, object]]:
    for index, value in enumerate(elements):
        yield f"[{index}]", "", value


def _scalar(value: object, stack: list[_Open]) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotLosslessError(_path(stack), f"{value!r} has no JSON form")
        # Python's own text reads back as the same float; the canonical text makes 1.0 an integer.
        return float.__repr__(value)
    try:
        return canonical_text(cast("JsonValue", value))
    except NotLosslessError as error:
        raise NotLosslessError(_path(stack), error.problem) from None


def _path(stack: list[_Open]) -> str:
    return "".join(opened.at for opened in stack).removeprefix(".")
