"""What happened: events, journals in memory and in a SQLite file, outcomes rebuilt from them, and repair."""

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
from ._repair import TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN, repaired
from ._replay import BatchReplay, replay
from ._sqlite import SqliteJournal, open_sqlite_journal
from ._sqlite_read import BatchSummary, batches, read_events
from ._sqlite_repair import repair

__all__ = [
    "TOOL_NOT_STARTED",
    "TOOL_OUTCOME_UNKNOWN",
    "BatchEnd",
    "BatchReplay",
    "BatchStart",
    "BatchStatus",
    "BatchSummary",
    "CallRequest",
    "Event",
    "Journal",
    "MemoryJournal",
    "SqliteJournal",
    "ToolCallStarted",
    "ToolResult",
    "batches",
    "event_from_json",
    "event_to_json",
    "open_sqlite_journal",
    "outcome_from_event",
    "read_events",
    "rebuild_outcomes",
    "repair",
    "repaired",
    "replay",
    "request_of",
    "result_event",
]
