"""Child lanes: the further calls of one body."""

from __future__ import annotations

import trio

from ..actors import Execution, SubCalls
from ..errors import RuntimeClosedError, SchedulerFault
from ..registry import JsonValue, Outcome, Success, ToolCall
from ._driver import Driver, Place
from ._states import CallPhase

__all__ = ["open_sub_calls"]


def open_sub_calls(parent: Driver, execution: Execution, nursery: trio.Nursery) -> SubCalls:
    """Open the lane for the further calls of ``execution``'s body, and start driving it in ``nursery``.

    It has a pool of its own, so a child never waits for its ancestors' places or claims. The nursery lies inside the
    scopes around the body: whatever cancels the body cancels its calls.
    """
    lane = ChildLane(parent, execution)
    nursery.start_soon(lane.drive, nursery, name=f"sub-calls of {execution.call.name}")
    return lane


class ChildCall:
    """A sub-call; see ``registry.PendingCall``."""

    def __init__(self, lane: ChildLane, index: int, call_id: str) -> None:
        self._lane = lane
        self._index = index
        self._call_id = call_id

    @property
    def call_id(self) -> str:
        """See ``PendingCall``."""
        return self._call_id

    async def outcome(self) -> Outcome:
        """See ``PendingCall``."""
        return await self._lane.outcome(self._index)

    def cancel(self, reason: str | None = None) -> bool:
        """See ``PendingCall``."""
        return self._lane.cancel_call(self._index, reason)


class ChildLane:
    """See ``actors.SubCalls``."""

    def __init__(self, parent: Driver, execution: Execution) -> None:
        self._parent = parent
        self._execution = execution
        self._outcomes: dict[int, Outcome] = {}
        self._committed: dict[int, trio.Event] = {}
        self._settled: dict[int, trio.Event] = {}
        self._closed = False
        self._first = execution.sub_calls
        place = Place(parent.place.batch, execution, self._first)
        # Cancelling the scope around run.call cancels that call alone, so every sub-call can be cancelled.
        self._driver = Driver(parent.services, place, self._commit, open_sub_calls, cancellable=True)
        self._driver.on_settled = self._note_settled

    @property
    def interrupt(self) -> BaseException | None:
        """See ``SubCalls``."""
        return self._driver.interrupt

    @trio.lowlevel.enable_ki_protection
    async def drive(self, nursery: trio.Nursery) -> None:
        """Drive the lane until it is closed and settled; a fault of it is a fault of the batch."""
        try:
            await self._driver.drive(nursery)
        finally:
            if self._driver.fault is not None:
                self._parent.broke(self._driver.fault)
            for event in (*self._settled.values(), *self._committed.values()):
                event.set()

    async def call(self, name: str, arguments: JsonValue, call_id: str | None) -> Outcome:
        """See ``SubCalls``."""
        pending = self._submit(name, arguments, call_id)
        try:
            return await self.outcome(pending)
        except trio.Cancelled as cancelled:
            self.cancel_call(pending, cancelled.reason)
            # Shields the wait for one cancelled sub-call, until it settles: cancelling the scope around run.call must
            # leave nothing of it running. Pinned by test_cancelling_the_scope_around_run_call_settles_it_first.
            # Its commit may have to wait for an earlier sub-call, and is awaited with the body's end.
            with trio.CancelScope(shield=True):
                await self._settled[pending].wait()
            raise

    def submit(self, name: str, arguments: JsonValue, call_id: str | None) -> ChildCall:
        """See ``SubCalls``."""
        index = self._submit(name, arguments, call_id)
        return ChildCall(self, index, self._label(index, call_id))

    def close(self, *, cancel: bool) -> None:
        """See ``SubCalls``."""
        self._closed = True
        self._driver.close()
        if cancel:
            self._driver.cancel("the body that made the call ended")

    async def outcome(self, index: int) -> Outcome:
        """Wait for the commit of a call."""
        await self._committed[index].wait()
        found = self._outcomes.get(index)
        if found is not None:
            return found
        if self._driver.interrupt is not None:
            raise self._driver.interrupt
        msg = f"the sub-call {index} was left open by an internal fault: {self._driver.fault}"
        raise SchedulerFault(msg) from self._driver.fault

    def cancel_call(self, index: int, reason: str | None) -> bool:
        """Cancel one call; one that has not been prepared will never start, which is as good as settled."""
        queued = self._driver.lane.phase(index) is CallPhase.QUEUED
        cancelled = self._driver.cancel_call(index, reason)
        if queued:
            self._note_settled(index)
        return cancelled

    def _note_settled(self, index: int) -> None:
        self._settled[index].set()

    def _submit(self, name: str, arguments: JsonValue, call_id: str | None) -> int:
        if self._closed or self._driver.lane.stopped:
            msg = f"the call {name!r} was not made: the call around it is cancelled or over"
            raise RuntimeClosedError(msg)
        index = len(self._driver.lane)
        self._committed[index] = trio.Event()
        self._settled[index] = trio.Event()
        self._execution.sub_calls += 1
        call = ToolCall(
            self._label(index, call_id), name, {} if arguments is None else arguments, self._execution.agent
        )
        return self._driver.submit(call)

    def _label(self, index: int, call_id: str | None) -> str:
        return f"{self._execution.call.call_id}:{self._first + index + 1}" if call_id is None else call_id

    def _commit(self, index: int, outcome: Outcome) -> None:
        self._outcomes[index] = outcome
        # What a sub-call adds for the next request reaches it through its parent (A3.13, A3.15).
        self._execution.contexts.extend(outcome.contexts)
        if isinstance(outcome, Success) and outcome.concludes_turn:
            self._execution.concludes = True
        self._settled[index].set()
        self._committed[index].set()
