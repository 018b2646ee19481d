"""The only module that knows trio's private scheduler: it puts an order of ours in place of trio's random one.

trio runs its tasks in batches and shuffles each batch with a private generator when a private flag is set (the flag
that lets Hypothesis reproduce a run). Here that generator is replaced for a while by one whose ``shuffle`` asks a
function. Nothing else of trio's is touched. Whether all of this still exists, and still does what it did, is tried
before use.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import random
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import trio

from ._errors import ScheduleControlError

__all__ = [
    "Arrange",
    "Order",
    "abandon",
    "controlled_order",
    "forget_trial",
    "installed_order",
    "require_control",
    "schedule_control_problem",
    "without_complaints",
]

Task: TypeAlias = trio.lowlevel.Task
Arrange: TypeAlias = Callable[[list[Task]], tuple[list[Task], list[Task]]]
"""Given the tasks that can run, oldest first: those to run now in this order, and those to put to the next batch.

It is called in every turn of the loop, also with no task at all. What it raises ends the run with a
``trio.TrioInternalError``, whose cause it is."""


_CLOSINGS = 20


class Order(random.Random):
    """Stands in for trio's random generator; in runs of other threads, it is one."""

    def __init__(self, arrange: Arrange, scheduler: Any) -> None:
        super().__init__()
        self.thread = threading.get_ident()
        self._arrange = arrange
        self._scheduler = scheduler

    def shuffle(self, x: Any) -> None:
        if threading.get_ident() != self.thread:
            super().shuffle(x)
            return
        now, later = self._arrange(list(x))
        # trio takes the batch from its end.
        x[:] = reversed(now)
        if later:
            self._scheduler.GLOBAL_RUN_CONTEXT.runner.runq.extend(later)


def _scheduler_module() -> Any:
    core = getattr(trio, "_core", None)
    return getattr(core, "_run", None)


@contextmanager
def installed_order(arrange: Arrange) -> Generator[None]:
    """What ``controlled_order`` does, without its checks: for a run in guest mode that has begun under them."""
    scheduler = _scheduler_module()
    before = (scheduler._r, scheduler._ALLOW_DETERMINISTIC_SCHEDULING)  # noqa: SLF001 - what this module is for
    scheduler._r = Order(arrange, scheduler)  # noqa: SLF001
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001
    try:
        yield
    finally:
        scheduler._r, scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before  # noqa: SLF001


@contextmanager
def controlled_order(arrange: Arrange) -> Generator[None]:
    """Let ``arrange`` order the tasks of every ``trio.run`` inside the block.

    It holds for this thread. In others, trio shuffles its tasks meanwhile.

    Raises:
        ScheduleControlError: See ``require_control``.
        RuntimeError: See ``require_control``.
    """
    require_control()
    with installed_order(arrange):
        yield


def require_control() -> None:
    """Raise unless orders of tasks can be chosen here and now.

    Raises:
        ScheduleControlError: This trio has no scheduler that can be controlled, or no longer obeys.
        RuntimeError: A run is going on in this thread (whatever explores schedules starts runs of its own), or another
            thread explores.
    """
    if trio.lowlevel.in_trio_run():
        msg = (
            "schedules are chosen for whole runs of trio: call this from a plain function or a test that is not async, "
            "and give it the async function to run"
        )
        raise RuntimeError(msg)
    generator = getattr(_scheduler_module(), "_r", None)
    if isinstance(generator, Order) and generator.thread != threading.get_ident():
        msg = "another thread explores schedules at this moment; one process can do so in one thread only"
        raise RuntimeError(msg)
    problem = schedule_control_problem()
    if problem is not None:
        raise ScheduleControlError(problem)


def abandon(tasks: Sequence[Task]) -> None:
    """Close the coroutines of the run that is going on and is about to crash.

    While the run lasts, what they still await yields, so that closing them comes to an end even if they catch all that
    is raised and wait again. One that goes on all the same is kept for ever: collecting it might never end.

    Args:
        tasks: Parents before children.
    """
    context = _scheduler_module().GLOBAL_RUN_CONTEXT
    with without_complaints():
        for task in reversed(tasks):
            nurseries = task.child_nurseries
            context.task = task
            for _ in range(_CLOSINGS):
                with suppress(BaseException):
                    task.coro.close()
                if getattr(task.coro, "cr_frame", None) is None:
                    break
            else:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(task.coro))
            for nursery in nurseries:
                # A nursery that is collected with children left raises; there is no public way to empty it.
                children: set[Task] = getattr(nursery, "_children", set())
                children.clear()
        context.__dict__.pop("task", None)


@contextmanager
def without_complaints() -> Generator[None]:
    """What is collected in the block, or closed by it, does not complain: it was left by a run that was given up."""

    def ignore(_complaint: Any) -> None: ...

    before = sys.unraisablehook
    sys.unraisablehook = ignore
    try:
        yield
    finally:
        gc.collect()
        sys.unraisablehook = before


def schedule_control_problem() -> str | None:
    """What keeps this trio's order of tasks from being controlled, in a sentence; ``None`` if nothing does.

    Found by looking for the private names and then, once a process and outside a run, by running three tasks in an
    order of our own.
    """
    scheduler = _scheduler_module()
    missing = [
        f"trio._core._run.{name}"
        for name in ("_r", "_ALLOW_DETERMINISTIC_SCHEDULING", "GLOBAL_RUN_CONTEXT")
        if not hasattr(scheduler, name)
    ]
    if missing:
        return f"trio {trio.__version__} has no {', '.join(missing)}"
    return None if trio.lowlevel.in_trio_run() else _disobedience()


@functools.cache
def _disobedience() -> str | None:
    try:
        ran = _try_out()
    except trio.TrioInternalError as error:
        return f"trio {trio.__version__} did not take an order of tasks: {error.__cause__!r}"
    if ran != ["c", "a", "b", "a"]:
        return f"trio {trio.__version__} did not run tasks in the order given to it but as {ran}"
    return None


def forget_trial() -> None:
    """Try this trio again before its next use."""
    _disobedience.cache_clear()


def _try_out() -> list[str]:
    """Run three tasks so that the youngest goes first and another waits for a batch."""
    ran: list[str] = []

    async def note(steps: int, name: str) -> None:
        for _ in range(steps):
            ran.append(name)
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, 2, "a", name="a")
            nursery.start_soon(note, 1, "b", name="b")
            nursery.start_soon(note, 1, "c", name="c")

    def arrange(tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        named = {task.name: task for task in tasks}
        if set(named) >= {"a", "b", "c"} and not ran:
            return [named["c"], named["a"]], [named["b"]]
        return sorted(tasks, key=lambda task: task.name, reverse=True), []

    with installed_order(arrange):
        trio.run(main)
    return ran
