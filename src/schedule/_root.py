"""A lane at the root, from its first record to the exception it ends with: what batches and streams share."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence

import trio

from ..actors import first_interrupt
from ..errors import SchedulerFault
from ..journal import BatchEnd, BatchStart, BatchStatus, request_of
from ..registry import CallState, CallStatus, Outcome, ToolCall
from ._children import open_sub_calls
from ._driver import Driver, Place
from ._services import Services
from ._stalls import watch_stalls

__all__ = ["RootLane"]


class RootLane:
    """A driver with its nursery, its records of begin and end, and its precedence of what it raises.

    Args:
        services: What the runtime gives.
        commit: Told each outcome in model order.
        cancellable: Whether single calls may be cancelled.
    """

    def __init__(self, services: Services, commit: Callable[[int, Outcome], None], *, cancellable: bool) -> None:
        self._services = services
        self.ended = False
        self.id = uuid.uuid4().hex
        self.driver = Driver(services, Place(self.id), commit, open_sub_calls, cancellable=cancellable)

    @trio.lowlevel.enable_ki_protection
    async def run(self, calls: Sequence[ToolCall], status_of: Callable[[], Sequence[CallStatus]]) -> None:
        """Drive the lane to its end.

        Args:
            calls: What ``batch/start`` lists.
            status_of: The honest statuses, asked only after a fault.

        Raises:
            BaseException: What interrupted it, bare; ``SchedulerFault`` from the first cause; or ``Cancelled``, from
                the checkpoint at the end. In this order of precedence.
        """
        driver = self.driver
        self._record_start(calls)
        try:
            async with trio.open_nursery() as nursery:
                # Shields the stall watch from the batch's cancel, until the batch has settled: see watch_stalls.
                stalls = trio.CancelScope(shield=True)
                if self._services.stall_after is not None:
                    nursery.start_soon(watch_stalls, driver, self._services.stall_after, stalls)
                if driver.fault is None:
                    await driver.drive(nursery)
                    await self._record_end()
                stalls.cancel()
        except BaseExceptionGroup as group:
            # Ctrl-C can land in the nursery's own wait, after everything has settled.
            driver.interrupt = driver.interrupt or first_interrupt(group)
            if driver.interrupt is None:
                driver.fault = driver.fault or group
        finally:
            self.end()
        if driver.interrupt is not None:
            raise driver.interrupt
        if driver.fault is not None:
            cause = driver.fault
            msg = f"the batch stopped at an internal fault: {type(cause).__name__}: {cause}"
            raise SchedulerFault(msg, status_of()) from cause
        await trio.lowlevel.checkpoint_if_cancelled()

    def end(self) -> None:
        """No further event will come: everything has settled, or nothing may begin."""
        self.ended = True
        self.driver.end_events()

    def _record_start(self, calls: Sequence[ToolCall]) -> None:
        services = self._services
        try:
            self.driver.record(
                BatchStart(
                    batch=self.id,
                    time=trio.current_time(),
                    wall_time=time.time(),
                    durability=services.durability,
                    max_parallel=services.max_parallel,
                    calls=tuple(request_of(index, call) for index, call in enumerate(calls)),
                )
            )
        except BaseException as error:  # noqa: ASYNC103, BLE001 - a journal that cannot write is a fault; nothing has started
            self.driver.fault = error

    async def _record_end(self) -> None:
        driver = self.driver
        cancel = driver.caller_cancel
        reason = cancel.reason
        status: BatchStatus
        if driver.interrupt is not None:
            status = "interrupted"
        elif driver.fault is not None:
            status = "fault"
        elif cancel.at is not None:
            status = "cancelled"
        elif driver.drained is not None:
            status, reason = "drained", driver.drained.reason
        else:
            status = "completed"
        try:
            # After a fault the journal may be what broke; its end is still tried, and changes nothing if it fails.
            driver.record(BatchEnd(self.id, trio.current_time(), status, cancel.at, reason))
            await driver.flush()
        except BaseException as error:  # noqa: ASYNC103, BLE001 - as above
            driver.fault = driver.fault or error


def statuses(driver: Driver, calls: Mapping[int, ToolCall], outcomes: Mapping[int, Outcome]) -> tuple[CallStatus, ...]:
    """What is known of each call after a fault: committed, started, or never started."""
    found: list[CallStatus] = []
    for index, call in calls.items():
        outcome = outcomes.get(index)
        execution = driver.executions.get(index)
        state: CallState = "committed"
        if outcome is None:
            state = "started" if execution is not None and execution.invoked else "never_started"
        found.append(CallStatus(index, call.call_id, call.name, state, outcome))
    return tuple(found)
