"""The stream of events that a batch shows while it runs."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import attrs
import trio

from ..registry import JsonValue, Outcome

__all__ = ["BatchEvent", "Committed", "EventStream", "Progress", "Settled", "Stalled", "Started"]


@attrs.frozen
class Started:
    """A call was dispatched.

    Attributes:
        index: Its place in the batch, from 0.
        call_id: The provider's label.
        name: The tool's name.
        time: Seconds on trio's clock.
    """

    index: int
    call_id: str
    name: str
    time: float


@attrs.frozen
class Progress:
    """A body reported progress; only the latest report that was not read yet is kept.

    Attributes:
        index: The call's place in the batch.
        call_id: The provider's label.
        name: The tool's name.
        time: Seconds on trio's clock.
        progress: What the body reported.
    """

    index: int
    call_id: str
    name: str
    time: float
    progress: JsonValue


@attrs.frozen
class Settled:
    """A call has its outcome; post hooks and its commit are still to come.

    Attributes:
        index: The call's place in the batch.
        call_id: The provider's label.
        name: The tool's name.
        time: Seconds on trio's clock.
        is_error: Whether it failed, as things stand.
    """

    index: int
    call_id: str
    name: str
    time: float
    is_error: bool


@attrs.frozen
class Committed:
    """A call's outcome is final and recorded.

    Attributes:
        index: The call's place in the batch.
        call_id: The provider's label.
        name: The tool's name.
        time: Seconds on trio's clock.
        outcome: The outcome.
    """

    index: int
    call_id: str
    name: str
    time: float
    outcome: Outcome


@attrs.frozen
class Stalled:
    """A call has run for longer than the runtime's ``stall_after``; told once a call.

    Attributes:
        index: The call's place in the batch.
        call_id: The provider's label.
        name: The tool's name.
        time: Seconds on trio's clock.
        running_for: Seconds since it was dispatched.
        line: Where its task is stuck, or ``None``.
    """

    index: int
    call_id: str
    name: str
    time: float
    running_for: float
    line: str | None


BatchEvent: TypeAlias = Started | Progress | Settled | Committed | Stalled


class EventStream:
    """The events of one batch, from the call of ``batch.events()`` on: ``async for event in stream``.

    A slow reader never blocks a body: what it has not read is kept, with only the latest progress of each call. It
    ends after ``run``.
    """

    def __init__(self) -> None:
        self._waiting: deque[BatchEvent] = deque()
        self._latest: dict[int, Progress] = {}
        self._ended = False
        self._changed = trio.Event()

    def publish(self, event: BatchEvent) -> None:
        """Keep an event for the reader. Synchronous; used by the batch."""
        if isinstance(event, Progress):
            earlier, self._latest[event.index] = self._latest.get(event.index), event
            if earlier is not None:
                # Its place in the queue is taken by the earlier report, which stands for the latest.
                self._wake()
                return
        self._waiting.append(event)
        self._wake()

    def end(self) -> None:
        """No further event will come."""
        self._ended = True
        self._wake()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> BatchEvent:
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            if self._changed.is_set():
                self._changed = trio.Event()
            await self._changed.wait()
        event = self._waiting.popleft()
        return self._latest.pop(event.index) if isinstance(event, Progress) else event

    def _wake(self) -> None:
        self._changed.set()
