"""What an exception, a denial or a cancel becomes: the one place where failures are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import attrs
import trio

from ..errors import AbortError, ToolError
from ..registry import ContentBlock, DeniedBy, ErrorInfo, Failure, JsonValue, Outcome, Success, TextBlock
from ._execution import Execution

__all__ = [
    "abort",
    "denial",
    "error_text",
    "failure",
    "failure_from",
    "first_interrupt",
    "only_cancelled",
    "overtaken",
    "truthful",
    "truthful_code",
]

ABORTED = "ABORTED"
ABORTED_BEFORE_DISPATCH = "ABORTED_BEFORE_DISPATCH"


def failure(
    execution: Execution,
    message: str,
    *,
    name: str,
    code: str | None = None,
    content: tuple[ContentBlock, ...] | None = None,
    denied_by: DeniedBy | None = None,
    contexts: tuple[JsonValue, ...] = (),
) -> Failure:
    """A failure of this call with the effect as known now; its content is ``Error: <message>`` unless given."""
    return Failure(
        call_id=execution.call.call_id,
        name=execution.call.name,
        index=execution.index,
        error=ErrorInfo(message, name, truthful_code(execution, code)),
        content=(TextBlock(f"Error: {message}"),) if content is None else content,
        effect=execution.effect,
        denied_by=denied_by,
        late_value=execution.late_value,
        contexts=contexts,
    )


def denial(execution: Execution, reason: str, denied_by: DeniedBy) -> Failure:
    """A call that was refused; the code of a bare denial stays ``None`` (C6.5)."""
    return failure(execution, reason, name="ToolDeniedError", denied_by=denied_by)


def abort(execution: Execution) -> Failure:
    """A cancelled call: ``ABORTED`` if its body was ever invoked, else ``ABORTED_BEFORE_DISPATCH``."""
    message = "tool call aborted" if execution.invoked else "tool call aborted before dispatch"
    return failure(execution, message, name=AbortError.__name__, code=ABORTED)


def truthful_code(execution: Execution, code: str | None) -> str | None:
    """The code of a failure, whoever chose it: the two that say whether the body was invoked always say what is so."""
    if code in {ABORTED, ABORTED_BEFORE_DISPATCH}:
        return ABORTED if execution.invoked else ABORTED_BEFORE_DISPATCH
    return code


def truthful(execution: Execution, outcome: Outcome) -> Outcome:
    """An outcome as it has to be now: one that a hook kept while the body was invoked again says what is so after that.

    Returns:
        The very object if it is still true.
    """
    if isinstance(outcome, Failure) and truthful_code(execution, outcome.code) != outcome.code:
        stale = attrs.evolve(outcome, error=abort(execution).error, content=abort(execution).content)
        return attrs.evolve(stale, effect=execution.effect)
    return outcome if outcome.effect is execution.effect else attrs.evolve(outcome, effect=execution.effect)


def overtaken(execution: Execution, outcome: Outcome) -> Outcome:
    """What a cancel makes of an outcome: a success is aborted and keeps its value aside, a failure stands (C6.16)."""
    if not isinstance(outcome, Success):
        return outcome
    execution.late_value = outcome.value
    return attrs.evolve(abort(execution), contexts=outcome.contexts)


def failure_from(execution: Execution, error: BaseException) -> Failure:
    """The failure that a body's or hook's exception means, with its message, class name and code."""
    leaves = list(_leaves(error))
    first = leaves[0] if leaves else error
    message = error_text(first)
    if len(leaves) > 1:
        message = f"{message} (and {len(leaves) - 1} more)"
    code = first.code if isinstance(first, ToolError) else None
    return failure(execution, message, name=type(first).__name__, code=code)


def error_text(error: BaseException) -> str:
    """The message of an exception; its class name if that is empty or cannot be had."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - a __str__ that raises must not cost the call its outcome
        return "<unprintable thrown value>"


def only_cancelled(error: BaseException) -> bool:
    """Whether an exception is ``Cancelled``, or a group of nothing else."""
    return isinstance(error, trio.Cancelled) or (
        isinstance(error, BaseExceptionGroup) and next(_leaves(cast("BaseException", error)), None) is None
    )


def first_interrupt(error: BaseException) -> BaseException | None:
    """The first ``KeyboardInterrupt``, ``SystemExit`` or other non-``Exception`` in it, ``Cancelled`` apart."""
    return next((leaf for leaf in _leaves(error) if not isinstance(leaf, Exception)), None)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """What is in a group besides ``Cancelled``, however nested, in order; iterative, since groups come from tools."""
    stack = [error]
    while stack:
        top = stack.pop()
        if isinstance(top, BaseExceptionGroup):
            stack.extend(reversed(cast("BaseExceptionGroup[BaseException]", top).exceptions))
        elif not isinstance(top, trio.Cancelled):
            yield top
