"""Which line of whose code opened, made or started what a run leaves behind.

Most comes from an audit hook. It is put in place once, since Python can never take one away again, and does nothing
while nobody watches. Where an audit event does not tell what came of the call (the descriptors of ``os.pipe``, the
child of ``os.fork``), the function itself is replaced while somebody watches.
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeAlias

import attrs
import trio

from ._system import inode_of
from ._where import calling_frame, frames_of_threads, line_of, outwards, users_line_of

__all__ = ["SPAWNER", "Origins", "Place", "recorded_origins", "shown", "users_place"]

Place: TypeAlias = tuple[CodeType, int] | None

SPAWNER: contextvars.ContextVar[Callable[[], trio.lowlevel.Task | None] | None] = contextvars.ContextVar(
    "quiesce.testing.spawner", default=None
)
"""The task whose context this is: a worker thread has a copy of it, and no other way to tell whom it works for."""

_CREATES = os.O_CREAT
_GIVE_NUMBERS = ("pipe", "pipe2", "dup", "memfd_create", "eventfd", "pidfd_open", "openpty")
_GIVE_CHILDREN = ("fork", "posix_spawn", "posix_spawnp")


@attrs.define(eq=False)
class Origins:
    """What was opened, made and started while it was watched, and where.

    Attributes:
        opened: By absolute path, the last place that opened it.
        locked: By device and inode, for files that were locked or unlocked through ``fcntl``, the last place.
        created: By absolute path, for files and folders that were not there before.
        numbers: By descriptor, for those that have no path.
        children: By process id.
        sockets: Weakly, in order.
        popens: Weakly, in order.
    """

    opened: dict[str, Place] = attrs.field(factory=dict[str, Place])
    locked: dict[str, Place] = attrs.field(factory=dict[str, Place])
    created: dict[str, Place] = attrs.field(factory=dict[str, Place])
    numbers: dict[int, Place] = attrs.field(factory=dict[int, Place])
    children: dict[int, Place] = attrs.field(factory=dict[int, Place])
    sockets: list[tuple[weakref.ref[Any], Place]] = attrs.field(factory=list[tuple[weakref.ref[Any], Place]])
    popens: list[tuple[weakref.ref[Any], Place]] = attrs.field(factory=list[tuple[weakref.ref[Any], Place]])

    def of_descriptor(self, number: int, target: str) -> str | None:
        """The line that opened a descriptor."""
        for reference, place in reversed(self.sockets):
            found = reference()
            if found is not None and found.fileno() == number:
                return shown(place)
        for reference, place in reversed(self.popens):
            found = reference()
            streams = () if found is None else (found.stdin, found.stdout, found.stderr)
            if any(stream is not None and not stream.closed and stream.fileno() == number for stream in streams):
                return shown(place)
        return shown(self.opened.get(target) or self.numbers.get(number))

    def of_process(self, pid: int) -> str | None:
        """The line that started a child."""
        for reference, place in reversed(self.popens):
            found = reference()
            if found is not None and found.pid == pid:
                return shown(place)
        return shown(self.children.get(pid))

    def of_lock(self, inode: str) -> str | None:
        """The line that locked a file."""
        return shown(self.locked.get(inode))

    def of_file(self, path: str) -> str | None:
        """The line that made a file or folder, or else the first thing within it."""
        inside = (place for made, place in self.created.items() if made.startswith(path + os.sep))
        return shown(self.created.get(path) or self.opened.get(path) or next(inside, None))


def shown(place: Place) -> str | None:
    """A place in the words of a traceback."""
    return None if place is None else line_of(place[0].co_filename, place[1], place[0].co_qualname)


def users_place(frame: FrameType | None) -> Place:
    """The user's line that called, also from a worker thread of trio's; ``None`` if there is none."""
    place = users_line_of(outwards(frame))
    if place is not None:
        return place
    spawner = SPAWNER.get()
    task = None if spawner is None else spawner()
    return None if task is None else users_line_of(_await_frames(task))


def _await_frames(task: trio.lowlevel.Task) -> Iterator[tuple[FrameType, int]]:
    if getattr(task.coro, "cr_running", False):
        # It has handed its work to a thread and is on its way to wait for it: only its thread's stack shows where.
        for frame in frames_of_threads().values():
            stack = list(outwards(frame))
            if any(found is getattr(task.coro, "cr_frame", None) for found, _ in stack):
                return iter(stack)
    return reversed(list(task.iter_await_frames()))


_watching: list[Origins] = []


@contextmanager
def recorded_origins() -> Generator[Origins]:
    """Record what is opened, made and started in the block, by any thread of the process."""
    _install()
    origins = Origins()
    originals = {name: getattr(os, name) for name in (*_GIVE_NUMBERS, *_GIVE_CHILDREN) if hasattr(os, name)}
    for name, function in originals.items():
        setattr(os, name, _noting(function, origins.numbers if name in _GIVE_NUMBERS else origins.children))
    _watching.append(origins)
    try:
        yield origins
    finally:
        _watching.remove(origins)
        for name, function in originals.items():
            setattr(os, name, function)


def _noting(function: Callable[..., Any], notes: dict[int, Place]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        result: int | tuple[int, ...] = function(*args, **kwargs)
        place = users_place(calling_frame())
        for number in result if isinstance(result, tuple) else (result,):
            notes[number] = place
        return result

    return noting


@functools.cache
def _install() -> None:
    sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching or event not in _NOTES:
        return
    try:
        frame = calling_frame()
        assert frame is not None  # Python code has raised the event: there is no other here
        for origins in tuple(_watching):
            _NOTES[event](origins, args, frame)
    except Exception:  # noqa: BLE001, S110 - what an audit hook raises would fail the call that it only looks at
        pass


def _note_open(origins: Origins, args: tuple[Any, ...], frame: FrameType) -> None:
    path, _mode, flags = args
    if isinstance(path, int):
        return
    whole = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - as plain text, and without following links
    place = users_place(frame)
    origins.opened[whole] = place
    if flags & _CREATES and not os.path.lexists(whole):
        origins.created[whole] = place


def _note_mkdir(origins: Origins, args: tuple[Any, ...], frame: FrameType) -> None:
    origins.created.setdefault(os.path.abspath(os.fsdecode(args[0])), users_place(frame))  # noqa: PTH100


def _note_rename(origins: Origins, args: tuple[Any, ...], _frame: FrameType) -> None:
    before, after = (os.path.abspath(os.fsdecode(path)) for path in args[:2])  # noqa: PTH100
    if before in origins.created:
        origins.created[after] = origins.created.pop(before)


def _note_lock(origins: Origins, args: tuple[Any, ...], frame: FrameType) -> None:
    number = args[0] if isinstance(args[0], int) else args[0].fileno()
    origins.locked[inode_of(number)] = users_place(frame)


def _note_socket(origins: Origins, args: tuple[Any, ...], frame: FrameType) -> None:
    origins.sockets.append((weakref.ref(args[0]), users_place(frame)))


def _note_popen(origins: Origins, _args: tuple[Any, ...], frame: FrameType) -> None:
    # The event comes before the child, so its number is asked of the Popen whose method raised the event.
    popen: Any = frame.f_locals.get("self")
    if hasattr(popen, "pid"):
        origins.popens.append((weakref.ref(popen), users_place(frame)))


_NOTES: dict[str, Callable[[Origins, tuple[Any, ...], FrameType], None]] = {
    "fcntl.flock": _note_lock,
    "fcntl.lockf": _note_lock,
    "open": _note_open,
    "os.mkdir": _note_mkdir,
    "os.rename": _note_rename,
    "socket.__new__": _note_socket,
    "subprocess.Popen": _note_popen,
}
