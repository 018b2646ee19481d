"""The runtime: what runs batches, and is left only when everything in it has settled."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import trio

from ..actors import Pending, Pipeline
from ..errors import RuntimeClosedError
from ..journal import Journal, MemoryJournal
from ..registry import Outcome, Registry, ToolCall
from ._batch import Batch
from ._services import Services
from ._stream import OutcomeStream

__all__ = ["Runtime", "open_runtime", "run_calls"]


class Runtime:
    """Runs calls against a registry. Made by ``open_runtime``.

    Attributes:
        journal: Where everything is recorded.
    """

    def __init__(self, services: Services, nursery: trio.Nursery) -> None:
        self._services = services
        self._nursery = nursery
        self._batches: dict[Batch, None] = {}
        self._streams: dict[OutcomeStream, None] = {}
        self._closed = False
        self._changed = trio.Event()

    @property
    def journal(self) -> Journal:
        """Where everything is recorded."""
        return self._services.journal

    @property
    def registry(self) -> Registry:
        """Tools and hooks, live."""
        return self._services.registry

    async def run(self, calls: Iterable[ToolCall]) -> list[Outcome]:
        """Run the calls of one message.

        Args:
            calls: In the model's order.

        Returns:
            One outcome per call, in the same order; the list is the caller's.

        Raises:
            See ``Batch.run``.
        """
        return await self.batch(calls).run()

    async def execute(self, call: ToolCall) -> Outcome:
        """Run one call."""
        (outcome,) = await self.run((call,))
        return outcome

    def batch(self, calls: Iterable[ToolCall], *, cancellable: bool = False) -> Batch:
        """Make a batch, to be run once with ``await batch.run()``.

        Args:
            calls: In the model's order.
            cancellable: Whether ``cancel_call`` may be used; costs a cancel scope a call.

        Raises:
            TypeError: One of them is not a ``ToolCall``.
            RuntimeClosedError: The runtime is closed.
        """
        self._check_open()
        return Batch(self, self._services, calls, cancellable=cancellable)

    def stream(self, calls: Iterable[ToolCall]) -> OutcomeStream:
        """Run calls and yield their outcomes in order, keeping none: ``async for outcome in runtime.stream(calls)``.

        Args:
            calls: In the model's order; taken as room allows.
        """
        self._check_open()
        stream = OutcomeStream(self._services, calls, self._nursery, self._forget)
        self._streams[stream] = None
        return stream

    def pending(self) -> list[Pending]:
        """Every call of every running batch that is not committed."""
        return [pending for batch in self._batches for pending in batch.pending()]

    def begin(self, batch: Batch) -> None:
        """A batch begins to run."""
        self._check_open()
        self._batches[batch] = None

    def end(self, batch: Batch) -> None:
        """A batch has settled."""
        del self._batches[batch]
        self._changed.set()

    @trio.lowlevel.enable_ki_protection
    async def close(self, *, cancel: bool) -> None:
        """Take no more work and return when all has settled.

        Args:
            cancel: Whether to cancel batches that other tasks still run, or to wait for them. Streams are cancelled
                in either case: nobody may read them any more.
        """
        self._closed = True
        if cancel:
            self._cancel_all()
        try:
            await self._close_streams()
        finally:
            await self._wait_for_batches()  # noqa: ASYNC102 - shields itself once cancelled

    async def _close_streams(self) -> None:
        """Cancel and settle every stream, also if one of them has an error to tell; the first error is raised."""
        streams = list(self._streams)
        for stream in streams:
            stream.cancel("the runtime was closed")
        errors: list[BaseException] = []
        for stream in streams:
            try:
                await stream.aclose()
            except BaseException as error:  # noqa: ASYNC103, BLE001 - raised below, once all have settled
                errors.append(error)
        if errors:
            raise errors[0]

    async def _wait_for_batches(self) -> None:
        """Wait for batches that other tasks run; a cancel or Ctrl-C cancels them, and leaves once they have settled."""
        stopped: BaseException | None = None
        while self._batches:
            self._changed = trio.Event()
            # Shields the wait for batches that other tasks run, once they were cancelled and until they settle: a
            # runtime is left only when nothing of it runs. Pinned by
            # test_leaving_a_cancelled_runtime_settles_batches_of_other_tasks.
            try:
                with trio.CancelScope(shield=stopped is not None):
                    await self._changed.wait()
            except (trio.Cancelled, KeyboardInterrupt) as error:  # noqa: ASYNC103 - raised below
                if stopped is None or isinstance(error, KeyboardInterrupt):
                    stopped = error
                self._cancel_all()
        if stopped is not None:
            raise stopped

    def _forget(self, stream: OutcomeStream) -> None:
        self._streams.pop(stream, None)

    def _cancel_all(self) -> None:
        for batch in self._batches:
            batch.cancel("the runtime was closed")

    def _check_open(self) -> None:
        if self._closed:
            msg = "the runtime is closed; use it inside its `async with open_runtime(...)` block"
            raise RuntimeClosedError(msg)


@asynccontextmanager
async def open_runtime(
    registry: Registry,
    *,
    max_parallel: int = 10,
    limits: Mapping[str, int] | None = None,
    journal: Journal | None = None,
    durability: Literal["settled", "dispatch"] = "settled",
    stall_after: float | None = None,
    pipeline: Pipeline | None = None,
) -> AsyncGenerator[Runtime]:
    """Open a runtime; leaving the block settles everything in it.

    An exception from the block leaves it unchanged, never wrapped in a group; batches that other tasks still run are
    then cancelled. Left normally, it waits for them.

    Args:
        registry: Tools and hooks; may change while the runtime is open.
        max_parallel: Most calls of one batch that run at once, and most that wait prepared; at least 1.
        limits: Most calls that run at once, by tool name, in one batch; none by default.
        journal: Where everything is recorded; a new ``MemoryJournal`` if omitted.
        durability: ``settled`` flushes the journal before ``run`` ends, ``dispatch`` also before each body.
        stall_after: Seconds after which a running call is reported as stalled; off by default.
        pipeline: The four stages of a call; for tests that break one.

    Raises:
        ValueError: An option is out of its range.
    """
    services = Services(
        registry=registry,
        journal=MemoryJournal() if journal is None else journal,
        flushes=journal is not None,
        # Places in a lane bound the threads already; a bound here could let a parent's thread wait for its child's.
        limiter=trio.CapacityLimiter(math.inf),
        max_parallel=max_parallel,
        limits=dict(limits or {}),
        durability=durability,
        stall_after=stall_after,
        pipeline=Pipeline() if pipeline is None else pipeline,
    )
    failed: BaseException | None = None
    async with trio.open_nursery() as nursery:
        runtime = Runtime(services, nursery)
        try:
            yield runtime
        except BaseException as error:  # noqa: ASYNC103, BLE001 - raised again outside the nursery, which would wrap it
            failed = error
        try:
            await runtime.close(cancel=failed is not None)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - as above; the block's own error comes first
            failed = failed or error
    if failed is not None:
        raise failed


async def run_calls(
    registry: Registry,
    calls: Iterable[ToolCall],
    *,
    max_parallel: int = 10,
    limits: Mapping[str, int] | None = None,
    journal: Journal | None = None,
    durability: Literal["settled", "dispatch"] = "settled",
    stall_after: float | None = None,
) -> list[Outcome]:
    """Run the calls of one message in a runtime of their own; see ``open_runtime`` and ``Runtime.run``."""
    async with open_runtime(
        registry,
        max_parallel=max_parallel,
        limits=limits,
        journal=journal,
        durability=durability,
        stall_after=stall_after,
    ) as runtime:
        return await runtime.run(calls)
