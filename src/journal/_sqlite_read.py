"""Reading a journal file: read-only, while a writer is at work or after one was killed."""

from __future__ import annotations

from typing import Any

import attrs

from ..errors import JournalFileError
from ._events import BatchEnd, BatchStart, BatchStatus, Event
from ._sqlite_file import StrPath, damaged, query, resolved
from ._sqlite_text import event_from_column, text_to_column

__all__ = ["BatchSummary", "batches", "events_of_rows", "read_events"]


@attrs.frozen
class BatchSummary:
    """A batch in a journal, without what happened in it.

    Attributes:
        batch: Its identity.
        start: How it began, or ``None`` if that is not recorded.
        end: How it ended, or ``None`` if it runs still or was cut short.
    """

    batch: str
    start: BatchStart | None
    end: BatchEnd | None

    @property
    def status(self) -> BatchStatus | None:
        """How it ended, or ``None`` if it runs still or was cut short: ``repair`` tells which."""
        return None if self.end is None else self.end.status


def read_events(path: StrPath, *, batch: str | None = None) -> list[Event]:
    """The events of a journal file in the order of their recording; values inside are frozen.

    The file is opened read-only. That works while a writer is active, whose flushed events are seen up to one moment,
    and on a file whose writer was killed. It blocks while it reads: under trio, call it through
    ``trio.to_thread.run_sync``.

    Args:
        path: The file.
        batch: Only the events of this batch; of all batches if omitted.

    Raises:
        JournalFileError: There is no such file, it is no journal of this version, it is damaged or cannot be opened.
        JournalLockedError: Another program has locked it.
    """
    path = resolved(path)
    if batch is None:
        rows = query(path, "SELECT seq, event FROM events ORDER BY seq")
        if rows and rows[-1][0] != len(rows) - 1:
            raise damaged(path, f"it holds {len(rows)} events, numbered up to {rows[-1][0]}")
    else:
        wanted = text_to_column(batch)
        rows = query(path, "SELECT seq, event FROM events WHERE batch = ? ORDER BY seq", (wanted,))
    return events_of_rows(path, rows)


def batches(path: StrPath) -> list[BatchSummary]:
    """The batches of a journal file, in the order in which they began.

    Args:
        path: The file; see ``read_events``.

    Raises:
        JournalFileError: See ``read_events``.
    """
    path = resolved(path)
    sql = (
        "SELECT seq, event FROM events WHERE type IN ('batch/start', 'batch/end')"
        " OR seq IN (SELECT min(seq) FROM events GROUP BY batch) ORDER BY seq"
    )
    found: dict[str, BatchSummary] = {}
    for event in events_of_rows(path, query(path, sql)):
        summary = found.setdefault(event.batch, BatchSummary(event.batch, None, None))
        if isinstance(event, BatchStart):
            found[event.batch] = attrs.evolve(summary, start=event)
        elif isinstance(event, BatchEnd):
            found[event.batch] = attrs.evolve(summary, end=event)
    return list(found.values())


def events_of_rows(path: StrPath, rows: list[tuple[Any, ...]]) -> list[Event]:
    """The events in rows of place and text.

    Raises:
        JournalFileError: A text is not an event.
    """
    events: list[Event] = []
    for seq, column in rows:
        try:
            events.append(event_from_column(column))
        except (ValueError, TypeError) as error:
            raise _unreadable(path, seq, error) from error
    return events


def _unreadable(path: StrPath, seq: object, error: Exception) -> JournalFileError:
    return damaged(resolved(path), f"event {seq} cannot be read: {error}")
