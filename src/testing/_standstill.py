"""Notice that a run stands still: nothing can run, nothing is due, and nothing outside can wake a task."""

from __future__ import annotations

import contextlib
import math
import threading
import time

import trio
import trio.testing

from ._errors import Deadlock
from ._where import KIT_THREAD, all_tasks, busy_threads, place_of_task, waits_for_children, waits_for_outside

__all__ = ["Standstill", "is_trios", "living_tasks", "waiting_lines"]

Task = trio.lowlevel.Task

_TRIOS_OWN = ("<init>", "<TrioToken.run_sync_soon task>")
_IDLE_TURNS = 3
_NAP = 0.0005
"""Real seconds that a run which waits for a thread gives to it."""
_TICK = 0.25


def is_trios(task: Task) -> bool:
    """Whether a task is one that trio starts for itself."""
    return task.name in _TRIOS_OWN


def living_tasks() -> tuple[Task, ...]:
    """All tasks of the run, trio's own too, parents first."""
    root = trio.lowlevel.current_root_task()
    return () if root is None else tuple(all_tasks(root))


def waiting_lines(tasks: tuple[Task, ...]) -> tuple[str, ...]:
    """Where each stands, without those that only wait for their children to end."""
    return tuple(
        f"{task.name} at {place_of_task(task)}"
        for task in tasks
        if not is_trios(task) and not (waits_for_children(task) and any(n.child_tasks for n in task.child_nurseries))
    )


class Standstill:
    """Watches the turns of a run in which no task of the scenario can run.

    A mock clock that jumps keeps the loop turning; under any other clock a thread wakes it now and then.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._turns = 0
        self._since = 0.0
        self._threads_before = frozenset(busy_threads())
        self._token: trio.lowlevel.TrioToken | None = None
        self._over: threading.Event | None = None

    def moved(self) -> None:
        """A task of the scenario can run."""
        self._turns = 0

    def attend(self) -> None:
        """Called in every turn: makes sure that there will be another."""
        token = trio.lowlevel.current_trio_token()
        if token is self._token:
            return
        self.leave()
        self._token = token
        clock = trio.lowlevel.current_clock()
        if not (isinstance(clock, trio.testing.MockClock) and clock.autojump_threshold < math.inf):
            self._over = _ticking(token)

    def leave(self) -> None:
        """The run is over, or another has begun."""
        if self._over is not None:
            self._over.set()
        self._over = self._token = None

    def idle(self, *, patience: float | None = None) -> None:
        """A turn in which nothing of the scenario can run.

        Raises:
            Deadlock: It never can again, or has not for a long time.
        """
        self._turns += 1
        now = time.monotonic()
        if self._turns == 1:
            self._since = now
        if self._turns < _IDLE_TURNS:
            return
        statistics = trio.lowlevel.current_statistics()
        ticks = 0 if self._over is None else 1
        if statistics.run_sync_soon_queue_size > ticks or statistics.seconds_to_next_deadline != math.inf:
            return
        tasks = tuple(task for task in living_tasks() if not is_trios(task))
        if not tasks:
            return  # the scenario is over, and trio is about to be
        if any(map(waits_for_outside, tasks)) or busy_threads(self._threads_before):
            patience = self._patience if patience is None else patience
            if now - self._since < patience:
                time.sleep(_NAP)  # noqa: ASYNC251 - nothing of the run can go on, and a thread needs the interpreter
                return
            because = (
                f"nothing happened for {patience:g} s, though a thread, process or descriptor may yet wake a task "
                f"(raise patience if it may take longer)"
            )
        else:
            because = "every task waits, and nothing is left that could wake one"
        raise Deadlock(waiting_lines(tasks), because)


def _ticking(token: trio.lowlevel.TrioToken) -> threading.Event:
    """Wake a run until the event that is given back is set, or it has ended."""
    over = threading.Event()

    def tick() -> None:
        with contextlib.suppress(trio.RunFinishedError):
            while not over.wait(_TICK):
                token.run_sync_soon(lambda: None, idempotent=True)

    threading.Thread(target=tick, name=f"{KIT_THREAD} ticks", daemon=True).start()
    return over
