"""What kind of JSON a value is; cheap, and nothing is said of what it holds."""

from __future__ import annotations

from typing import Any, TypeGuard

from ._json import FrozenDict, FrozenList

__all__ = ["is_array", "is_object"]

_OBJECTS = frozenset({dict, FrozenDict})
_ARRAYS = frozenset({list, FrozenList})


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a JSON object: exactly a ``dict``, or a frozen one."""
    return type(value) in _OBJECTS


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array: exactly a ``list``, or a frozen one."""
    return type(value) in _ARRAYS
