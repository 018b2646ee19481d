"""The innermost part of dispatch: from "may it still run" to the outcome of one invocation of the body."""

from __future__ import annotations

from collections.abc import Callable

import trio

from ..registry import Arguments, Outcome, ToolDefinition, check_valid
from ._cancellation import cancelled_here
from ._contract import success_of, unknown_tool
from ._execution import Execution
from ._failures import abort, failure_from, first_interrupt, only_cancelled, overtaken
from ._invoke import call_async_body, call_sync_body
from ._run_context import Run

__all__ = ["run_body"]


async def run_body(execution: Execution, *, own_scope: bool) -> Outcome:
    """Look up the tool, check the arguments and invoke the body once.

    Args:
        execution: The call.
        own_scope: Whether the body needs a cancel scope of its own, because a wrapper may shield it from its caller.

    Returns:
        The outcome, minted; ``Cancelled`` has become data.
    """
    if not own_scope:
        return execution.mint(await _attempt(execution))
    with trio.CancelScope(deadline=execution.next_deadline()) as scope:
        execution.scopes.append(scope)
        execution.body_scope = scope
        if execution.cancel_requested:
            scope.cancel(execution.cancel_reason)
        try:
            return execution.mint(await _attempt(execution))
        finally:
            execution.scopes.remove(scope)
            execution.body_scope = None
    raise AssertionError  # pragma: no cover - _attempt lets no Cancelled out; the type checkers cannot know


async def _attempt(execution: Execution) -> Outcome:
    # From here to the call of the body there is no checkpoint: a call that is not invoked was never invoked.
    if cancelled_here():
        return abort(execution)
    definition = execution.host.registry.get(execution.call.name, execution.agent)
    try:
        if definition is None:
            return failure_from(execution, unknown_tool(execution))
        arguments = check_valid(definition, execution.arguments)
        if definition.takes_run:
            value = await _invoke_with_run(execution, definition, arguments)
        else:
            value = await _invoke(execution, definition, definition.bind(arguments, None))
        outcome = success_of(execution, definition, value)
    except BaseException as error:  # noqa: ASYNC103, BLE001 - sorted by kind in one place
        return _ended_by(execution, error)  # noqa: ASYNC104 - the call actor makes it data
    # The value arrived although the call was cancelled: the model is told that it was, the value is kept aside.
    return overtaken(execution, outcome) if cancelled_here() else outcome


async def _invoke(execution: Execution, definition: ToolDefinition, body: Callable[[], object]) -> object:
    if definition.is_sync:
        value = await call_sync_body(execution, body)
    else:
        execution.note_invoked(trio.current_time())
        value = await call_async_body(body)
    execution.returned += 1
    return value


async def _invoke_with_run(execution: Execution, definition: ToolDefinition, arguments: Arguments) -> object:
    """Invoke a body that may make further calls; they run in a nursery around it and settle before it does."""
    result: object = None
    failed: BaseException | None = None
    execution.host.watch_caller(execution)
    async with trio.open_nursery() as nursery:
        run = Run(execution, nursery)
        try:
            result = await _invoke(execution, definition, definition.bind(arguments, run))
        except BaseException as error:  # noqa: ASYNC103, BLE001 - raised again once the nursery is closed
            failed = error
        run.end(cancel=failed is not None)
    interrupt = run.interrupt
    if interrupt is not None:
        raise interrupt
    if failed is not None:
        raise failed
    return result


def _ended_by(execution: Execution, error: BaseException) -> Outcome:
    if only_cancelled(error):
        return abort(execution)
    interrupt = first_interrupt(error)
    if interrupt is not None:
        execution.host.interrupted(interrupt)
    return failure_from(execution, error)
