"""After a crash: what to append so that every call has its outcome, and none says more than is known.

Source: ``spec/behaviour.md`` F5; ``docs/design.md`` section 5, durability and open sub-call starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from ..errors import CrashError
from ..registry import Effect, ErrorInfo, Failure, TextBlock, Timings
from ._events import BatchEnd, BatchStart, CallRequest, Event, ToolCallStarted, ToolResult
from ._rebuild import result_event

__all__ = ["TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN", "repaired"]

TOOL_NOT_STARTED: Final = "TOOL_NOT_STARTED"
TOOL_OUTCOME_UNKNOWN: Final = "TOOL_OUTCOME_UNKNOWN"

_NOT_STARTED: Final = (
    "the tool call was interrupted before it was recorded as started: it never ran, and may be made again if it is "
    "still needed"
)
_THEN: Final = (
    "Make it again only if the tool only reads or is idempotent; otherwise verify the external state first, or ask the "
    "user. Do not retry blindly."
)
_STARTED: Final = (
    "the tool call was recorded as started, and no durable result was recorded: whether it took effect is unknown. "
) + _THEN
_PERHAPS: Final = (
    "the run was interrupted, and neither a start nor a result of the tool call reached the disk: whether it ran is "
    "unknown. "
) + _THEN


def repaired(events: Iterable[Event]) -> list[Event]:
    """What must be appended to a journal so that each batch that was cut short is whole.

    Each call of such a batch that has no result gets one: ``TOOL_NOT_STARTED`` if ``batch/start`` lists it, it has no
    ``tool/call``, and the batch's durability was ``dispatch``; else ``TOOL_OUTCOME_UNKNOWN``. Open sub-calls get theirs
    before the call that made them, and a call without a ``tool/call`` gets that, too. A ``batch/end`` with the status
    ``repaired`` comes last. All carry the time of the batch's last event. Batches that have their end get nothing, so
    a second repair adds nothing. It must not be asked about a batch that still runs.

    Args:
        events: Of any number of batches, in the order of their recording.

    Returns:
        The events to append, batch by batch; the list is the caller's.

    Source: ``spec/behaviour.md`` F5.
    """
    found: dict[str, _Batch] = {}
    for event in events:
        found.setdefault(event.batch, _Batch(event.batch)).add(event)
    return [closer for batch in found.values() if not batch.ended for closer in batch.closers()]


@attrs.frozen
class _Open:
    """A call without a result.

    Attributes:
        depth: How many calls are around it.
        lane: The place of its lane among those of its depth.
        call: Its ``tool/call``, made up if there is none.
        recorded: Whether there is one.
    """

    depth: int
    lane: int
    call: ToolCallStarted
    recorded: bool


@attrs.define
class _Batch:
    """What is recorded of a batch."""

    id: str
    start: BatchStart | None = None
    ended: bool = False
    time: float = float("-inf")
    calls: dict[str, ToolCallStarted] = attrs.field(factory=dict[str, ToolCallStarted])
    depths: dict[str, int] = attrs.field(factory=dict[str, int])
    results: set[str] = attrs.field(factory=set[str])

    def add(self, event: Event) -> None:
        self.time = max(self.time, event.time)
        if isinstance(event, BatchStart):
            self.start = event
        elif isinstance(event, BatchEnd):
            self.ended = True
        elif isinstance(event, ToolResult):
            self.results.add(event.key)
        else:
            self.calls[event.key] = event
            # A call is recorded before those that its body makes.
            self.depths[event.key] = 0 if event.parent is None else self.depths.get(event.parent, 0) + 1

    def closers(self) -> Iterator[Event]:
        # The deepest first, so each sub-call before its parent; in a lane, in model order.
        for one in sorted(self._open(), key=lambda one: (-one.depth, one.lane, one.call.request.index)):
            if not one.recorded:
                yield one.call
            yield self._result(one)
        yield BatchEnd(self.id, self.time, "repaired", None, None)

    def _open(self) -> Iterator[_Open]:
        lanes: dict[str | None, int] = {}
        for key, call in self.calls.items():
            if key not in self.results:
                lane = lanes.setdefault(call.parent, len(lanes))
                yield _Open(self.depths[key], 0 if call.parent is None else lane, call, recorded=True)
        for request in () if self.start is None else self.start.calls:
            key = f"{self.id}:{request.index}"
            if key not in self.calls and key not in self.results:
                yield _Open(0, 0, self._call(key, request), recorded=False)

    def _call(self, key: str, request: CallRequest) -> ToolCallStarted:
        return ToolCallStarted(self.id, key, self.time, request, parent=None, root=key)

    def _result(self, one: _Open) -> ToolResult:
        call, request = one.call, one.call.request
        never = not one.recorded and self.start is not None and self.start.durability == "dispatch"
        message = _STARTED if one.recorded else _NOT_STARTED if never else _PERHAPS
        outcome = Failure(
            call_id=request.call_id,
            name=request.name,
            index=request.index,
            error=ErrorInfo(message, CrashError.__name__, TOOL_NOT_STARTED if never else TOOL_OUTCOME_UNKNOWN),
            content=(TextBlock(f"Error: {message}"),),
            effect=Effect.NOT_STARTED if never else Effect.UNKNOWN,
        )
        queued = call.time if one.recorded or self.start is None else self.start.time
        return result_event(
            outcome,
            batch=self.id,
            key=call.key,
            parent=call.parent,
            root=call.root,
            # When it was prepared, started and invoked nobody knows, and nothing is made up.
            timings=Timings(queued=queued, settled=self.time, committed=self.time),
            hooks=(),
            waited=None,
        )
