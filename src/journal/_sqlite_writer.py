"""The one writer of a journal file: its lock, a new file, and rows that are written in one transaction."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeAlias

from ..errors import JournalFileError, JournalLockedError
from ._events import Event
from ._sqlite_file import APPLICATION_ID, VERSION, StrPath, check_header, connect, damaged, errors_of, query, resolved
from ._sqlite_text import Column, event_to_column, text_to_column

__all__ = ["Row", "Writer", "open_writer", "row_of"]

Row: TypeAlias = tuple[Column, str, Column]

_SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE events (seq INTEGER PRIMARY KEY, batch NOT NULL, type NOT NULL, event NOT NULL);
CREATE INDEX events_by_batch ON events (batch);
PRAGMA journal_mode = WAL;
"""
_BUSY_SECONDS: Final = 5.0
"""How long a write waits for another program, such as a backup; readers never hold it up."""


def row_of(event: Event) -> Row:
    """An event as it is stored, without its place.

    Raises:
        TypeError: Something in it is not JSON.
        ValueError: Something in it is not lossless JSON.
    """
    return text_to_column(event.batch), event.type, event_to_column(event)


class Writer:
    """An open journal file. Synchronous, for one thread at a time; made by ``open_writer``.

    Attributes:
        path: The file.
        count: How many events the file holds: the place of the next one.
    """

    def __init__(self, path: Path, lock: sqlite3.Connection, connection: sqlite3.Connection, count: int) -> None:
        self.path = path
        self.count = count
        self.connection = connection
        self._lock = lock

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows in one transaction; when it returns, they are on the disk. If it raises, none was written.

        Raises:
            JournalWriteError: The disk is full or fails, or another program holds the file.
            JournalFileError: The file is damaged.
        """
        execute = self.connection.execute
        with errors_of(self.path, writing=True):
            try:
                execute("BEGIN IMMEDIATE")
                numbered = ((self.count + at, *row) for at, row in enumerate(rows))
                self.connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", numbered)
                execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    with suppress(sqlite3.Error):  # what went wrong first is what counts
                        execute("ROLLBACK")
                raise
        self.count += len(rows)

    def close(self) -> None:
        """Close the file, then let go of its lock."""
        with closing(self._lock), errors_of(self.path, writing=True):
            self.connection.close()


def open_writer(path: StrPath, *, must_exist: bool = False) -> Writer:
    """Open a journal for writing, or make a new one.

    A file that is not a sound journal is looked at through connections that cannot write, and left as it is.

    Args:
        path: The file; links are followed.
        must_exist: Whether a missing file is an error.

    Raises:
        JournalLockedError: It has a writer already, or another program has locked it.
        JournalFileError: It is of another program or version, or damaged, or cannot be opened.
    """
    path = resolved(path)
    if must_exist or path.exists():
        check_header(path)
    lock = _hold_lock(path)
    try:
        if not path.exists():
            _create(path)
        count = _checked_count(path)
        return Writer(path, lock, _open(path), count)
    except BaseException:
        lock.close()
        raise


def _hold_lock(path: Path) -> sqlite3.Connection:
    """Be the writer of a file until the connection is closed or the process ends, whatever ends it.

    A file of its own beside the journal is locked, so that readers of the journal are not; through SQLite, since its
    locks are there on every system. It stays behind, empty: a lock file that is removed lets two writers in.
    """
    beside = path.with_name(f"{path.name}-lock")
    with errors_of(path):
        lock = connect(beside, "mode=rwc")
    try:
        lock.execute("PRAGMA journal_mode = OFF")  # nothing is written, so no journal of it need lie about
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            remedy = "give each writer a file of its own, or close the other one; reading it is possible meanwhile"
            raise JournalLockedError(str(path), "has a writer already", remedy) from error
        remedy = f"see that {beside.name!r} may be written, or remove it while nobody writes the journal"
        raise JournalFileError(str(path), f"cannot be locked: {error}", remedy) from error
    return lock


def _create(path: Path) -> None:
    """Publish a new journal whole, or not at all, and never over another file."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        problem = f"does not exist, but its write-ahead log {log.name!r} does"
        raise JournalFileError(str(path), problem, "put the file back beside it, or move the log away")
    with errors_of(path), tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        new = Path(folder, "new")
        with closing(connect(new, "mode=rwc")) as connection:
            connection.executescript(_SCHEMA)
        try:
            path.hardlink_to(new)
        except FileExistsError:
            return  # by a program that knows no lock; what it is will be checked
        except OSError:  # a file system without links; the lock keeps other writers away
            new.rename(path)
    if os.name == "posix":  # pragma: no branch - elsewhere a folder cannot be opened, nor need it
        folder_descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder_descriptor)
        finally:
            os.close(folder_descriptor)


def _checked_count(path: Path) -> int:
    """How many events there are, if every page of the file is sound and none is missing."""
    ((verdict,),) = query(path, "PRAGMA quick_check(1)")
    if verdict != "ok":
        raise damaged(path, verdict)
    ((count, last),) = query(path, "SELECT count(*), max(seq) FROM events")
    if count and last != count - 1:
        raise damaged(path, f"it holds {count} events, numbered up to {last}")
    return int(count)


def _open(path: Path) -> sqlite3.Connection:
    with errors_of(path):
        connection = connect(path, "mode=rw")
    try:
        with errors_of(path):
            _make_durable(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_durable(path: Path, connection: sqlite3.Connection) -> None:
    # A copy that SQLite made (VACUUM INTO) may have left it.
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":  # pragma: no cover - needs a file system without shared memory
        problem = f"lies where SQLite has no write-ahead log, only {mode!r}"
        raise JournalFileError(str(path), problem, "put it on a disk of this computer")
    # A power failure, too, must leave what was flushed.
    connection.execute("PRAGMA synchronous = FULL")
    # Whoever has locked it is told of now, and not at the first flush.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")
