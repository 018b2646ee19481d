"""The journal in a SQLite file: events wait in memory, and a worker thread writes all that wait in one transaction."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from ..errors import JournalFileError, RuntimeClosedError
from ._events import Event
from ._sqlite_file import StrPath
from ._sqlite_writer import Row, Writer, open_writer, row_of

__all__ = ["SqliteJournal", "open_sqlite_journal"]

logger = logging.getLogger(__name__)


class SqliteJournal:
    """A journal that lasts. Made by ``open_sqlite_journal``; any number of runtimes may share it.

    Events are kept in the order of ``append``. What was flushed survives the end of the process, whatever ends it. If
    a write fails, nothing of it is in the file, the events are kept, and the next flush tries again.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: list[Row] = []
        self._appended = self._durable = writer.count
        self._lock = trio.Lock()
        # Of its own: the default one may be taken up by tools that wait for this flush.
        self._limiter = trio.CapacityLimiter(1)
        self._something_waits = trio.Event()
        self._closing = False

    @property
    def path(self) -> Path:
        """The file, with links resolved."""
        return self._writer.path

    def append(self, event: Event) -> None:
        """Take one event into memory; see ``Journal``.

        Raises:
            RuntimeClosedError: The journal is closed.
            TypeError: Something in the event is not JSON; the event is not taken.
            ValueError: Something in it is not lossless JSON; the event is not taken.
        """
        self._check_open()
        self._waiting.append(row_of(event))
        self._appended += 1
        self._something_waits.set()

    @trio.lowlevel.enable_ki_protection
    async def flush(self) -> None:
        """Return when everything appended so far is on the disk. Flushes that wait together share one transaction.

        Once its write has begun, a cancel waits for it.

        Raises:
            JournalWriteError: The disk is full or fails, or another program holds the file.
            JournalFileError: The file is damaged.
            RuntimeClosedError: The journal is closed.
        """
        target = self._appended
        if target <= self._durable:
            self._check_open()
            await trio.lowlevel.checkpoint()
            return
        async with self._lock:
            # Whoever had the lock before may have written these, too.
            if self._durable < target:
                self._check_open()
                await self._write()

    async def write_behind(self, seconds: float, scope: trio.CancelScope) -> None:
        """Flush whatever has waited for a while, until ``scope`` is cancelled."""
        with scope:
            while True:
                await self._something_waits.wait()
                await trio.sleep(seconds)
                self._something_waits = trio.Event()
                try:
                    await self.flush()
                except JournalFileError as error:
                    logger.warning("%s", error)  # whoever flushes next is told; until then nothing is lost

    @trio.lowlevel.enable_ki_protection
    async def aclose(self) -> None:
        """Write what waits and close the file, whatever comes meanwhile; a Ctrl-C is raised when that is done."""
        self._closing = True
        interrupt: KeyboardInterrupt | None = None
        failure: Exception | None = None
        closed = False
        while not closed:
            try:
                # Shields the last write of the journal and the closing of its file, for as long as the disk takes:
                # what was appended must not be lost. Pinned by test_a_cancel_loses_nothing_that_was_appended.
                with trio.CancelScope(shield=True):
                    async with self._lock:
                        try:
                            if self._waiting and failure is None:
                                await self._write()
                        except Exception as error:  # noqa: BLE001 - raised below, once the file is closed
                            failure = error
                        await trio.to_thread.run_sync(self._writer.close, limiter=self._limiter)
                        closed = True
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt
        if failure is not None:
            raise failure

    async def _write(self) -> None:
        rows = self._waiting.copy()
        await trio.to_thread.run_sync(self._writer.write, rows, limiter=self._limiter)
        del self._waiting[: len(rows)]
        self._durable += len(rows)

    def _check_open(self) -> None:
        if self._closing:
            msg = f"the journal {str(self.path)!r} is closed; use it inside its `async with open_sqlite_journal(...)`"
            raise RuntimeClosedError(msg)


@asynccontextmanager
async def open_sqlite_journal(path: StrPath, *, write_behind: float = 0.2) -> AsyncGenerator[SqliteJournal]:
    """Open a journal file, or make a new one; leaving the block writes what waits and closes it.

    The file has one writer at a time, in all processes; ``read_events`` works meanwhile. An exception from the block
    leaves it unchanged. Beside the file lie a ``-lock`` file, which stays, and while it is open ``-wal`` and ``-shm``.

    Args:
        path: The file. One that is no journal of this version, or damaged, is refused and left as it is.
        write_behind: Seconds after which an event is written even if nobody flushes, so that a crash under
            ``durability="settled"`` leaves a trace; ``math.inf`` for never.

    Raises:
        JournalLockedError: It has a writer already, or another program has locked it.
        JournalFileError: It is of another program or version, or damaged, or cannot be opened; or, when the block is
            left, what waits cannot be written.
        ValueError: ``write_behind`` is not a number of seconds from 0.

    Source: ``docs/design.md`` section 5; ``spec/behaviour.md`` F6.4.
    """
    if not write_behind >= 0:
        msg = f"write_behind must be a number of seconds from 0, or math.inf, got {write_behind!r}"
        raise ValueError(msg)
    journal = SqliteJournal(await trio.to_thread.run_sync(partial(open_writer, path)))
    failed: BaseException | None = None
    # Shields the task that writes behind, until the block is left: what a cancelled batch records while it settles is
    # written like the rest, and the nursery has no Cancelled to raise in place of the block's own error. Pinned by
    # test_the_error_of_the_block_leaves_unchanged.
    scope = trio.CancelScope(shield=True)
    async with trio.open_nursery() as nursery:
        if write_behind < math.inf:
            nursery.start_soon(journal.write_behind, write_behind, scope, name="quiesce: write behind")
        try:
            yield journal
        except BaseException as error:  # noqa: ASYNC103, BLE001 - raised again outside the nursery, which would wrap it
            failed = error
        scope.cancel()
        try:
            await journal.aclose()
        except BaseException as error:  # noqa: ASYNC103, BLE001 - as above; the block's own error comes first
            if failed is None:
                failed = error
            else:
                failed.add_note(f"and {error}")
    if failed is not None:
        raise failed
