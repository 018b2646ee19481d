"""A deadline that knows whether it was the first cause."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import trio

from ._execution import Execution

__all__ = ["OpenDeadline", "open_deadline"]


class OpenDeadline:
    """See ``registry.Deadline``.

    First cause wins, by the times on trio's clock: it fired if it ran out before any deadline around it and not
    after the caller's cancel. ``CancelScope.cancelled_caught`` cannot tell, since once both have fired it speaks of
    the outer scope; ``cancel_called`` cannot, since it also turns true when the time passes after the caller's cancel.
    """

    def __init__(self, execution: Execution, seconds: float) -> None:
        if not (isinstance(seconds, int | float) and seconds > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"call.deadline() takes a number of seconds above 0, got {seconds!r}"
            raise ValueError(msg)
        self._execution = execution
        # Taken before this deadline's own scope opens: what is around it, the caller's deadlines included.
        self._around = min(trio.current_effective_deadline(), execution.next_deadline())
        self.at = trio.current_time() + seconds
        self._ran_out: bool | None = None

    @property
    def fired(self) -> bool:
        """Whether it ran out first; settled when its block ends."""
        return self._first() if self._ran_out is None else self._ran_out

    def close(self) -> None:
        """Settle ``fired``: time that passes later does not count."""
        self._ran_out = self._first()

    def _first(self) -> bool:
        if trio.current_time() < self.at or self._around <= self.at:
            return False
        cancelled_at = self._execution.cancelled_at
        return cancelled_at is None or self.at <= cancelled_at


@contextmanager
def open_deadline(execution: Execution, seconds: float) -> Generator[OpenDeadline]:
    """Cancel what runs inside after ``seconds``; the deadline also reaches a body behind an inner wrapper's shield."""
    deadline = OpenDeadline(execution, seconds)
    execution.deadlines.append(deadline)
    try:
        with trio.CancelScope(deadline=deadline.at):
            try:
                yield deadline
            finally:
                deadline.close()
    finally:
        execution.deadlines.remove(deadline)
