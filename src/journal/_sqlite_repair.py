"""Repairing a journal file: an explicit act, by whoever becomes its one writer."""

from __future__ import annotations

from contextlib import closing

from ._events import Event
from ._repair import repaired
from ._sqlite_file import StrPath, errors_of
from ._sqlite_read import events_of_rows
from ._sqlite_writer import open_writer, row_of

__all__ = ["repair"]


def repair(path: StrPath) -> list[Event]:
    """Close every batch of a journal file that was cut short; see ``repaired``.

    What it appends is written in one transaction, so a repair that is killed has done nothing. Finished batches are not
    touched, and a second repair appends nothing. A file that still has a writer is refused, since its batches may run.
    It blocks: under trio, call it through ``trio.to_thread.run_sync``.

    Args:
        path: The file.

    Returns:
        What was appended, in order; the list is the caller's.

    Raises:
        JournalLockedError: It has a writer, or another program has locked it.
        JournalFileError: There is no such file, it is no journal of this version, it is damaged, or cannot be opened or
            written.

    Source: ``spec/behaviour.md`` F5, F6.2.
    """
    with closing(open_writer(path, must_exist=True)) as writer:
        with errors_of(writer.path):
            rows = writer.connection.execute(
                "SELECT seq, event FROM events WHERE batch NOT IN"
                " (SELECT batch FROM events WHERE type = 'batch/end') ORDER BY seq"
            ).fetchall()
        closers = repaired(events_of_rows(writer.path, rows))
        if closers:
            writer.write([row_of(closer) for closer in closers])
    return closers
