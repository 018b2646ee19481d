"""Lossless JSON values: checked, copied and frozen.

A value is lossless when it is built of exactly ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and ``dict``
with string keys, holds no NaN, infinity or negative zero, and does not contain itself. The frozen containers made here
count too. Source: ``spec/behaviour.md`` B1; any ``int`` is lossless (``docs/design.md`` section 5).

Every walk has two forms. The fast one recurses over at most ``_LEVELS`` levels and knows no more than "not here";
whatever it gives up on (depth, cycles, faults) is walked again by the slow one, which keeps its own stack and names the
fault.
"""

# What type() gives for a value of any type is unknown to pyright.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias, cast, final

from ..errors import NotLosslessError
from ._canonical import canonical_text, json_equal
from ._json_walk import Forms, copy_slowly, is_lossless_float

__all__ = [
    "FrozenDict",
    "FrozenList",
    "JsonObject",
    "JsonValue",
    "canonical_text",
    "freeze",
    "is_json",
    "json_equal",
    "snapshot",
    "thaw",
]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"


@final
class FrozenDict(dict[str, JsonValue]):
    """A JSON object that cannot change, at any depth.

    It is equal to, and usable wherever, a plain ``dict`` is. Whatever would change it raises ``TypeError``. What copies
    it (``copy.copy``, ``copy()``, ``|``) gives a plain ``dict`` of the same, still frozen, values; ``copy.deepcopy``
    and ``thaw`` give plain mutable values all the way down. A pickle of it comes back frozen.

    Args:
        source: What ``dict`` takes.
        **entries: Further entries.

    Raises:
        NotLosslessError: It is not lossless JSON.
    """

    __slots__ = ()

    def __new__(cls, source: Any = (), /, **entries: JsonValue) -> FrozenDict:
        return cast("FrozenDict", freeze(dict(source, **entries)))

    def __init__(self, source: Any = (), /, **entries: JsonValue) -> None:
        pass  # __new__ has filled it; dict's own would fill it again, also when called later

    def __copy__(self) -> dict[str, JsonValue]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> JsonValue:
        return snapshot(self)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[JsonValue], JsonValue], tuple[JsonValue]]:
        return freeze, (snapshot(self),)


@final
class FrozenList(list[JsonValue]):
    """A JSON array that cannot change, at any depth; see ``FrozenDict``.

    Args:
        source: The items.

    Raises:
        NotLosslessError: It is not lossless JSON.
    """

    __slots__ = ()

    def __new__(cls, source: Iterable[JsonValue] = (), /) -> FrozenList:
        return cast("FrozenList", freeze(list(source)))

    def __init__(self, source: Iterable[JsonValue] = (), /) -> None:
        pass  # as in FrozenDict

    def __copy__(self) -> list[JsonValue]:
        return list(self)

    def __deepcopy__(self, memo: object) -> JsonValue:
        return snapshot(self)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[JsonValue], JsonValue], tuple[JsonValue]]:
        return freeze, (snapshot(self),)


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    kind = "object" if isinstance(self, dict) else "array"
    msg = f"this JSON {kind} is frozen and cannot be changed; quiesce.registry.thaw(value) makes a copy that can"
    raise TypeError(msg)


# Set from outside the classes: in their bodies each would be an override with a wrong signature.
for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(FrozenDict, _name, _refuse)
for _name in (
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove"),
    *("reverse", "sort"),
):
    setattr(FrozenList, _name, _refuse)


def snapshot(value: object) -> JsonValue:
    """A detached copy in plain ``dict`` and ``list``, if the value is lossless JSON.

    Args:
        value: Anything. A part that is reachable twice is copied twice.

    Raises:
        NotLosslessError: It is not lossless JSON; the error names the first such part in walk order.

    Source: ``spec/behaviour.md`` B1.4.
    """
    try:
        return cast("JsonValue", _snapshot_fast(value, _LEVELS))
    except (_GiveUpError, RecursionError):
        return copy_slowly(value, _ATOMS, _PLAIN_FORMS)


def freeze(value: object) -> JsonValue:
    """A detached copy that cannot change, made of ``FrozenDict`` and ``FrozenList``, if the value is lossless JSON.

    Args:
        value: Anything. What is frozen already is not copied.

    Raises:
        NotLosslessError: It is not lossless JSON; the error names the first such part in walk order.

    Source: ``spec/behaviour.md`` 0.2.1.
    """
    try:
        return cast("JsonValue", _freeze_fast(value, _LEVELS))
    except (_GiveUpError, RecursionError):
        return copy_slowly(value, _FROZEN_ATOMS, _FROZEN_FORMS)


def thaw(value: JsonValue) -> JsonValue:
    """A copy of a frozen (or any lossless) value that may be changed at every depth: ``snapshot`` by its purpose."""
    return snapshot(value)


