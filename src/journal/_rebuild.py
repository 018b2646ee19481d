"""From events back to outcomes, and from outcomes to events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from ..errors import NotLosslessError
from ..registry import (
    Claims,
    Failure,
    HookSpan,
    JsonValue,
    Outcome,
    Success,
    Timings,
    ToolCall,
    Wait,
    block_from_json,
    block_to_json,
    freeze,
)
from ._events import BatchStart, CallRequest, Event, ToolResult

__all__ = ["outcome_from_event", "rebuild_outcomes", "request_of", "result_event"]


def request_of(index: int, call: ToolCall) -> CallRequest:
    """A call as the journal keeps it: with the model's raw text where there was one."""
    arguments: JsonValue = call.arguments_text
    if arguments is None:
        try:
            arguments = freeze(call.arguments)
        except NotLosslessError as error:
            arguments = f"<arguments that are not JSON: {error}>"
    return CallRequest(index, call.call_id, call.name, arguments)


def result_event(  # noqa: PLR0913 - what a record holds besides the outcome, each by its name
    outcome: Outcome,
    *,
    batch: str,
    key: str,
    parent: str | None,
    root: str,
    timings: Timings,
    hooks: tuple[HookSpan, ...],
    waited: Wait | None,
    claims: Claims | None = None,
    cancelled_at: float | None = None,
) -> ToolResult:
    """The ``tool/result`` of an outcome; ``outcome_from_event`` reads it back."""
    if isinstance(outcome, Success):
        value, concludes_turn, failed = outcome.value, outcome.concludes_turn, None
    else:
        value, concludes_turn, failed = None, False, outcome
    return ToolResult(
        batch=batch,
        key=key,
        time=timings.queued if timings.committed is None else timings.committed,
        index=outcome.index,
        call_id=outcome.call_id,
        name=outcome.name,
        is_error=outcome.is_error,
        content=tuple(block_to_json(block) for block in outcome.content),
        effect=outcome.effect,
        value=value,
        error=None if failed is None else failed.error,
        denied_by=None if failed is None else failed.denied_by,
        late_value=None if failed is None else failed.late_value,
        meta=outcome.meta,
        contexts=outcome.contexts,
        concludes_turn=concludes_turn,
        parent=parent,
        root=root,
        timings=timings,
        hooks=hooks,
        waited=waited,
        claims=claims,
        cancelled_at=cancelled_at,
    )


def outcome_from_event(event: ToolResult) -> Outcome:
    """The outcome that a ``tool/result`` records, equal to the one that was delivered."""
    content = tuple(block_from_json(cast("Mapping[str, JsonValue]", block)) for block in event.content)
    if event.error is None:
        return Success(
            call_id=event.call_id,
            name=event.name,
            index=event.index,
            value=event.value,
            content=content,
            meta=event.meta,
            contexts=event.contexts,
            concludes_turn=event.concludes_turn,
            effect=event.effect,
        )
    return Failure(
        call_id=event.call_id,
        name=event.name,
        index=event.index,
        error=event.error,
        content=content,
        meta=event.meta,
        contexts=event.contexts,
        effect=event.effect,
        denied_by=event.denied_by,
        late_value=event.late_value,
    )


def rebuild_outcomes(events: Iterable[Event]) -> dict[str, list[Outcome]]:
    """The outcomes of each batch, from the log alone.

    Args:
        events: Of any number of batches, in the order of their recording.

    Returns:
        Batch identity to the outcomes of its calls in model order. Sub-calls are left out: they never become
        messages. A batch that was cut short has fewer outcomes than calls.
    """
    batches: dict[str, list[Outcome]] = {}
    for event in events:
        if isinstance(event, BatchStart):
            batches.setdefault(event.batch, [])
        elif isinstance(event, ToolResult) and event.parent is None:
            batches.setdefault(event.batch, []).append(outcome_from_event(event))
    return batches
