"""The checker of recorded traces: which of the library's promises a journal shows to be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

from ..journal import BatchEnd, BatchStart, Event, ToolCallStarted, ToolResult, event_from_json
from ._trace_batch import BATCH_RULES
from ._trace_call import CALL_RULES
from ._trace_lane import LANE_RULES
from ._trace_records import BatchTrace, CallTrace, LaneTrace, Violation, group

__all__ = ["Recorded", "TraceError", "TraceSource", "check_trace", "trace_violations"]


@runtime_checkable
class Recorded(Protocol):
    """A journal that can be read back, such as ``MemoryJournal``."""

    @property
    def events(self) -> Iterable[Event]:
        """What it recorded, in order."""
        ...


TraceSource: TypeAlias = Recorded | Iterable[Event | Mapping[str, object]]

_EVENTS: Final = (BatchStart, ToolCallStarted, ToolResult, BatchEnd)


class TraceError(AssertionError):
    """A trace shows that a promise was broken.

    Attributes:
        violations: What was found, at least one, in the order of the batches and in each of its checks.
    """

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        several = "promise is" if len(violations) == 1 else f"promises are, {len(violations)} times,"
        super().__init__("\n".join([f"a {several} broken:", *(f"  {found.message}" for found in violations)]))
        self.violations = violations

    def __reduce__(self) -> tuple[type[TraceError], tuple[tuple[Violation, ...]]]:
        return type(self), (self.violations,)


def check_trace(journal_or_events: TraceSource) -> None:
    """Check what was recorded against the library's eight promises.

    It needs no trio, and looks at nothing but the events: a trace of another process or of last week will do. Batches
    may be interleaved, and each lane (a batch's calls, or the sub-calls of one call) is checked on its own. Of a batch
    without its end (a crash), or that a fault ended, only what must hold of a part is checked. Times are compared
    strictly, since on a mock clock much happens at one instant; where two records say which came first, they decide.

    Args:
        journal_or_events: A journal with ``events``, or events in the order of their recording, each an ``Event`` or
            the JSON mapping that ``event_to_json`` made of it.

    Raises:
        TraceError: A promise was broken; its message has a line for each violation.
        TypeError: There is something else than events.
        ValueError: A mapping is not the JSON of an event.

    Source: ``docs/design.md``, Promises.
    """
    violations = trace_violations(journal_or_events)
    if violations:
        raise TraceError(tuple(violations))


def trace_violations(journal_or_events: TraceSource) -> list[Violation]:
    """What ``check_trace`` would complain about, in the same order; empty for a sound trace.

    Args:
        journal_or_events: As for ``check_trace``.

    Raises:
        TypeError: There is something else than events.
        ValueError: A mapping is not the JSON of an event.

    Source: ``docs/design.md``, Promises.
    """
    return [found for batch in group(_events_of(journal_or_events)) for found in _judge(batch)]


_on_batch: tuple[Callable[[BatchTrace], Iterator[Violation]], ...] = BATCH_RULES
_on_lane: tuple[Callable[[LaneTrace], Iterator[Violation]], ...] = LANE_RULES
_on_call: tuple[Callable[[CallTrace, ToolResult], Iterator[Violation]], ...] = CALL_RULES


def _judge(batch: BatchTrace) -> Iterator[Violation]:
    for batch_rule in _on_batch:
        yield from batch_rule(batch)
    for lane in batch.lanes.values():
        for lane_rule in _on_lane:
            yield from lane_rule(lane)
        for call in lane.calls:
            if call.result is not None:
                for call_rule in _on_call:
                    yield from call_rule(call, call.result)


def _events_of(source: object) -> Iterator[Event]:
    events = getattr(source, "events", source)
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        msg = (
            f"a trace is a journal with events, or an iterable of events, got {source!r:.80}; pass journal.events, or "
            "a list with what json.loads made of each line"
        )
        raise TypeError(msg)
    for position, event in enumerate(cast("Iterable[object]", events)):
        if isinstance(event, _EVENTS):
            yield event
        elif isinstance(event, Mapping):
            yield _event_of(position, cast("Mapping[str, object]", event))
        else:
            msg = f"event {position} of the trace is {event!r:.80}, neither an event nor the JSON mapping of one"
            raise TypeError(msg)


def _event_of(position: int, data: Mapping[str, object]) -> Event:
    try:
        return event_from_json(data)
    except ValueError as error:
        msg = f"event {position} of the trace: {error}"
        raise ValueError(msg) from error