def is_json(value: object) -> bool:
    """Whether ``snapshot`` would accept the value.

    Source: ``spec/behaviour.md`` B1.7.
    """
    try:
        return _is_json_fast(value, _LEVELS)
    except (_GiveUpError, RecursionError):
        pass
    try:
        copy_slowly(value, _FROZEN_ATOMS, _PLAIN_FORMS)
    except NotLosslessError:
        return False
    return True


# How many levels the fast walks recurse: enough for almost every value, and a small part of the default recursion
# limit. A caller who is close to that limit gets a RecursionError in here, and so the slow walk.
_LEVELS: Final = 64


class _GiveUpError(Exception):
    """The fast walk cannot answer."""


_ATOMS: Final = frozenset[object]({bool, int, str, type(None)})
_FROZEN_ATOMS: Final = frozenset[object]({*_ATOMS, FrozenDict, FrozenList})


# The base classes' own methods, which the frozen classes refuse under the same names. (Their types say nothing here.)
_DICT: Final[Any] = dict
_LIST: Final[Any] = list
_new_dict: Final[Callable[[type[FrozenDict]], FrozenDict]] = _DICT.__new__
_new_list: Final[Callable[[type[FrozenList]], FrozenList]] = _LIST.__new__
_fill_dict: Final[Callable[[FrozenDict, dict[str, JsonValue]], None]] = _DICT.update
_fill_list: Final[Callable[[FrozenList, list[JsonValue]], None]] = _LIST.extend
_set_key: Final[Callable[[FrozenDict, str, JsonValue], None]] = _DICT.__setitem__
_set_item: Final[Callable[[FrozenList, int, JsonValue], None]] = _LIST.__setitem__


# In both copiers a container is copied whole and its parts are looked at in the copy, which no other thread can change.
# ``item and item - item == 0.0`` holds for a float that is finite and not zero; others take the long way.
# Helpers for the two kinds of container would cost a call for each.


def _snapshot_fast(value: Any, levels: int) -> Any:  # noqa: C901
    kind: Any = type(value)
    if kind is dict or kind is FrozenDict:
        if not levels:
            raise _GiveUpError
        copied: dict[str, Any] = dict(value)
        for key, item in copied.items():
            if type(key) is not str:
                raise _GiveUpError
            kind = type(item)
            if kind not in _ATOMS and not (kind is float and item and item - item == 0.0):
                copied[key] = _snapshot_fast(item, levels - 1)
        return copied
    if kind is list or kind is FrozenList:
        if not levels:
            raise _GiveUpError
        items: list[Any] = list(value)
        for index, item in enumerate(items):
            kind = type(item)
            if kind not in _ATOMS and not (kind is float and item and item - item == 0.0):
                items[index] = _snapshot_fast(item, levels - 1)
        return items
    if kind in _ATOMS or (kind is float and is_lossless_float(value)):
        return value
    raise _GiveUpError


def _freeze_fast(value: Any, levels: int) -> Any:  # noqa: C901
    kind: Any = type(value)
    if kind is dict:
        if not levels:
            raise _GiveUpError
        copied: Any = _new_dict(FrozenDict)
        _fill_dict(copied, value)
        for key, item in copied.items():
            if type(key) is not str:
                raise _GiveUpError
            kind = type(item)
            if kind not in _FROZEN_ATOMS and not (kind is float and item and item - item == 0.0):
                _set_key(copied, key, _freeze_fast(item, levels - 1))
        return copied
    if kind is list:
        if not levels:
            raise _GiveUpError
        items: Any = _new_list(FrozenList)
        _fill_list(items, value)
        for index, item in enumerate(items):
            kind = type(item)
            if kind not in _FROZEN_ATOMS and not (kind is float and item and item - item == 0.0):
                _set_item(items, index, _freeze_fast(item, levels - 1))
        return items
    if kind in _FROZEN_ATOMS or (kind is float and is_lossless_float(value)):
        return value
    raise _GiveUpError


def _is_json_fast(value: Any, levels: int) -> bool:
    kind: Any = type(value)
    if kind is dict:
        if not levels:
            raise _GiveUpError
        for key, item in value.items():
            if type(key) is not str or not (type(item) in _FROZEN_ATOMS or _is_json_fast(item, levels - 1)):
                return False
        return True
    if kind is list:
        if not levels:
            raise _GiveUpError
        for item in value:  # noqa: SIM110 - half the time of all()
            if type(item) not in _FROZEN_ATOMS and not _is_json_fast(item, levels - 1):
                return False
        return True
    return kind in _FROZEN_ATOMS or (kind is float and is_lossless_float(value))


_PLAIN_FORMS: Final[Forms] = {dict: dict, list: list, FrozenDict: dict, FrozenList: list}
_FROZEN_FORMS: Final[Forms] = {dict: partial(_new_dict, FrozenDict), list: partial(_new_list, FrozenList)}
