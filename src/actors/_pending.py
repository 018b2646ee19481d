"""What is not settled yet, and where it is stuck."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import attrs
import outcome
import trio

from ._execution import Execution

__all__ = ["Pending", "pending_of", "stuck_line"]

# Frames of these packages say how a task waits; the line that is wanted is the one that made it wait.
_PLUMBING = tuple(f"{Path(place).parent}{os.sep}" for place in (trio.__file__, outcome.__file__, Path(__file__).parent))


@attrs.frozen
class Pending:
    """A call that a batch has taken and not recorded.

    Attributes:
        index: Its place in its lane, from 0.
        call_id: The provider's label.
        name: The tool's name.
        phase: Its state, such as ``running`` or ``settled``.
        age: Seconds since it was handed in, on trio's clock.
        running_for: Seconds since it was dispatched, or ``None``.
        line: ``file:line in function`` where its task is stuck, or ``None`` if it is not running.
        waits_for: The indices of the calls that it waits for: those it conflicted with, or for a settled call the
            ones that must commit before it.
        parent: The key of the call that made it, or ``None``.
    """

    index: int
    call_id: str
    name: str
    phase: str
    age: float
    running_for: float | None = None
    line: str | None = None
    waits_for: tuple[int, ...] = ()
    parent: str | None = None

    def __str__(self) -> str:
        parts = [f"call {self.index} {self.call_id!r} of {self.name!r} is {self.phase}, {self.age:.1f} s old"]
        parts += [f"at {self.line}"] if self.line else []
        parts += [f"waiting for {', '.join(map(str, self.waits_for))}"] if self.waits_for else []
        return ", ".join(parts)


def pending_of(execution: Execution, phase: str, waits_for: tuple[int, ...]) -> Pending:
    """Describe a call that was created."""
    now = trio.current_time()
    started = execution.started_at
    return Pending(
        index=execution.index,
        call_id=execution.call.call_id,
        name=execution.call.name,
        phase=phase,
        age=now - execution.queued_at,
        running_for=None if started is None or execution.task is None else now - started,
        line=stuck_line(execution),
        waits_for=waits_for,
        parent=None if execution.parent is None else execution.parent.key,
    )


def stuck_line(execution: Execution) -> str | None:
    """Where the call's task is: the innermost line outside trio and quiesce; in a thread, the thread's."""
    if execution.thread is not None:
        frames: list[tuple[FrameType, int]] = []
        frame = sys._current_frames().get(execution.thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented
        while frame is not None:
            frames.insert(0, (frame, frame.f_lineno))
            frame = frame.f_back
        return _innermost(frames)
    if execution.task is None:
        return None
    return _innermost(list(execution.task.iter_await_frames()))


def _innermost(frames: list[tuple[FrameType, int]]) -> str | None:
    theirs = [(frame, line) for frame, line in frames if not frame.f_code.co_filename.startswith(_PLUMBING)]
    if not (chosen := theirs or frames):
        return None
    frame, line = chosen[-1]
    return f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_qualname}"
