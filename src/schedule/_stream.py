"""A stream of calls: outcomes one by one in model order, none of them kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

import trio

from ..actors import only_cancelled
from ..registry import CallStatus, Outcome, ToolCall
from ._batch import checked_calls
from ._root import RootLane, statuses
from ._services import Services

__all__ = ["OutcomeStream"]


class OutcomeStream:
    """The outcomes of ``Runtime.stream``: ``async for outcome in stream``, best inside ``async with stream:``.

    Calls are taken from their iterable as room allows, so it may be long or endless; what it raises is raised after the
    outcomes of the calls before. Leaving the ``async with`` block
    cancels what is still running and settles it; so does a cancel that meets the loop while it waits for an outcome. A
    loop without the block that is left early leaves its calls running until the runtime is left.
    """

    def __init__(
        self,
        services: Services,
        calls: Iterable[ToolCall],
        nursery: trio.Nursery,
        forget: Callable[[OutcomeStream], None],
    ) -> None:
        self._source: Iterator[ToolCall] | None = iter(calls)
        self._nursery = nursery
        self._forget = forget
        self._room = 4 * services.max_parallel
        self._calls: dict[int, ToolCall] = {}
        self._ready: deque[Outcome] = deque()
        self._lane = RootLane(services, self._commit, cancellable=False)
        self._driver = self._lane.driver
        self._error: BaseException | None = None
        self._changed = trio.Event()
        self._ended = trio.Event()
        self._begun = False

    @property
    def ended(self) -> trio.Event:
        """Set once everything has settled."""
        return self._ended

    def cancel(self, reason: str | None = None) -> None:
        """Cancel what runs and take no more calls."""
        self._source = None
        self._driver.close()
        self._driver.cancel(reason)

    @trio.lowlevel.enable_ki_protection
    async def aclose(self) -> None:
        """Cancel what runs and wait until it has settled."""
        self._forget(self)
        if not self._begun:
            self._source = None
            self._ended.set()
        if not self._ended.is_set():
            self.cancel("the stream was closed")
        interrupt: KeyboardInterrupt | None = None
        # Shields the wait for the cancelled bodies of this stream, until they end: closing returns at quiescence.
        # Pinned by test_leaving_a_stream_settles_what_it_started.
        with trio.CancelScope(shield=True):
            while not self._ended.is_set():
                try:
                    await self._ended.wait()
                except KeyboardInterrupt as error:
                    interrupt = error
        if interrupt is not None:
            raise interrupt
        self._raise_error()
        await trio.lowlevel.checkpoint_if_cancelled()

    async def __aenter__(self) -> OutcomeStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> OutcomeStream:
        return self

    async def __anext__(self) -> Outcome:
        try:
            self._begin()
            outcome = await self._next()
        except BaseException:
            await self.aclose()
            raise
        if outcome is None:
            raise StopAsyncIteration
        return outcome

    def _begin(self) -> None:
        if self._begun or self._ended.is_set():
            return
        self._begun = True
        self._nursery.start_soon(self._run, name="quiesce: stream")
        self._fill()

    async def _next(self) -> Outcome | None:
        while not self._ready and not self._ended.is_set():
            if self._changed.is_set():
                self._changed = trio.Event()
            await self._changed.wait()
        if self._ready:
            outcome = self._ready.popleft()
            self._fill()
            return outcome
        self._raise_error()
        return None

    def _raise_error(self) -> None:
        """Raise what the lane ended with, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _fill(self) -> None:
        """Take calls while there is room: for what is not committed, and for what is not read yet."""
        if self._driver.lane.stopped:
            self._source = None
        while self._source is not None and len(self._calls) + len(self._ready) < self._room:
            try:
                (checked,) = checked_calls((next(self._source),))
            except StopIteration:
                self._take_no_more()
                return
            except Exception as error:  # noqa: BLE001 - raised once everything taken before it has been handed out
                self._error = error
                self._take_no_more()
                return
            self._calls[self._driver.submit(checked)] = checked

    def _take_no_more(self) -> None:
        self._source = None
        self._driver.close()

    def _commit(self, index: int, outcome: Outcome) -> None:
        del self._calls[index]
        self._ready.append(outcome)
        self._changed.set()

    @trio.lowlevel.enable_ki_protection
    async def _run(self) -> None:
        try:
            await self._lane.run((), self._statuses)
        except BaseException as error:  # noqa: ASYNC103 - only Cancelled must leave this task, and does
            if only_cancelled(error):
                raise
            self._error = error
        finally:
            self._ended.set()
            self._changed.set()

    def _statuses(self) -> tuple[CallStatus, ...]:
        return statuses(self._driver, self._calls, {})
