"""Cards: what a user interface shows of a call or its result."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..registry import JsonValue

__all__ = ["card_of"]


def card_of(meta: JsonValue, kind: str, keys: AbstractSet[str]) -> JsonValue:
    """The card that a result's metadata is, or ``None`` if it lacks one of ``keys``.

    It may: metadata is also read back from journals that other versions wrote.

    Source: ``spec/catalogue.md`` 1.6.
    """
    return {"type": kind, **meta} if isinstance(meta, dict) and keys <= meta.keys() else None
