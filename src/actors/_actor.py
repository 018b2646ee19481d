"""The call actor: the one task that runs a dispatched call."""

from __future__ import annotations

from collections.abc import Callable

import trio

from ..registry import Outcome
from ._execution import Execution
from ._failures import abort, only_cancelled
from ._pipeline import Pipeline

__all__ = ["run_call"]


@trio.lowlevel.enable_ki_protection
async def run_call(
    execution: Execution,
    pipeline: Pipeline,
    settled: Callable[[Execution, Outcome], None],
    broke: Callable[[Execution, BaseException], None],
) -> None:
    """Run one call's dispatch to exactly one report: ``settled`` with an outcome, or ``broke`` with a fault.

    Nothing it runs is left behind, and no exception leaves this task: a cancel has become data by now, and ends with
    the task. If single calls may be cancelled, the call runs in a scope of its own.
    """
    execution.task = trio.lowlevel.current_task()
    try:
        if execution.host.cancellable:
            outcome = await _in_scope(execution, pipeline)
        else:
            outcome = await pipeline.dispatch(execution)
    except BaseException as error:  # noqa: ASYNC103, BLE001 - the stages return data, so this is a stage that broke
        if only_cancelled(error):
            settled(execution, abort(execution))
        else:
            broke(execution, error)
    else:
        settled(execution, outcome)
    finally:
        execution.task = None


async def _in_scope(execution: Execution, pipeline: Pipeline) -> Outcome:
    execution.host.watch_caller(execution)
    with trio.CancelScope() as scope:
        execution.scopes.append(scope)
        if execution.cancel_requested:
            scope.cancel(execution.cancel_reason)
        try:
            return await pipeline.dispatch(execution)
        finally:
            execution.scopes.remove(scope)
    return abort(execution)
