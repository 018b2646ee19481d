"""The first stage: everything that is decided about a call before it may start, in model order."""

from __future__ import annotations

from functools import partial
from typing import cast

import trio

from ..errors import HookError, NotLosslessError
from ..registry import Allow, Ask, Deny, Failure, HookSpan, Outcome, PreDecision, PreHook, freeze
from ._approval import approve
from ._cancellation import cancelled_here
from ._execution import Execution
from ._failures import abort, denial, failure, failure_from, first_interrupt, only_cancelled
from ._invoke import call_unprotected
from ._proceed import Proceed
from ._views import View

__all__ = ["prepare"]


async def prepare(execution: Execution) -> Outcome | None:
    """Freeze the arguments, then ask pre hooks, approvers and guards.

    Returns:
        ``None`` if the call may start; otherwise its outcome, with ``execution.post_allowed`` saying whether post
        hooks see it.

    Source: ``spec/behaviour.md`` C6.2-C6.7.
    """
    registry = execution.host.registry
    execution.definition = registry.get(execution.call.name, execution.agent)
    try:
        execution.arguments = freeze(execution.call.arguments)
    except Exception as error:  # noqa: BLE001 - what a caller's object raises while it is read is this call's failure
        execution.post_allowed = False
        text = "tool execution arguments must be losslessly JSON-serializable"
        return (
            failure(execution, text, name=NotLosslessError.__name__)
            if isinstance(error, NotLosslessError)
            else failure_from(execution, error)
        )
    try:
        denied = await _ask_hooks(execution, registry.pre_hooks.seen_by(execution.agent))
        denied = denied or _ask_guards(execution)
    except BaseException as error:  # noqa: ASYNC103, BLE001 - sorted by kind in one place
        return _ended_by(execution, error)  # noqa: ASYNC104 - of pre hooks, the batch's task makes it data
    if denied is not None:
        return denied
    if execution.cancel_requested or cancelled_here():
        return abort(execution)
    return None


async def _ask_hooks(execution: Execution, hooks: tuple[PreHook, ...]) -> Failure | None:
    if not hooks:
        return None
    start = trio.current_time()
    try:
        decision = await _decide(View(execution), hooks, 0)
        match decision:
            case Deny(reason):
                return denial(execution, reason, "hook")
            case Ask():
                return await approve(execution, decision)
            case _:
                return None
    finally:
        execution.spans.append(HookSpan("pre", start, trio.current_time()))


async def _decide(view: View, hooks: tuple[PreHook, ...], position: int) -> PreDecision:
    if position == len(hooks):
        return Allow()
    proceed = Proceed(partial(_decide, view, hooks, position + 1), hooks[position])
    try:
        decision = await call_unprotected(hooks[position], view, proceed)
    finally:
        await proceed.end()  # noqa: ASYNC102 - shielded where it waits at all
    if not isinstance(cast("object", decision), Allow | Deny | Ask):
        msg = f"pre hook {hooks[position]!r} returned {decision!r:.80}; return Allow(), Deny(reason) or Ask(reason)"
        raise HookError(msg)
    return decision


def _ask_guards(execution: Execution) -> Failure | None:
    view = None
    for guard in execution.host.registry.guards_for(execution.agent):
        view = view or View(execution)
        reason = cast("object", guard(view))
        if reason is None:
            continue
        if not isinstance(reason, str):
            msg = f"guard {guard!r} returned {reason!r:.80}; return a reason to deny, or None"
            raise HookError(msg)
        return denial(execution, reason, "guard")
    return None


def _ended_by(execution: Execution, error: BaseException) -> Outcome:
    if only_cancelled(error):
        return abort(execution)
    execution.post_allowed = False
    interrupt = first_interrupt(error)
    if interrupt is not None:
        execution.host.interrupted(interrupt)
    return failure_from(execution, error)
