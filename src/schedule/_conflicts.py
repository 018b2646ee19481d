"""The conflict rule: which two calls must not overlap, and an index that answers it for all that hold claims."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import attrs

from ..registry import ANY, Claims, Keys

__all__ = ["ClaimTable", "Conflict", "conflicts", "has_any"]


def conflicts(one: Claims, other: Claims) -> bool:
    """Whether two calls with these claims must not overlap.

    Either writes ``ANY``; or the writes of one meet the reads or writes of the other. ``ANY`` meets every non-empty
    set, keys meet by equality.

    Source: ``docs/design.md``, Claims.
    """
    if one.writes is ANY or other.writes is ANY:
        return True
    return _meet(one.writes, other.reads) or _meet(other.writes, one.reads) or _meet(one.writes, other.writes)


def _meet(one: Keys, other: Keys) -> bool:
    if one is ANY or other is ANY:
        return bool(one) and bool(other)
    return not one.isdisjoint(other)


def has_any(claims: Claims) -> bool:
    """Whether the claims name ``ANY``: such a call is a barrier to what it conflicts with."""
    return claims.reads is ANY or claims.writes is ANY


class Conflict(enum.Enum):
    """How a call that is considered for its start relates to the calls that hold claims."""

    NONE = "none"
    """It conflicts with none of them."""
    KEYED = "keyed"
    """It conflicts, and every such pair is keyed on both sides: it may be prepared and wait."""
    BARRIER = "barrier"
    """It conflicts through ``ANY``: it and all later calls wait."""


@attrs.define
class _Key:
    # Holders of one key in the order of their indices, which is the order in which they were added.
    readers: dict[int, None] = attrs.field(factory=dict[int, None])
    writers: dict[int, None] = attrs.field(factory=dict[int, None])


class ClaimTable:
    """The claims that are held, indexed so that one call costs the number of its keys, not of the holders.

    Calls are added in the order of their indices. A call added in spite of keyed conflicts waits for its blockers:
    of each key the last writer before it and, if it writes, the readers since. Earlier holders of that key precede
    those, so waiting for them is waiting for all.
    """

    def __init__(self) -> None:
        self._held: dict[int, Claims] = {}
        self._keys: dict[str, _Key] = {}
        self._any_readers = 0
        self._any_writers = 0
        self._writers = 0
        self._blockers: dict[int, set[int]] = {}
        self._waiters: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def conflict(self, claims: Claims) -> Conflict:
        """How a call with ``claims`` relates to the holders."""
        if claims.writes is ANY:
            return Conflict.BARRIER if self._held else Conflict.NONE
        if self._any_writers or (claims.writes and self._any_readers):
            return Conflict.BARRIER
        if claims.reads is ANY and self._writers:
            return Conflict.BARRIER
        if not self._keys or not self._meets_keys(claims):
            return Conflict.NONE
        return Conflict.BARRIER if claims.reads is ANY or self._meets_a_barrier(claims) else Conflict.KEYED

    def add(self, index: int, claims: Claims) -> bool:
        """Let call ``index`` hold ``claims``; returns whether it has to wait for others."""
        blockers: set[int] = set() if has_any(claims) else self._blockers_of(index, claims)
        self._held[index] = claims
        self._any_readers += claims.reads is ANY
        self._any_writers += claims.writes is ANY
        self._writers += bool(claims.writes)
        for key in _keys(claims.reads):
            self._keys.setdefault(key, _Key()).readers[index] = None
        for key in _keys(claims.writes):
            self._keys.setdefault(key, _Key()).writers[index] = None
        if blockers:
            self._wait_for(index, blockers)
        return bool(blockers)

    def waits(self, index: int) -> bool:
        """Whether a holder still waits for others."""
        return index in self._blockers

    def release(self, index: int) -> list[int]:
        """Let call ``index`` go; returns the holders that no longer wait for anyone, in the order of their indices."""
        claims = self._held.pop(index)
        self._any_readers -= claims.reads is ANY
        self._any_writers -= claims.writes is ANY
        self._writers -= bool(claims.writes)
        for key in _keys(claims.reads):
            self._drop(key, index)
        for key in _keys(claims.writes):
            self._drop(key, index)
        waited = self._blockers.pop(index, None) is not None
        freed: list[int] = []
        for waiter in self._waiters.pop(index, ()):
            blockers = self._blockers.get(waiter)
            if blockers is None:
                continue
            blockers.discard(index)
            if waited:
                # It never ran, so what came before it on its keys now stands directly before its waiters.
                fresh = self._blockers_of(waiter, self._held[waiter]) - blockers
                blockers |= fresh
                for blocker in fresh:
                    self._waiters.setdefault(blocker, []).append(waiter)
            if not blockers:
                del self._blockers[waiter]
                freed.append(waiter)
        return sorted(freed)

    def conflicting(self, claims: Claims) -> tuple[int, ...]:
        """The holders that conflict with ``claims``, in the order of their indices; costs the number of holders."""
        return tuple(index for index, held in self._held.items() if conflicts(claims, held))

    def _meets_keys(self, claims: Claims) -> bool:
        keys = self._keys
        if any((held := keys.get(key)) is not None and held.writers for key in _keys(claims.reads)):
            return True
        return any(key in keys for key in _keys(claims.writes))

    def _meets_a_barrier(self, claims: Claims) -> bool:
        """Whether a key is read that a holder writes which reads ``ANY`` too; other such meetings were seen before."""
        if not self._any_readers:
            return False
        held = (self._keys.get(key) for key in _keys(claims.reads))
        return any(has_any(self._held[writer]) for key in held if key is not None for writer in key.writers)

    def _blockers_of(self, index: int, claims: Claims) -> set[int]:
        found: set[int] = set()
        for key in _keys(claims.reads):
            if (held := self._keys.get(key)) is not None:
                found.update(_last(held.writers, index))
        for key in _keys(claims.writes):
            if (held := self._keys.get(key)) is not None:
                last_writer = _last(held.writers, index)
                found.update(last_writer)
                since = last_writer[0] if last_writer else -1
                found.update(_between(held.readers, since, index))
        found.discard(index)
        return found

    def _wait_for(self, index: int, blockers: set[int]) -> None:
        self._blockers[index] = blockers
        for blocker in blockers:
            self._waiters.setdefault(blocker, []).append(index)

    def _drop(self, key: str, index: int) -> None:
        held = self._keys.get(key)
        if held is None:
            return
        held.readers.pop(index, None)
        held.writers.pop(index, None)
        if not held.readers and not held.writers:
            del self._keys[key]


def _keys(side: Keys) -> frozenset[str]:
    return frozenset() if side is ANY else side


def _last(holders: dict[int, None], before: int) -> tuple[int, ...]:
    for index in reversed(holders):
        if index < before:
            return (index,)
    return ()


def _between(holders: dict[int, None], after: int, before: int) -> Iterator[int]:
    for index in reversed(holders):
        if index <= after:
            return
        if index < before:
            yield index
