"""What a piece of code leaves behind: tasks, threads, processes, descriptors, temporary files and held locks."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import attrs
import trio

from ._held import HeldLocks
from ._origins import Origins, recorded_origins, shown
from ._system import child_processes, descriptors, file_locks, files_of_descriptors
from ._where import all_tasks, busy_threads, frames_of_threads, outwards, place_of_task, users_line_of

__all__ = ["Leftover", "LeftoverError", "LeftoverKind", "Leftovers", "Watch", "watch_leftovers"]

LeftoverKind: TypeAlias = Literal["task", "thread", "process", "descriptor", "file", "lock"]

_LOOKS_TEMPORARY = re.compile(
    r"\.te?mp$|\.te?mp[-._][^.]*$|^te?mp[a-z0-9_]{8}(\.\w+)?$|\.part(ial)?$|\.new$|~$|\.swp$", re.IGNORECASE
)
_START = 0.002


@attrs.frozen
class Leftover:
    """One thing that is still there.

    Attributes:
        kind: What it is.
        what: Which one it is, in words.
        line: ``path:line in function`` that made it (for a task or a thread: where it stands; for a lock: where it was
            taken), as far as that is known.
    """

    kind: LeftoverKind
    what: str
    line: str | None

    def __str__(self) -> str:
        """One line."""
        return f"{self.kind} left over: {self.what}" + (f", from {self.line}" if self.line else "")


class LeftoverError(AssertionError):
    """Something was left over.

    Attributes:
        leftovers: What.
    """

    def __init__(self, leftovers: tuple[Leftover, ...]) -> None:
        super().__init__("\n".join(map(str, leftovers)))
        self.leftovers = leftovers


@attrs.define
class Leftovers:
    """What ``watch_leftovers`` gives.

    Attributes:
        found: What was left over when the block ended; empty until then.
    """

    found: tuple[Leftover, ...] = ()

    def check(self) -> None:
        """Fail if anything was left over.

        Raises:
            LeftoverError: It was.
        """
        if self.found:
            raise LeftoverError(self.found)


@contextmanager
def watch_leftovers(*, grace: float = 1.0) -> Generator[Leftovers]:
    """Look what the block leaves behind; ``check()`` what it gives after the block.

    For tests that are not async, or fixtures around them; the block may run trio. In the block, ``tempfile.tempdir``
    and ``TMPDIR`` name a fresh folder, which is removed after it. What only the garbage collector would close counts
    as left over.

    Seen are: threads at work; children of this process, also those that have ended but were not waited for (Linux);
    descriptors; what is in the fresh folder, and files made elsewhere by this process whose name looks temporary; locks
    of trio that are held, and locks on files taken through ``fcntl`` (Linux); tasks, if the block lies within a run of
    trio. Not seen are: grandchildren whose parent has ended, locks of ``threading``, and semaphores without
    ``max_value``.

    It holds for the whole process: what other threads do meanwhile counts too.

    Args:
        grace: Most real seconds to wait for a thread that may just be ending.

    Source: ours; docs/testing.md.
    """
    result = Leftovers()
    with Watch(grace=grace) as watch:
        watch.begin()
        try:
            yield result
        finally:
            result.found = watch.compare()


@attrs.frozen
class _Snapshot:
    """Whatever could be left over, as it was before."""

    tasks: frozenset[trio.lowlevel.Task]
    threads: frozenset[int]
    processes: frozenset[tuple[int, str]]
    descriptors: frozenset[tuple[int, tuple[int, int]]]
    locks: frozenset[str]

    @classmethod
    def take(cls) -> Self:
        return cls(
            frozenset(_tasks()),
            frozenset(busy_threads()),
            frozenset(child_processes()),
            frozenset(files_of_descriptors().items()),
            frozenset(file_locks()),
        )


class Watch:
    """A watch in parts, so that what is compared may lie within a run that the watch is around.

    Entering it redirects temporary files and records origins; ``begin`` and ``compare`` are called inside.
    """

    def __init__(self, *, grace: float = 1.0, older_locks: Iterable[weakref.ref[Any]] = ()) -> None:
        self._grace = grace
        self._older_locks = tuple(older_locks)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        """Begin to record."""
        with ExitStack() as opened:
            self._folder = opened.enter_context(_private_folder())
            self._origins: Origins = opened.enter_context(recorded_origins())
            self._locks = HeldLocks(self._older_locks)
            opened.enter_context(self._locks.noting())
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop recording, and remove the folder."""
        self._opened.close()

    def begin(self) -> None:
        """What is there now is not left over."""
        self._before = _Snapshot.take()

    def compare(self) -> tuple[Leftover, ...]:
        """What is there and was not."""
        found = [
            *self._tasks(),
            *self._threads(),
            *self._processes(),
            *self._descriptors(),
            *self._files(),
            *self._file_locks(),
            *self._trios_locks(),
        ]
        return tuple(found)

    def _tasks(self) -> list[Leftover]:
        before = self._before.tasks
        left = [task for task in _tasks() if task not in before]
        # Those below a task that is left over are its own affair.
        tops = [task for task in left if task.parent_nursery is None or task.parent_nursery.parent_task in before]
        return [Leftover("task", task.name, place_of_task(task)) for task in tops]

    def _threads(self) -> list[Leftover]:
        give_up = time.monotonic() + self._grace
        if threading.active_count() > 1:
            time.sleep(_START)  # one that was given a job right now may not be at work on it yet
        while (left := busy_threads(self._before.threads)) and time.monotonic() < give_up:
            time.sleep(0.001)
        frames = frames_of_threads()
        return [
            Leftover("thread", what.partition(" at ")[0], shown(users_line_of(outwards(frames.get(ident)))))
            for ident, what in sorted(left.items())
        ]

    def _processes(self) -> list[Leftover]:
        return [
            Leftover("process", what, self._origins.of_process(process[0]))
            for process, what in child_processes().items()
            if process not in self._before.processes
        ]

    def _descriptors(self) -> list[Leftover]:
        left = sorted(set(files_of_descriptors().items()) - self._before.descriptors)
        targets = descriptors() if left else {}
        return [
            Leftover("descriptor", f"{number}, {targets[number]}", self._origins.of_descriptor(number, targets[number]))
            for number, _ in left
            if number in targets
        ]

    def _files(self) -> list[Leftover]:
        inside = [str(path) for path in sorted(self._folder.iterdir())]
        outside = [
            path
            for path in list(self._origins.created)
            if _LOOKS_TEMPORARY.search(Path(path).name)
            and not path.startswith(str(self._folder) + os.sep)
            and os.path.lexists(path)
        ]
        return [Leftover("file", path, self._origins.of_file(path)) for path in (*inside, *outside)]

    def _trios_locks(self) -> list[Leftover]:
        if self._locks.found():
            gc.collect()  # nobody can wait for a lock that nobody can reach
        return [Leftover("lock", held.what, held.line) for held in self._locks.found()]

    def _file_locks(self) -> list[Leftover]:
        touched = self._origins.locked
        held = file_locks() if touched else {}
        new = held.keys() - self._before.locks
        return [Leftover("lock", held[inode], self._origins.of_lock(inode)) for inode in touched if inode in new]


def _tasks() -> list[trio.lowlevel.Task]:
    if not trio.lowlevel.in_trio_run():
        return []
    root = trio.lowlevel.current_root_task()
    return [] if root is None else list(all_tasks(root))


@contextmanager
def _private_folder() -> Generator[Path]:
    """Where temporary files go in the block; it and they are removed after."""
    folder = Path(tempfile.mkdtemp(prefix="quiesce-watch-")).resolve()
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
