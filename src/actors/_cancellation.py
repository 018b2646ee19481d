"""Noticing a cancel: in the task that asks, and for tasks that a shield keeps from seeing it."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

__all__ = ["CallerCancel", "cancelled_here", "in_loop"]


def cancelled_here() -> bool:
    """Whether the next checkpoint of this task would raise ``Cancelled``. Not a checkpoint itself."""
    return trio.current_effective_deadline() == -math.inf


def in_loop() -> bool:
    """Whether this is trio's thread, and not a worker's."""
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


class CallerCancel:
    """When and why the scopes around a batch were cancelled, known the moment it happens.

    A body behind a wrapper's shield, or in a shield of its own, cannot see its caller's cancel. While there are such
    bodies, one task in the batch's nursery sleeps for them; trio asks it to abort its sleep inside ``scope.cancel()``
    itself. It declines, so no ``Cancelled`` is raised here and none is swallowed, and passes the news on.
    """

    def __init__(self) -> None:
        self.at: float | None = None
        self.reason: str | None = None
        self._listeners: dict[Callable[[str | None], None], None] = {}
        self._task: trio.lowlevel.Task | None = None
        self._started = False
        self._stopped = False

    def watch(self, nursery: trio.Nursery) -> None:
        """Start watching the scopes around ``nursery``; once is enough."""
        if not self._started:
            self._started = True
            nursery.start_soon(self._sleep, name="quiesce: caller's cancel")

    def stop(self) -> None:
        """Let the watching task end, so that its nursery can close."""
        if self._task is not None:
            task, self._task = self._task, None
            trio.lowlevel.reschedule(task)
        # The task may not have had its first turn yet.
        self._stopped = True

    def listen(self, listener: Callable[[str | None], None]) -> None:
        """Call ``listener(reason)`` when the cancel comes; at once if it has come."""
        if self.at is not None:
            listener(self.reason)
        else:
            self._listeners[listener] = None

    def forget(self, listener: Callable[[str | None], None]) -> None:
        """Do not call ``listener`` any more."""
        self._listeners.pop(listener, None)

    def notice(self, reason: str | None) -> None:
        """The cancel came; only the first counts."""
        if self.at is not None:
            return
        self.at = trio.current_time()
        self.reason = reason
        listeners, self._listeners = list(self._listeners), {}
        for listener in listeners:
            listener(reason)

    async def _sleep(self) -> None:
        if self._stopped:
            return
        self._task = trio.lowlevel.current_task()

        def decline(raise_cancel: Callable[[], object]) -> trio.lowlevel.Abort:
            try:
                raise_cancel()
            except trio.Cancelled as cancelled:  # noqa: ASYNC103 - asked for its reason, not delivered
                self.notice(cancelled.reason)
            return trio.lowlevel.Abort.FAILED

        await trio.lowlevel.wait_task_rescheduled(decline)
