"""Canonical JSON text, and equality as JSON sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json.encoder import JSONEncoder, encode_basestring
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._json import JsonValue

__all__ = ["canonical_text", "json_equal"]

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_encode_plain: Final = JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
# What the encoder of the standard library writes as we do; its numbers differ where they are floats.
_PLAIN: Final = frozenset({bool, int, str, type(None)})
_LEVELS: Final = 64


class _GiveUpError(Exception):
    """The fast walk cannot write the value."""


def canonical_text(value: JsonValue) -> str:
    """The one JSON text of a value: no spaces, keys in their order, numbers as JavaScript prints them.

    Characters outside ASCII stay as they are; lone surrogates are escaped, so the text can always be encoded. An ``int`` of
    any size is written exactly.

    Args:
        value: Lossless JSON; frozen containers too.

    Raises:
        TypeError: It is not JSON.
        ValueError: A number in it is not finite.

    Source: ``spec/behaviour.md`` 0.4.5, 0.4.6.
    """
    parts: list[str] = []
    try:
        _write_fast(value, _LEVELS, parts.append)
    except (_GiveUpError, RecursionError, ValueError):
        parts.clear()
        _write_slowly(value, parts)
    text = "".join(parts)
    return text if text.isascii() else _SURROGATES.sub(_escape, text)
