"""Claims: what a call touches, and so which calls may overlap."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

import attrs

__all__ = ["ANY", "EXCLUSIVE", "INDEPENDENT", "PARALLEL", "Claims", "Keys"]


class _Any(enum.Enum):
    ANY = "ANY"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any.ANY
"""Every key there is: it meets every non-empty set of keys."""

Keys: TypeAlias = frozenset[str] | Literal[_Any.ANY]
_KeysIn: TypeAlias = Iterable[str] | Literal[_Any.ANY]


def _keys(value: _KeysIn) -> Keys:
    if value is ANY:
        return ANY
    if isinstance(value, str):
        msg = f"claims take a set of keys, got the single string {value!r}; write {{{value!r}}}"
        raise TypeError(msg)
    keys = frozenset(value)
    for key in cast("frozenset[object]", keys):
        if not isinstance(key, str):
            msg = f"a claim's key is a string, got {key!r}"
            raise TypeError(msg)
    return keys


@attrs.frozen
class Claims:
    """What one call touches.

    Two calls conflict when either writes ``ANY``, or when the writes of one meet the reads or writes of the
    other. Keys meet by equality only; ``ANY`` meets every non-empty set.

    Attributes:
        reads: The keys it reads, or ``ANY``.
        writes: The keys it changes, or ``ANY``.

    Source: ``docs/design.md``, Claims.
    """

    reads: Keys = attrs.field(default=frozenset[str](), converter=_keys)
    writes: Keys = attrs.field(default=frozenset[str](), converter=_keys)

    @classmethod
    def path(cls, *, read: _Paths = (), write: _Paths = ()) -> Claims:
        """Claims on files, as ``file:`` keys of their real paths.

        Args:
            read: One path or several that the call reads.
            write: One path or several that the call changes; they need not exist.

        Returns:
            The claims. Two spellings of one file (links, ``..``) give one key.
        """
        return cls(reads=_file_keys(read), writes=_file_keys(write))


_Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def _file_keys(paths: _Paths) -> frozenset[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return frozenset(f"file:{Path(path).resolve()}" for path in several)


PARALLEL: Final = Claims(reads=ANY)
"""Reads anything and changes nothing: overlaps with everything but calls that write."""
EXCLUSIVE: Final = Claims(writes=ANY)
"""May change anything: runs alone."""
INDEPENDENT: Final = Claims()
"""Touches nothing that another call touches: overlaps with everything but exclusive calls."""
