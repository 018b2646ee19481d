"""Trio's locks that are still held, found by looking at the objects that Python's collector knows."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs
import trio

from ._origins import Place, shown, users_place
from ._where import calling_frame, place_of_task

__all__ = ["HeldLock", "HeldLocks", "only_new_objects"]

Holdable: TypeAlias = trio.Lock | trio.StrictFIFOLock | trio.Semaphore | trio.CapacityLimiter

_TYPES: frozenset[type] = frozenset({trio.Lock, trio.StrictFIFOLock, trio.Semaphore, trio.CapacityLimiter})
_TAKE = ("acquire_nowait", "acquire_on_behalf_of_nowait")


@attrs.frozen
class HeldLock:
    """One lock, and one that holds it.

    Attributes:
        what: Its type and its holder.
        line: Where it was taken if that was seen, else where its holder stands or begins.
    """

    what: str
    line: str | None


class HeldLocks:
    """Tells which locks were taken since it was made and not given back.

    A semaphore without ``max_value`` is left out: nobody can tell what it should be.
    """

    def __init__(self, older: Iterable[weakref.ref[Holdable]] = ()) -> None:
        self._older = tuple(older)
        self._before = [(lock, holders) for lock in self._all() if (holders := _holders(lock))]
        self._taken: dict[tuple[int, int], Place] = {}

    def found(self) -> list[HeldLock]:
        """One for each lock and holder, in the order in which the locks were made."""
        known = {(id(lock), id(holder)) for lock, holders in self._before for holder in holders}
        return [
            self._described(lock, holder)
            for lock in self._all()
            for holder in _holders(lock)
            if (id(lock), id(holder)) not in known
        ]

    @contextmanager
    def noting(self) -> Generator[None]:
        """Note where locks are taken in the block."""
        originals: list[tuple[type, str, Callable[..., Any]]] = []
        for kind, name in sorted(_definitions(), key=str):
            original = getattr(kind, name)
            originals.append((kind, name, original))
            setattr(kind, name, self._noting(original))
        try:
            yield
        finally:
            for kind, name, original in originals:
                setattr(kind, name, original)

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        @trio.lowlevel.enable_ki_protection  # as the original
        def noting(lock: Holdable, *args: Any) -> Any:
            holder = None if isinstance(lock, trio.Semaphore) else args[0] if args else trio.lowlevel.current_task()
            # Before the attempt: one that fails is followed by waiting for the lock at the same line.
            self._taken[id(lock), id(holder)] = users_place(calling_frame())
            return original(lock, *args)

        return noting

    def _all(self) -> Iterator[Holdable]:
        for reference in self._older:
            lock = reference()
            if lock is not None:
                yield lock
        yield from [found for found in gc.get_objects() if type(found) in _TYPES]

    def _described(self, lock: Holdable, holder: object) -> HeldLock:
        taken = shown(self._taken.get((id(lock), id(holder))))
        name = f"trio.{type(lock).__name__}"
        if not isinstance(holder, trio.lowlevel.Task):
            return HeldLock(f"{name} held" if holder is None else f"{name} held by {holder!r}", taken)
        frame = getattr(holder.coro, "cr_frame", None)
        ended = ", which has ended" if frame is None else ""
        return HeldLock(f"{name} held by task {holder.name}{ended}", taken or place_of_task(holder))


@contextmanager
def only_new_objects() -> Generator[tuple[weakref.ref[Holdable], ...]]:
    """In the block the collector sees only objects made within it, so that looking at all of them is cheap.

    Gives the locks that were there before.
    """
    older = tuple(weakref.ref(found) for found in gc.get_objects() if type(found) in _TYPES)
    gc.freeze()
    try:
        yield older
    finally:
        gc.unfreeze()


def _holders(lock: Holdable) -> tuple[object, ...]:
    match lock:
        case trio.Semaphore():
            return (None,) if lock.max_value is not None and lock.value < lock.max_value else ()
        case trio.CapacityLimiter():
            return tuple(lock.statistics().borrowers)
        case _:
            return (lock.statistics().owner,) if lock.locked() else ()


def _definitions() -> set[tuple[type, str]]:
    """The classes whose own method takes a lock, and its name."""
    return {
        (next(kind for kind in held.__mro__ if name in vars(kind)), name)
        for held in _TYPES
        for name in _TAKE
        if hasattr(held, name)
    }
