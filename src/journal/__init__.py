"""What happened: events, the journal protocol, the journal in memory, and outcomes rebuilt from events."""

from ._events import (
    BatchEnd,
    BatchStart,
    BatchStatus,
    CallRequest,
    Event,
    ToolCallStarted,
    ToolResult,
    event_from_json,
    event_to_json,
)
from ._journal import Journal, MemoryJournal
from ._rebuild import outcome_from_event, rebuild_outcomes, request_of, result_event

__all__ = [
    "BatchEnd",
    "BatchStart",
    "BatchStatus",
    "CallRequest",
    "Event",
    "Journal",
    "MemoryJournal",
    "ToolCallStarted",
    "ToolResult",
    "event_from_json",
    "event_to_json",
    "outcome_from_event",
    "rebuild_outcomes",
    "request_of",
    "result_event",
]
