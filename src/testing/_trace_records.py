"""A trace sorted by batch, lane and call, and what is found wrong with it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..journal import BatchEnd, BatchStart, Event, ToolCallStarted, ToolResult

__all__ = ["BatchTrace", "CallTrace", "LaneTrace", "Rule", "ToolEvent", "Violation", "group", "seconds"]

ToolEvent = ToolCallStarted | ToolResult


@attrs.frozen
class Violation:
    """That a trace breaks a promise.

    Attributes:
        promise: Its number, 1 to 8.
        rule: What must hold, in a short sentence.
        batch: The batch.
        calls: The keys of the calls involved, in the order of the message; empty if it concerns the batch alone.
        message: One line: the promise, the rule, the batch, each call by place, name and label, and the figures.
    """

    promise: int
    rule: str
    batch: str
    calls: tuple[str, ...]
    message: str


@attrs.frozen
class Rule:
    """What must hold of a trace.

    Attributes:
        promise: The number of the promise that it is a part of.
        text: A short sentence.
    """

    promise: int
    text: str

    def broken(self, batch: BatchTrace, detail: str, *calls: CallTrace) -> Violation:
        """The violation that ``detail`` tells, of these calls."""
        message = f"promise {self.promise}, {self.text}: in batch {batch.id}, {detail}"
        return Violation(self.promise, self.text, batch.id, tuple(call.key for call in calls), message)


@attrs.define(eq=False)
class CallTrace:
    """What was recorded of one call; of a record that was made twice, the first.

    Attributes:
        lane: Its lane.
        key: Its key.
        call: Its ``tool/call``, if there is one.
        call_at: The place of that in the trace, ``-1`` without.
        result: Its ``tool/result``, if there is one.
        result_at: The place of that in the trace, ``-1`` without.
        again: Records of this key that came when there was one of the kind already.
    """

    lane: LaneTrace
    key: str
    call: ToolCallStarted | None = None
    call_at: int = -1
    result: ToolResult | None = None
    result_at: int = -1
    again: list[ToolEvent] = attrs.field(factory=list[ToolEvent])

    @property
    def index(self) -> int:
        """Its place in its lane."""
        if self.call is not None:
            return self.call.request.index
        return -1 if self.result is None else self.result.index

    def __str__(self) -> str:
        place = self.key.removeprefix(f"{self.lane.batch.id}:")
        name, label = "?", "?"
        if self.call is not None:
            name, label = self.call.request.name, self.call.request.call_id
        elif self.result is not None:
            name, label = self.result.name, self.result.call_id
        return f"call {place} {name!r} (id {label!r})"


@attrs.define(eq=False)
class LaneTrace:
    """The calls of a batch, or the sub-calls of one call.

    Attributes:
        batch: The batch.
        parent: The key of the call whose body made the calls, or ``None``.
        calls: In the order in which they first appear.
        events: Their records in order, without those that were made twice.
    """

    batch: BatchTrace
    parent: str | None
    calls: list[CallTrace] = attrs.field(factory=list[CallTrace])
    events: list[tuple[CallTrace, ToolEvent]] = attrs.field(factory=list[tuple[CallTrace, ToolEvent]])


@attrs.define(eq=False)
class BatchTrace:
    """All that was recorded of one batch.

    Attributes:
        id: Its identity.
        events: In the order of their recording.
        start: Its ``batch/start``, if there is one; the first.
        end: Its ``batch/end``, if there is one; the first.
        end_at: The place of that in ``events``, or their number.
        lanes: By the key of the parent; ``None`` for the root.
        calls: By key.
    """

    id: str
    events: list[Event] = attrs.field(factory=list[Event])
    start: BatchStart | None = None
    end: BatchEnd | None = None
    end_at: int = -1
    lanes: dict[str | None, LaneTrace] = attrs.field(factory=dict["str | None", LaneTrace])
    calls: dict[str, CallTrace] = attrs.field(factory=dict[str, CallTrace])

    @property
    def complete(self) -> bool:
        """Whether it came to its end, and not by a fault or a repair: then everything must have been recorded."""
        return self.end is not None and self.end.status not in {"fault", "repaired"}

    def add(self, event: Event) -> None:
        """Take in the next event."""
        at = len(self.events)
        self.events.append(event)
        if isinstance(event, BatchStart):
            self.start = self.start or event
        elif isinstance(event, BatchEnd):
            if self.end is None:
                self.end, self.end_at = event, at
        elif not (isinstance(event, ToolResult) and event.error is not None and event.error.name == "CrashError"):
            # What a repair wrote after a crash says what is not known; it is no record of what the lane did.
            self._add_to_call(event, at)

    def _add_to_call(self, event: ToolEvent, at: int) -> None:
        call = self.calls.get(event.key)
        if call is None:
            lane = self.lanes.setdefault(event.parent, LaneTrace(self, event.parent))
            call = self.calls[event.key] = CallTrace(lane, event.key)
            lane.calls.append(call)
        if isinstance(event, ToolCallStarted) and call.call is None:
            call.call, call.call_at = event, at
        elif isinstance(event, ToolResult) and call.result is None:
            call.result, call.result_at = event, at
        else:
            call.again.append(event)
            return
        call.lane.events.append((call, event))


def group(events: Iterable[Event]) -> list[BatchTrace]:
    """Sort events by batch; batches in the order in which they begin."""
    batches: dict[str, BatchTrace] = {}
    for event in events:
        batch = batches.get(event.batch)
        if batch is None:
            batch = batches[event.batch] = BatchTrace(event.batch)
        batch.add(event)
    return list(batches.values())


def seconds(time: float | None) -> str:
    """A time for a message."""
    return "never" if time is None else f"{time:g}" if abs(time) < 1e5 else f"{time:.6f}"  # noqa: PLR2004 - as %g does
