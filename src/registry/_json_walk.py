"""The slow walk over a value: any depth, and it names what is not lossless JSON."""

# What type() gives for a value of any type is unknown to pyright.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import NotLosslessError
from ._place import path_text

if TYPE_CHECKING:
    from ._json import JsonValue

__all__ = ["Forms", "copy_slowly", "is_lossless_float"]

Forms: TypeAlias = Mapping[type, Callable[[], Any]]


def is_lossless_float(value: float) -> bool:
    """Whether it is finite and not negative zero."""
    return math.isfinite(value) if value else math.copysign(1.0, value) > 0


class _Level:
    """One container that is being copied."""

    __slots__ = ("copy", "key", "rest", "source")

    def __init__(self, source: dict[Any, Any] | list[Any], copy: dict[str, Any] | list[Any]) -> None:
        self.source = source
        self.copy = copy
        self.rest: Iterator[tuple[Any, Any]] = iter(source.items() if isinstance(source, dict) else enumerate(source))
        self.key: str | int = 0

    def put(self, item: object) -> None:
        # The base classes' own methods: the copy may be a frozen container that is still being filled.
        if isinstance(self.copy, dict):
            _set_key(self.copy, self.key, item)
        else:
            _append(self.copy, item)


_DICT: Final[Any] = dict
_LIST: Final[Any] = list
_set_key: Final[Callable[[Any, str | int, object], None]] = _DICT.__setitem__
_append: Final[Callable[[Any, object], None]] = _LIST.append


def copy_slowly(value: object, atoms: Set[object], forms: Forms) -> JsonValue:
    """Copy a value of any depth, checking it.

    Args:
        value: Anything.
        atoms: The types whose values are kept as they are.
        forms: By type of container, what makes the empty container that takes the copy.

    Raises:
        NotLosslessError: It is not lossless JSON; the error names the first such part in walk order.
    """
    root: list[JsonValue] = []
    levels = [_Level([value], root)]
    open_ids: set[int] = set()
    while levels:
        level = levels[-1]
        for key, item in level.rest:
            level.key = key
            kind: Any = type(item)
            if kind in atoms or (kind is float and is_lossless_float(item)):
                level.put(item)
                continue
            problem = "it contains itself" if id(item) in open_ids else _problem(item, kind, forms)
            if problem is not None:
                raise NotLosslessError(path_text(level.key for level in levels[1:]), problem)
            levels.append(_Level(item, forms[kind]()))
            level.put(levels[-1].copy)
            open_ids.add(id(item))
            break
        else:
            levels.pop()
            open_ids.discard(id(level.source))
    return root[0]


def _problem(item: Any, kind: type, forms: Forms) -> str | None:
    if kind is float:
        return f"{item!r} is not a JSON number"
    if kind not in forms:
        return f"{kind.__module__}.{kind.__qualname__} is none of None, bool, int, float, str, list and dict"
    if issubclass(kind, dict):
        for key in item:
            if type(key) is not str:
                return f"the key {key!r:.80} is not a string"
    return None
