"""The seam for ``Ask``: who answers, and what the answer makes of the call."""

from __future__ import annotations

from functools import partial

import attrs

from ..registry import ApprovalOutcome, Approver, Ask, Failure, Scope
from ._execution import Execution
from ._failures import denial, first_interrupt, only_cancelled
from ._invoke import call_unprotected
from ._proceed import Proceed
from ._views import View

__all__ = ["approve"]


@attrs.frozen
class Request:
    """See ``registry.ApprovalRequest``."""

    call: View
    tool_name: str
    call_id: str
    agent: Scope
    reason: str | None


async def approve(execution: Execution, ask: Ask) -> Failure | None:
    """Ask the approvers; ``None`` if the call may go on.

    Source: ``spec/behaviour.md`` C6.6, D5.
    """
    name, agent, registry = execution.call.name, execution.agent, execution.host.registry
    if not registry.approvers:
        return denial(execution, ask.reason or f'tool "{name}" requires approval (not yet supported)', "unavailable")
    if agent is None:
        reason = f'tool "{name}" requires approval, but the call has no agent to route it through'
        return denial(execution, reason, "unavailable")
    request = Request(View(execution), name, execution.call.call_id, agent, ask.reason)
    answer = await _answer(request, registry.approvers.seen_by(agent))
    match answer:
        case ApprovalOutcome.ALLOWED_ONCE:
            return None
        case ApprovalOutcome.REJECTED:
            return denial(execution, f'the user rejected tool "{name}"', "user")
        case ApprovalOutcome.CANCELLED:
            return denial(execution, f'approval for tool "{name}" was cancelled', "user")
        case ApprovalOutcome.UNAVAILABLE:
            reason = f'tool "{name}" requires approval, but no approval channel is available'
            return denial(execution, reason, "unavailable")


async def _answer(request: Request, approvers: tuple[Approver, ...]) -> ApprovalOutcome:
    """The first approver that returns decides; each may hand on to the next."""
    if not approvers:
        return ApprovalOutcome.UNAVAILABLE
    proceed = Proceed(partial(_answer, request, approvers[1:]), approvers[0])
    try:
        answer = await call_unprotected(approvers[0], request, proceed)
    except Exception:  # noqa: BLE001 - an approver that fails must not let a call through (D5.5)
        return ApprovalOutcome.UNAVAILABLE
    except BaseExceptionGroup as group:
        if only_cancelled(group) or first_interrupt(group) is not None:
            raise
        return ApprovalOutcome.UNAVAILABLE
    finally:
        await proceed.end()  # noqa: ASYNC102 - shielded where it waits at all
    return ApprovalOutcome.read(answer)
