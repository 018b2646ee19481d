"""A journal file: what makes a file one, looking at it without changing it, and what is wrong with those that are not.

Source: ``docs/design.md`` section 5, SQLite file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..errors import JournalFileError, JournalLockedError, JournalWriteError

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "StrPath",
    "check_header",
    "connect",
    "damaged",
    "errors_of",
    "query",
    "resolved",
]

StrPath: TypeAlias = str | os.PathLike[str]

APPLICATION_ID: Final = int.from_bytes(b"quis", "big")
VERSION: Final = 1

_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})

_BUSY_SECONDS: Final = 1.0
"""How long a reader waits for another that cleans up after a killed writer: nothing else locks it out for long."""


def resolved(path: StrPath) -> Path:
    """The one name of a file, whatever links lead to it; its lock and its write-ahead log lie beside it."""
    return Path(os.path.realpath(path))


def connect(path: Path, options: str, *, timeout: float = 0.0) -> sqlite3.Connection:
    """Open a file with URI options; transactions are begun and ended by hand, in one thread at a time."""
    uri = f"{path.as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


@contextmanager
def errors_of(path: Path, *, writing: bool = False) -> Generator[None]:
    """Raise what SQLite or the system says about a file as an error that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _told(path, error, writing=writing) from error


def _told(path: Path, error: Exception, *, writing: bool) -> JournalFileError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_INTERNAL) & 0xFF  # the rest of it is detail
    kept = "what was not written is kept, and the next flush writes it"
    if code in _LOCKED:
        problem, remedy = "is locked by another program", "end that program, or wait until it is done"
        if writing:
            return JournalWriteError(str(path), problem, f"{remedy}; {kept}")
        return JournalLockedError(str(path), problem, remedy)
    if code in _BROKEN:
        return damaged(path, str(error))
    if writing:
        remedy = f"free some space or repair the disk; {kept}"
        return JournalWriteError(str(path), f"cannot be written: {error}", remedy)
    remedy = "see that its folder exists, that there is space, and that this user may read and write there"
    return JournalFileError(str(path), f"cannot be opened: {error}", remedy)


def damaged(path: Path, what: str) -> JournalFileError:
    """The error for a file that was cut short or overwritten."""
    remedy = "it was left as it is; restore a copy, or save what `sqlite3 FILE .recover` finds"
    return JournalFileError(str(path), f"is damaged: {what}", remedy)


def check_header(path: Path) -> None:
    """Look whether an existing file is a journal that this version can read, changing and locking nothing.

    The header is read through SQLite, not with ``open``: closing a file of one's own takes away the locks that any
    other connection of this process holds on it (POSIX). ``immutable`` leaves locks and log alone. The number of
    pages in the header is not believed (``writable_schema``), since it may be ahead of the file while a checkpoint is
    cut short, when the log has the rest.

    Raises:
        JournalFileError: It is missing, empty, of another program, or of another version of the format.
    """
    elsewhere = "give the journal another path, or move this file away"
    with errors_of(path):
        if not path.is_file():
            problem = "is not a file" if path.exists() else "does not exist"
            raise JournalFileError(str(path), problem, "look for a mistake in the path")
        if path.stat().st_size == 0:
            remedy = f"remove it to begin a new journal; else {elsewhere}"
            raise JournalFileError(str(path), "is an empty file", remedy)
    try:
        with closing(connect(path, "mode=ro&immutable=1")) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            ((application_id,),) = connection.execute("PRAGMA application_id")
            ((version,),) = connection.execute("PRAGMA user_version")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            problem = "is not a journal of quiesce, nor any SQLite file"
            raise JournalFileError(str(path), problem, elsewhere) from error
        raise _told(path, error, writing=False) from error
    if application_id != APPLICATION_ID:
        problem = f"is not a journal of quiesce: its application_id is {application_id}, not {APPLICATION_ID}"
        raise JournalFileError(str(path), problem, elsewhere)
    if version != VERSION:
        problem = f"has format version {version}; this quiesce knows version {VERSION}"
        remedy = "update quiesce" if version > VERSION else elsewhere
        raise JournalFileError(str(path), problem, remedy)


def query(path: Path, sql: str, parameters: Sequence[str | bytes] = ()) -> list[tuple[Any, ...]]:
    """What a query finds in a journal, all at one moment; the file is not changed and nobody is locked out.

    Raises:
        JournalFileError: See ``check_header``; or it is damaged.
    """
    check_header(path)
    with errors_of(path):
        before = _unused(path)
        if before is not None:
            # Nobody has it open: a connection that believes so leaves no -wal and -shm behind. If a writer came
            # meanwhile, what was read is worth nothing.
            try:
                rows = _query(path, "mode=ro&immutable=1", sql, parameters)
            except JournalFileError:
                if _unused(path) == before:
                    raise
            else:
                if _unused(path) == before:
                    return rows
        return _query(path, "mode=ro", sql, parameters)


def _unused(path: Path) -> tuple[int, int, int] | None:
    """Which state a file is in that nobody has open, or ``None`` if there is a write-ahead log beside it."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _query(path: Path, options: str, sql: str, parameters: Sequence[str | bytes]) -> list[tuple[Any, ...]]:
    with errors_of(path), closing(connect(path, options, timeout=_BUSY_SECONDS)) as connection:
        if "immutable" in options:
            # SQLite reads what is missing of the last page as zeros. With a log beside it, the log may have that page.
            ((page_size,),) = connection.execute("PRAGMA page_size")
            if path.stat().st_size % page_size:
                raise damaged(path, "its last page is cut short")
        return connection.execute(sql, parameters).fetchall()
