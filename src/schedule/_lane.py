"""The lane: when each call of a batch may be prepared, started and committed.

It is the project's only scheduler: a synchronous state machine without I/O. Whoever drives it says what happened
(``submit``, ``close``, ``prepared``, ``settled``, ``committed``, ``cancel``, ``fault``) and asks ``next`` what to do;
``next`` has then already noted that it is being done. It owns the states, the pool, the claims and the commit cursor,
and nothing else.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..registry import Claims, Wait
from ._conflicts import ClaimTable, Conflict, has_any
from ._states import CallEvent, CallPhase, transition

__all__ = ["Decision", "Do", "Lane", "Verdict"]


class Do(enum.Enum):
    """What the driver of a lane has to do next."""

    PREPARE = "prepare"
    """Run the pre hooks, approval and guards of the call; then say ``prepared``."""
    START = "start"
    """Dispatch the call, which was prepared earlier; say ``settled`` when it is."""
    COMMIT = "commit"
    """Run its post hooks and record it; then say ``committed``."""
    ABANDON = "abandon"
    """Record it as aborted before dispatch, without hooks; then say ``committed``."""
    WAIT = "wait"
    """Nothing until something happens."""
    DONE = "done"
    """Nothing ever again."""


class Decision(NamedTuple):
    """What to do, and for which call, by its index (``-1`` for ``WAIT`` and ``DONE``)."""

    do: Do
    call: int = -1


class Verdict(enum.Enum):
    """What becomes of a call that was prepared and not denied."""

    START = "start"
    """Dispatch it now."""
    HOLD = "hold"
    """It is ``ready``; ``next`` will say when to start it."""
    ABORT = "abort"
    """It was cancelled meanwhile: settle it as aborted before dispatch."""
    DROP = "drop"
    """A fault came meanwhile: leave it as it is."""


_WAIT: Final = Decision(Do.WAIT)
_DONE: Final = Decision(Do.DONE)
_POOL: Final = Wait("pool")
_LIMIT: Final = Wait("limit")
_READY_BOUND: Final = Wait("ready_bound")


class Lane:
    """See the module.

    Args:
        classify: The claims of a call, by index; asked whenever its start is considered, never later.
        max_parallel: Most calls that are dispatched and not settled, and most that wait as ``ready``; at least 1.
        limits: Most running calls by tool name; tools that are not named have none.
    """

    def __init__(
        self, classify: Callable[[int], Claims], *, max_parallel: int, limits: Mapping[str, int] | None = None
    ) -> None:
        self._classify = classify
        self._max_parallel = max_parallel
        self._limits = dict(limits or {})
        self._phases: list[CallPhase] = []
        self._tools: list[str] = []
        self._claims = ClaimTable()
        self._until_commit: set[int] = set()
        self._head = 0
        self._cursor = 0
        self._running = 0
        self._running_of: dict[str, int] = dict.fromkeys(self._limits, 0)
        self._planned: set[int] = set()
        self._ready = 0
        self._startable: list[int] = []
        self._withdrawn: set[int] = set()
        self._waits: dict[int, Wait] = {}
        self._closed = False
        self._stopped = False
        self._faulted = False

    def __len__(self) -> int:
        return len(self._phases)

    @property
    def cursor(self) -> int:
        """The index of the first call that is not committed."""
        return self._cursor

    @property
    def stopped(self) -> bool:
        """Whether nothing more is started."""
        return self._stopped

    def phase(self, index: int) -> CallPhase:
        """The state of a call."""
        return self._phases[index]

    def waited_for(self, index: int) -> Wait | None:
        """Why a call could not be started at its turn; ``None`` if it could, or is committed."""
        return self._waits.get(index)

    def submit(self, tool: str) -> int:
        """Hand in a call of ``tool`` at the end; returns its index."""
        self._phases.append(CallPhase.QUEUED)
        self._tools.append(tool)
        return len(self._phases) - 1

    def close(self) -> None:
        """No further call will be submitted."""
        self._closed = True

    def cancel(self) -> None:
        """Start nothing more. Calls that wait as ``ready`` settle; what runs goes on until it settles."""
        if self._stopped:
            return
        self._stopped = True
        for index in range(self._cursor, self._head):
            if self._phases[index] is CallPhase.READY:
                self._withdraw_ready(index)

    def cancel_call(self, index: int) -> bool:
        """Withdraw one call; ``False`` if it has settled. One that runs is only noted here."""
        phase = self._phases[index]
        if phase is CallPhase.READY:
            self._withdraw_ready(index)
        elif phase in (CallPhase.QUEUED, CallPhase.PREPARING):
            self._withdrawn.add(index)
        return phase in (CallPhase.QUEUED, CallPhase.PREPARING, CallPhase.READY, CallPhase.RUNNING)

    def fault(self) -> None:
        """Something broke: start and commit nothing more, wait for what runs."""
        self._faulted = True
        self._stopped = True

    def next(self) -> Decision:
        """What to do now: due commits before any start, ready calls before later ones."""
        if self._faulted:
            return _WAIT if self._running else _DONE
        self._abandon_withdrawn()
        due = self._due_commit()
        if due is None and not self._stopped:
            due = self._due_start()
        if due is not None:
            return due
        ended = self._closed or self._stopped  # a stopped lane takes nothing more
        return _DONE if ended and self._cursor == len(self._phases) else _WAIT

    def prepared(self, index: int, *, dispatched: bool) -> Verdict | None:
        """A call's preparation ended.

        Args:
            index: The call.
            dispatched: Whether it may go on; if not it has its outcome, and settles here.

        Returns:
            What becomes of it, or ``None`` if it has settled.
        """
        planned = index in self._planned
        if self._faulted and dispatched:
            self._unplan(index)
            return Verdict.DROP
        if not dispatched or self._stopped or index in self._withdrawn:
            self._unplan(index)
            self._settle(index)
            return Verdict.ABORT if dispatched else None
        if planned:
            self._planned.discard(index)
            self._move(index, CallEvent.START)
            return Verdict.START
        self._move(index, CallEvent.HOLD)
        self._ready += 1
        if not self._claims.waits(index):
            bisect.insort(self._startable, index)
        return Verdict.HOLD

    def settled(self, index: int) -> None:
        """A dispatched call has its outcome: it gives up its place and its keys."""
        self._leave_pool(index)
        self._settle(index)

    def committed(self, index: int) -> None:
        """A call is recorded: the cursor moves on, and claims on ``ANY`` are given up."""
        self._move(index, CallEvent.COMMITTED)
        if index in self._until_commit:
            self._until_commit.discard(index)
            self._release(index)
        self._waits.pop(index, None)
        self._withdrawn.discard(index)
        self._cursor = index + 1

    def _abandon_withdrawn(self) -> None:
        """Let calls whose turn it is and that were withdrawn, or can no longer start, go without preparation."""
        count = len(self._phases)
        while self._head < count and (self._stopped or self._head in self._withdrawn):
            self._move(self._head, CallEvent.ABANDON)
            self._head += 1

    def _due_commit(self) -> Decision | None:
        index = self._cursor
        if index == len(self._phases):
            return None
        phase = self._phases[index]
        if phase is CallPhase.SETTLED:
            self._move(index, CallEvent.COMMIT)
            return Decision(Do.COMMIT, index)
        if phase is CallPhase.ABANDONED:
            self._move(index, CallEvent.COMMIT)
            return Decision(Do.ABANDON, index)
        return None

    def _due_start(self) -> Decision | None:
        ready = self._due_ready()
        if ready is not None:
            return Decision(Do.START, ready)
        index = self._head
        if index == len(self._phases):
            return None
        claims = self._classify(index)
        conflict = self._claims.conflict(claims)
        wait = self._why_wait(conflict, self._tools[index])
        if wait is not None:
            self._note_wait(index, wait, claims)
            if conflict is Conflict.BARRIER or wait in (_POOL, _READY_BOUND):
                return None
        self._head += 1
        self._move(index, CallEvent.PREPARE)
        self._claims.add(index, claims)
        if has_any(claims):
            self._until_commit.add(index)
        if wait is None:
            self._planned.add(index)
            self._enter_pool(index)
        return Decision(Do.PREPARE, index)

    def _why_wait(self, conflict: Conflict, tool: str) -> Wait | None:
        """Why a call cannot be started at its turn, or ``None`` if it can."""
        if conflict is Conflict.BARRIER:
            return Wait("conflict")
        if conflict is Conflict.NONE and self._running >= self._max_parallel:
            return _POOL
        if conflict is Conflict.NONE and not self._limit_full(tool):
            return None
        if self._ready >= self._max_parallel:
            return _READY_BOUND
        return Wait("conflict") if conflict is Conflict.KEYED else _LIMIT

    def _note_wait(self, index: int, wait: Wait, claims: Claims) -> None:
        if index in self._waits:
            return
        self._waits[index] = Wait("conflict", self._claims.conflicting(claims)) if wait.kind == "conflict" else wait

    def _due_ready(self) -> int | None:
        if self._running >= self._max_parallel:
            return None
        for position, index in enumerate(self._startable):
            if not self._limit_full(self._tools[index]):
                del self._startable[position]
                self._ready -= 1
                self._move(index, CallEvent.START)
                self._enter_pool(index)
                return index
        return None

    def _limit_full(self, tool: str) -> bool:
        limit = self._limits.get(tool)
        return limit is not None and self._running_of[tool] >= limit

    def _enter_pool(self, index: int) -> None:
        self._running += 1
        if (tool := self._tools[index]) in self._running_of:
            self._running_of[tool] += 1

    def _leave_pool(self, index: int) -> None:
        self._running -= 1
        if (tool := self._tools[index]) in self._running_of:
            self._running_of[tool] -= 1

    def _unplan(self, index: int) -> None:
        if index in self._planned:
            self._planned.discard(index)
            self._leave_pool(index)

    def _withdraw_ready(self, index: int) -> None:
        self._ready -= 1
        if index in self._startable:
            self._startable.remove(index)
        self._settle(index)

    def _settle(self, index: int) -> None:
        self._move(index, CallEvent.SETTLE)
        if index not in self._until_commit:
            self._release(index)

    def _release(self, index: int) -> None:
        for freed in self._claims.release(index):
            if self._phases[freed] is CallPhase.READY:
                bisect.insort(self._startable, freed)

    def _move(self, index: int, event: CallEvent) -> None:
        self._phases[index] = transition(index, self._phases[index], event)
