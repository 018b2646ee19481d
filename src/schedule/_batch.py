"""A batch: the calls of one message, run once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import attrs
import trio

from ..actors import Pending
from ..errors import RuntimeClosedError
from ..registry import CallStatus, Outcome, Scope, ToolCall, freeze
from ._progress import EventStream
from ._root import RootLane, statuses
from ._services import Services

__all__ = ["Batch", "checked_calls"]


def checked_calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls as a tuple.

    Raises:
        TypeError: One is not a ``ToolCall``; the message names its place.
    """
    found = tuple(calls)
    for index, call in enumerate(cast("tuple[object, ...]", found)):
        if not isinstance(call, ToolCall):
            msg = (
                f"calls[{index}] is {call!r:.80}, not a ToolCall; make one with ToolCall(call_id, name, arguments), or "
                "read a provider's message with quiesce.adapters"
            )
            raise TypeError(msg)
        if call.agent is not None and not isinstance(cast("object", call.agent), Scope):
            msg = f"calls[{index}].agent is {call.agent!r:.80}, not a Scope; make one with registry.scope()"
            raise TypeError(msg)
    return tuple(map(_snapshot, found))


def _snapshot(call: ToolCall) -> ToolCall:
    """The call with its arguments frozen, so that what the caller does to them later changes nothing anywhere."""
    try:
        frozen = freeze(call.arguments)
    except Exception:  # noqa: BLE001 - what is wrong with them is told when the call's turn comes
        return call
    return call if frozen is call.arguments else attrs.evolve(call, arguments=frozen)


class Owner(Protocol):
    """Who has to know which batches run: the runtime."""

    def begin(self, batch: Batch) -> None:
        """``batch`` begins to run; raises if it may not."""
        ...

    def end(self, batch: Batch) -> None:
        """``batch`` has settled."""
        ...


class Batch:
    """Several calls that run together, in one lane. Made by ``Runtime.batch``; it runs once.

    All its methods but ``run`` are synchronous, and may be called from any task of the same trio run.
    """

    def __init__(self, owner: Owner, services: Services, calls: Iterable[ToolCall], *, cancellable: bool) -> None:
        self._owner = owner
        self._calls = checked_calls(calls)
        self._outcomes: list[Outcome | None] = [None] * len(self._calls)
        self._cancellable = cancellable
        self._lane = RootLane(services, self._outcomes.__setitem__, cancellable=cancellable)
        self._driver = self._lane.driver
        self._begun = False

    @property
    def id(self) -> str:
        """The batch's identity in the journal."""
        return self._lane.id

    @property
    def outcomes(self) -> tuple[Outcome | None, ...]:
        """One outcome per call in model order, ``None`` where it is not committed; complete after ``run``."""
        return tuple(self._outcomes)

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> list[Outcome]:
        """Run the calls and return their outcomes in model order, once everything it started has settled.

        A cancel of the scope around it settles and records every call, then propagates; ``outcomes`` is complete by
        then. ``cancel`` and ``drain`` make it return normally.

        Raises:
            SchedulerFault: Something inside quiesce or its journal failed.
            RuntimeClosedError: The batch was run before.
            BaseException: A ``KeyboardInterrupt`` or other non-``Exception`` from a body, a hook or the wait, bare.
        """
        if self._begun:
            msg = "a batch runs once; make another with runtime.batch(calls)"
            raise RuntimeClosedError(msg)
        self._begun = True
        try:
            self._owner.begin(self)
        except BaseException:
            self._lane.end()
            raise
        for call in self._calls:
            self._driver.submit(call)
        self._driver.close()
        try:
            await self._lane.run(self._calls, self._statuses)
        finally:
            self._owner.end(self)
        outcomes = [outcome for outcome in self._outcomes if outcome is not None]
        assert len(outcomes) == len(self._calls), "a call has no outcome: a bug in quiesce"
        return outcomes

    def cancel(self, reason: str | None = None) -> None:
        """Cancel the batch: what runs is cancelled and settled, what has not started is aborted; ``run`` returns.

        Args:
            reason: For hooks, bodies and the journal; only the first counts.
        """
        self._driver.cancel(reason)

    def drain(self, reason: str | None = None) -> None:
        """Start nothing more, let what runs finish, abort the rest; ``run`` returns the outcomes.

        Args:
            reason: For the journal.
        """
        self._driver.drain(reason)

    def cancel_call(self, index: int, reason: str | None = None) -> bool:
        """Cancel one call and leave its siblings alone.

        Args:
            index: The call's place in the batch.
            reason: For hooks and the body.

        Returns:
            Whether there was anything to cancel; ``False`` if it has settled.

        Raises:
            ValueError: The batch was not made with ``cancellable=True``.
            IndexError: There is no such call.
        """
        if not self._cancellable:
            msg = "single calls can only be cancelled in a batch made with runtime.batch(calls, cancellable=True)"
            raise ValueError(msg)
        if not 0 <= index < len(self._calls):
            msg = f"the batch has {len(self._calls)} calls; there is no call {index}"
            raise IndexError(msg)
        if not self._begun:
            msg = "the batch is not running; cancel_call() works once run() has begun"
            raise RuntimeClosedError(msg)
        return self._driver.cancel_call(index, reason)

    def pending(self) -> list[Pending]:
        """Every call that is not committed, with its age and, if it runs, the line it is stuck on. In model order."""
        return self._driver.pending()

    def events(self) -> EventStream:
        """A stream of what happens from now on: ``Started``, ``Progress``, ``Settled``, ``Committed``, ``Stalled``.

        It ends after ``run``. A slow reader never blocks a body.
        """
        stream = self._driver.subscribe()
        if self._lane.ended:
            stream.end()
        return stream

    def _statuses(self) -> tuple[CallStatus, ...]:
        committed = {index: outcome for index, outcome in enumerate(self._outcomes) if outcome is not None}
        return statuses(self._driver, dict(enumerate(self._calls)), committed)
