"""Where tasks and threads stand, in the words of a traceback."""

from __future__ import annotations

import inspect
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import outcome
import trio

__all__ = [
    "KIT_THREAD",
    "all_tasks",
    "busy_threads",
    "calling_frame",
    "frames_of_threads",
    "line_of",
    "outwards",
    "place_of",
    "place_of_task",
    "users_line_of",
]

KIT_THREAD = "quiesce.testing"
"""What the names of the kit's own threads begin with."""

_HERE = str(Path(__file__).parent)
_TRIO = str(Path(trio.__file__).parent)
_NOBODYS = (_HERE, _TRIO, str(Path(outcome.__file__).parent), "<frozen ")
_STDLIB = sysconfig.get_path("stdlib")
_INSTALLED = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))  # may lie inside the standard library's
_OUTSIDE = tuple(
    str(Path(trio.__file__).parent / name)
    for name in ("_threads.py", "_signals.py", "_core/_io_", "_core/_windows", "_subprocess_platform")
)
_IDLE_EXECUTOR = str(Path("concurrent") / "futures" / "thread.py")
_IDLE_WORKER = str(Path("trio") / "_core" / "_thread_cache.py")


def line_of(filename: str, line: int, function: str) -> str:
    """``path:line in function``, the path relative to the working directory where that is shorter."""
    path = Path(filename)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return f"{path}:{line} in {function}"


def place_of(frames: Iterator[tuple[FrameType, int]]) -> str | None:
    """The first of the frames that is neither trio's nor the kit's own, or the last if all are."""
    last: str | None = None
    for frame, line in frames:
        code = frame.f_code
        place = line_of(code.co_filename, line, code.co_qualname)
        if not code.co_filename.startswith((_HERE, _TRIO)):
            return place
        last = place
    return last


def place_of_task(task: trio.lowlevel.Task) -> str:
    """The line that a task waits on, or is about to begin with."""
    frames = list(task.iter_await_frames())
    place = place_of(iter(reversed(frames)))
    if place is not None:
        return place
    code = getattr(task.coro, "cr_code", None)
    return task.name if code is None else line_of(code.co_filename, code.co_firstlineno, code.co_qualname)


def all_tasks(root: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """A task and all below it, parents first."""
    pending = [root]
    while pending:
        task = pending.pop()
        yield task
        for nursery in task.child_nurseries:
            pending.extend(nursery.child_tasks)


def waits_for_outside(task: trio.lowlevel.Task) -> bool:
    """Whether a task waits for a worker thread, a descriptor, a process or a signal."""
    return any(frame.f_code.co_filename.startswith(_OUTSIDE) for frame, _ in task.iter_await_frames())


def waits_for_children(task: trio.lowlevel.Task) -> bool:
    """Whether a task stands at the end of a nursery."""
    return any(frame.f_code.co_name == "_nested_child_finished" for frame, _ in task.iter_await_frames())


def busy_threads(ignored: frozenset[int] = frozenset()) -> dict[int, str]:
    """The threads, besides the calling one, that are at work: their name and line by identity.

    A worker thread of trio's that waits for its next job is not at work, and the kit's own threads do not count.

    Args:
        ignored: Identities of threads to leave out.
    """
    me = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: dict[int, str] = {}
    for ident, frame in frames_of_threads().items():
        if ident == me or ident in ignored or _waits_for_a_job(frame):
            continue
        name = names.get(ident, str(ident))
        if not name.startswith(KIT_THREAD):
            found[ident] = f"thread {name!r} at {place_of(outwards(frame))}"
    return found


def users_line_of(frames: Iterator[tuple[FrameType, int]]) -> tuple[CodeType, int] | None:
    """The first of the frames that is neither trio's, the kit's nor the standard library's, if there is one.

    Unformatted, since it is asked for far more often than shown.
    """
    for frame, line in frames:
        file = frame.f_code.co_filename
        if not file.startswith(_NOBODYS) and (not file.startswith(_STDLIB) or file.startswith(_INSTALLED)):
            return frame.f_code, line
    return None


def _waits_for_a_job(frame: FrameType) -> bool:
    """Whether a thread is an idle worker of trio's, or of an executor's of the standard library."""
    code = frame.f_code
    return code.co_filename.endswith(_IDLE_WORKER) or (
        code.co_name == "_worker" and code.co_filename.endswith(_IDLE_EXECUTOR)
    )


def outwards(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """A frame and its callers, with the lines they are at."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def calling_frame() -> FrameType | None:
    """The frame that called the function which calls this."""
    here = inspect.currentframe()
    caller = None if here is None else here.f_back
    return None if caller is None else caller.f_back


def frames_of_threads() -> dict[int, FrameType]:
    """The innermost frame of each thread, by identity."""
    return sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented, and named so by Python
