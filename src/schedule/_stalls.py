"""Saying which calls run for too long, without ending them."""

from __future__ import annotations

import logging

import trio

from ..actors import pending_of
from ._driver import Driver
from ._progress import Stalled
from ._states import CallPhase

__all__ = ["watch_stalls"]

logger = logging.getLogger("quiesce")


async def watch_stalls(driver: Driver, stall_after: float, scope: trio.CancelScope) -> None:
    """Report each call once when it has run for ``stall_after`` seconds, until ``scope`` is cancelled.

    Args:
        driver: Whose calls to watch.
        stall_after: Seconds on trio's clock.
        scope: A shielded scope that the owner cancels once everything has settled. It shields this watch from the
            batch's cancel, since a body that ignores the cancel is what must be seen most of all, and lasts until the
            batch has settled. Pinned by test_a_body_that_ignores_the_cancel_is_reported_as_stalled.
    """
    told: set[int] = set()
    with scope:
        while True:
            now = trio.current_time()
            wake = now + stall_after
            for index, execution in list(driver.executions.items()):
                started = execution.started_at
                if started is None or index in told or driver.lane.phase(index) is not CallPhase.RUNNING:
                    continue
                if started + stall_after > now:
                    wake = min(wake, started + stall_after)
                    continue
                told.add(index)
                stuck = pending_of(execution, CallPhase.RUNNING.value, ())
                logger.warning("stalled: %s", stuck)
                driver.publish(Stalled(index, stuck.call_id, stuck.name, now, now - started, stuck.line))
            await trio.sleep_until(wake)
