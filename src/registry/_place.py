"""Where a part of a value or schema sits, told only when somebody asks.

A walk that carried the text of each path would copy it at every level: a schema 100,000 levels deep has paths of a
megabyte. A place is a link to the place around it instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["Place", "path_text", "place_text"]

Place: TypeAlias = "tuple[Place, str | int] | None"
"""The place around it and the key or index in there; ``None`` is the root."""


def place_text(place: Place, root: str) -> str:
    """The path of a place, as ``root.a.b[2]``.

    Args:
        place: The place.
        root: What the root is called; after an empty name there is no leading dot.
    """
    keys: list[str | int] = []
    while place is not None:
        place, key = place
        keys.append(key)
    return path_text(reversed(keys), root)


def path_text(keys: Iterable[str | int], root: str = "") -> str:
    """The path that ``keys`` lead along from ``root``, as ``root.a.b[2]``."""
    text = root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text if root else text.removeprefix(".")
