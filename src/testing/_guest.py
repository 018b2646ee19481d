"""A run of trio that stands still between calls: one loop for many synchronous steps."""

from __future__ import annotations

import queue
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
import trio.testing
from outcome import Outcome, Value

from ._control import controlled_order, installed_order, without_complaints
from ._run import stopped_by
from ._strategies import Picker, fixed
from ._turns import Turns

__all__ = ["SteppedRun"]


@attrs.define
class _Job:
    """One async call to make inside the run, and what became of it."""

    call: Callable[[], Awaitable[Any]]
    done: bool = False
    value: Any = None
    error: BaseException | None = None


class SteppedRun:
    """A trio run on a mock clock, driven from synchronous code by guest mode.

    Between two calls nothing in it moves, background tasks included.

    Attributes:
        nursery: For tasks that outlive one call.

    Args:
        max_steps: Most steps of one call.
        patience: Real seconds that it may stand still.
    """

    nursery: trio.Nursery

    def __init__(self, *, max_steps: int, patience: float = 5.0) -> None:
        self._ticks: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._jobs: list[_Job] = []
        self._ready = trio.Event()
        self._ended: list[Outcome[None]] = []
        self._max_steps = max_steps
        self._turns = Turns(fixed(()), "batch", max_steps=max_steps, patience=patience)
        with controlled_order(self._turns):
            trio.lowlevel.start_guest_run(
                self._main,
                run_sync_soon_threadsafe=self._ticks.put,
                done_callback=self._ended.append,
                clock=trio.testing.MockClock(autojump_threshold=0),
            )
        self._pump(lambda: hasattr(self, "nursery"))

    @property
    def over(self) -> bool:
        """Whether the run has ended, closed or by a background task that failed."""
        return bool(self._ended)

    def call(self, function: Callable[[], Awaitable[Any]], picker: Picker) -> Any:
        """Run one async call to its end, with the background tasks beside it; gives its value or raises its error.

        Raises:
            RuntimeError: The run is over.
        """
        if self.over:
            msg = "the run is over: it was closed, or a background task failed before"
            raise RuntimeError(msg)
        job = _Job(function)
        self._turns.picker = picker
        self._turns.allow(self._max_steps)
        self._jobs.append(job)
        self._ready.set()
        self._pump(lambda: job.done)
        if job.error is not None:
            raise job.error
        if not job.done:
            self._raise_end()
        return job.value

    def deviations(self) -> tuple[str, ...]:
        """A line for each choice so far that was not the plain one."""
        return self._turns.deviations()

    def close(self) -> None:
        """Cancel all that still runs, await it, and raise what it raised."""
        if not self.over:
            self.nursery.cancel_scope.cancel()
            self._pump(lambda: False)
            self._raise_end()

    def _pump(self, reached: Callable[[], bool]) -> None:
        """Turn the loop until something holds or the run has ended."""
        with installed_order(self._turns):
            while not reached() and not self.over:
                self._ticks.get()()

    def _raise_end(self) -> None:
        self._turns.close()
        if self._turns.stopped is None:
            self._ended[0].unwrap()
            return
        # What was given up is only collected, and so does not complain later, when nothing refers to it.
        with without_complaints():
            self._ended[0] = Value(None)
            del self.nursery
        raise stopped_by(self._turns)

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            while True:
                await self._ready.wait()
                self._ready = trio.Event()
                while self._jobs:
                    await self._perform(self._jobs.pop())

    async def _perform(self, job: _Job) -> None:
        try:
            job.value = await job.call()
        except Exception as error:  # noqa: BLE001 - raised again by call()
            job.error = error
        job.done = True
