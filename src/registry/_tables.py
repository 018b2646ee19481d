"""The two tables behind registrations: one iterated live, one snapshotted at dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

if TYPE_CHECKING:
    from ._scopes import Scope

__all__ = ["HookTable", "LiveTable"]

T = TypeVar("T")


class LiveTable(Generic[T]):
    """Entries in registration order, iterated live within one generation.

    An entry that is added while the table is iterated is visited in the same pass. When the table becomes empty its
    generation ends: entries added later belong to a new one, which running iterators do not see. Equal entries are
    independent of each other.

    Source: ``spec/behaviour.md`` C3.6, C3.7, C5.3.
    """

    def __init__(self) -> None:
        self._rows: list[list[T]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        rows = self._rows
        position = 0
        # The length is read anew in each round, since an entry may add another.
        while position < len(rows):
            yield from rows[position]
            position += 1

    def add(self, entry: T) -> Callable[[], None]:
        """Add an entry; returns what removes it, which acts once."""
        row = [entry]
        self._rows.append(row)
        self._count += 1

        def remove() -> None:
            if not row:
                return
            row.clear()
            self._count -= 1
            if self._count == 0:
                self._rows = []

        return remove


@attrs.frozen(eq=False)
class _Hook(Generic[T]):
    function: T
    scope: Scope | None


class HookTable(Generic[T]):
    """Hooks of one kind, of the registry and of all scopes, in one order: the first is the outermost.

    A hook of the registry sees every call; a hook of a scope sees the calls of that scope and of its descendants.

    Source: ``spec/behaviour.md`` 0.1.4, 0.1.5, C2.1, C2.2.
    """

    def __init__(self) -> None:
        self._hooks: list[_Hook[T]] = []
        self._seen_by: dict[Scope | None, tuple[T, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, function: T, scope: Scope | None, *, prepend: bool) -> Callable[[], None]:
        """Add a hook at the inner end, or at the outer one; returns what removes it, which acts once."""
        hook = _Hook(function, scope)
        self._hooks.insert(0 if prepend else len(self._hooks), hook)
        self._seen_by.clear()

        def remove() -> None:
            if hook in self._hooks:
                self._hooks.remove(hook)
                self._seen_by.clear()

        return remove

    def everyone(self) -> tuple[T, ...]:
        """Every hook, whatever its scope: a snapshot."""
        return tuple(hook.function for hook in self._hooks)

    def seen_by(self, scope: Scope | None) -> tuple[T, ...]:
        """The hooks that a call of ``scope`` meets, outermost first: a snapshot that later changes leave alone."""
        if not self._hooks:
            return ()
        found = self._seen_by.get(scope)
        if found is None:
            chain = () if scope is None else scope.chain
            found = tuple(hook.function for hook in self._hooks if hook.scope is None or hook.scope in chain)
            self._seen_by[scope] = found
        return found
