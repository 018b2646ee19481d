"""The last two stages: post hooks in model order, and the final form of an outcome."""

from __future__ import annotations

from functools import partial
from typing import cast

import attrs
import trio

from ..errors import HookError, NotLosslessError
from ..registry import (
    UNSET,
    Accept,
    Block,
    ContentBlock,
    Failure,
    HookSpan,
    Outcome,
    PostDecision,
    PostHook,
    Success,
    TextBlock,
    as_content,
    freeze,
)
from ._cancellation import cancelled_here
from ._contract import replaced_value
from ._execution import Execution
from ._failures import failure, failure_from, first_interrupt, only_cancelled, overtaken
from ._invoke import call_unprotected
from ._proceed import Proceed
from ._views import View

__all__ = ["finalize", "finish"]

NOT_SERIALIZABLE = "tool result must be losslessly JSON-serializable"


async def finalize(execution: Execution, outcome: Outcome) -> Outcome:
    """Ask the post hooks, then finish.

    A post hook ended by ``Cancelled`` leaves a failure as it was and makes a success ``ABORTED``; so does a cancel
    that came before or during them.

    Source: ``spec/behaviour.md`` C6.12-C6.16.
    """
    hooks = execution.host.registry.post_hooks.seen_by(execution.agent)
    if hooks:
        start = trio.current_time()
        try:
            outcome = _apply(execution, outcome, await _decide(View(execution), outcome, hooks, 0))
        except BaseException as error:  # noqa: ASYNC103, BLE001 - sorted by kind in one place
            outcome = _ended_by(execution, outcome, error)
        finally:
            execution.spans.append(HookSpan("post", start, trio.current_time()))
    if isinstance(outcome, Success) and cancelled_here():
        outcome = overtaken(execution, outcome)
    return finish(execution, outcome)


def finish(execution: Execution, outcome: Outcome) -> Outcome:
    """Apply the tool's ``finalize_content``, gather the contexts and freeze everything.

    Source: ``spec/behaviour.md`` C6.18, C6.19, C6.21.
    """
    concludes = isinstance(outcome, Success) and (execution.concludes or outcome.concludes_turn)
    try:
        contexts = (*execution.contexts, *outcome.contexts)
        outcome = _finalized_content(execution, outcome)
        if contexts or outcome.meta is not None:
            contexts = tuple(freeze(context) for context in contexts)
            outcome = attrs.evolve(outcome, contexts=contexts, meta=freeze(outcome.meta))
    except NotLosslessError:
        return failure(execution, NOT_SERIALIZABLE, name=NotLosslessError.__name__)
    except BaseException as error:  # noqa: ASYNC103, BLE001 - a finalizer's error is this call's failure, not finalized again
        _pass_on_interrupt(execution, error)
        return failure_from(execution, error)  # noqa: ASYNC104 - synchronous code, which no cancel can reach
    return attrs.evolve(outcome, concludes_turn=True) if concludes and isinstance(outcome, Success) else outcome


def _finalized_content(execution: Execution, outcome: Outcome) -> Outcome:
    definition = execution.definition
    if definition is None or definition.finalize_content is None:
        return outcome
    content = definition.finalize_content(View(execution), outcome)
    return outcome if content is None else attrs.evolve(outcome, content=as_content(content))


async def _decide(view: View, outcome: Outcome, hooks: tuple[PostHook, ...], position: int) -> PostDecision:
    if position == len(hooks):
        return Accept()
    proceed = Proceed(partial(_decide, view, outcome, hooks, position + 1), hooks[position])
    try:
        decision = await call_unprotected(hooks[position], view, outcome, proceed)
    finally:
        await proceed.end()  # noqa: ASYNC102 - shielded where it waits at all
    if not isinstance(cast("object", decision), Accept | Block):
        msg = f"post hook {hooks[position]!r} returned {decision!r:.80}; return Accept(...) or Block(...)"
        raise HookError(msg)
    return decision


def _apply(execution: Execution, outcome: Outcome, decision: PostDecision) -> Outcome:
    if isinstance(decision, Block):
        return _blocked(execution, decision)
    if decision.content is not UNSET and decision.value is not UNSET:
        msg = "tools/post-execute accept decision cannot replace both value and content"
        raise TypeError(msg)
    contexts = (*outcome.contexts, *decision.contexts)
    if decision.value is not UNSET:
        if isinstance(outcome, Failure):
            msg = "tools/post-execute cannot replace the value of a failed result"
            raise HookError(msg)
        concludes = outcome.concludes_turn
        outcome = replaced_value(execution, decision.value)
        if isinstance(outcome, Success):
            outcome = attrs.evolve(outcome, concludes_turn=concludes)
    elif decision.content is not UNSET:
        outcome = attrs.evolve(outcome, content=as_content(decision.content))
    return attrs.evolve(outcome, contexts=contexts) if contexts else outcome


def _blocked(execution: Execution, decision: Block) -> Failure:
    content = as_content(decision.feedback)
    message = "\n".join(_as_line(block) for block in content) or "tool result blocked by post-execute policy"
    execution.contexts.clear()
    return failure(
        execution,
        message,
        name="ToolBlockedError",
        content=content or (TextBlock(f"Error: {message}"),),
        contexts=decision.contexts,
    )


def _as_line(block: ContentBlock) -> str:
    return block.text if isinstance(block, TextBlock) else f"[{block.type} content]"


def _ended_by(execution: Execution, outcome: Outcome, error: BaseException) -> Outcome:
    if only_cancelled(error):
        return overtaken(execution, outcome)
    _pass_on_interrupt(execution, error)
    execution.contexts.clear()
    return failure_from(execution, error)


def _pass_on_interrupt(execution: Execution, error: BaseException) -> None:
    interrupt = first_interrupt(error)
    if interrupt is not None:
        execution.host.interrupted(interrupt)
