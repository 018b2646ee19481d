"""Rules for one call: its points in time, and that code, effect and cause tell the same story."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ..journal import ToolResult
from ..registry import Effect
from ._trace_records import CallTrace, Rule, Violation, seconds

__all__ = ["CALL_RULES"]

EFFECT: Final = Rule(3, "the effect is not_started exactly if the body was never invoked")
CODE: Final = Rule(3, "ABORTED means that the body was invoked, ABORTED_BEFORE_DISPATCH that it was not")
SUCCESS: Final = Rule(3, "a success is complete, or an around hook stands behind it")
DENIED: Final = Rule(3, "a denied call never started")
UNPREPARED: Final = Rule(3, "a call that was never prepared is aborted before dispatch, without hooks")
POINTS: Final = Rule(4, "a call passes its points in order")
CAUSE: Final = Rule(6, "a call is aborted only if something cancelled it")
AFTER_CANCEL: Final = Rule(7, "nothing starts after the cancel")

# A tool may raise a ToolError with any code: only the library's own class says that the library aborted the call.
_ABORT_ERROR: Final = "AbortError"
_ABORTED: Final = "ABORTED"
_BEFORE_DISPATCH: Final = "ABORTED_BEFORE_DISPATCH"


def _abort_code(result: ToolResult) -> str | None:
    error = result.error
    aborted = error is not None and error.name == _ABORT_ERROR and error.code in {_ABORTED, _BEFORE_DISPATCH}
    return error.code if error is not None and aborted else None


def _wrapped(result: ToolResult) -> bool:
    return any(span.kind == "around" for span in result.hooks)


def _truth(call: CallTrace, result: ToolResult) -> Iterator[Violation]:
    batch, times, code = call.lane.batch, result.timings, _abort_code(result)
    invoked = times.invoked is not None
    if (result.effect is Effect.NOT_STARTED) == invoked:
        detail = f"the effect of {call} is {result.effect.value}, its body was invoked: {seconds(times.invoked)}"
        yield EFFECT.broken(batch, detail, call)
    elif code is not None and invoked != (code == _ABORTED):
        detail = f"{call} ended as {code}, its body was invoked: {seconds(times.invoked)}"
        yield CODE.broken(batch, detail, call)
    wrapped = _wrapped(result)
    if result.error is None and (times.started is None or (result.effect is not Effect.COMPLETED and not wrapped)):
        detail = f"{call} succeeded, started: {seconds(times.started)}, effect {result.effect.value}, no around hook"
        yield SUCCESS.broken(batch, detail, call)
    if result.denied_by is not None and times.started is not None and not wrapped:
        detail = f"{call} was denied by {result.denied_by!r} and started at {seconds(times.started)}"
        yield DENIED.broken(batch, detail, call)


def _unprepared(call: CallTrace, result: ToolResult) -> Iterator[Violation]:
    if result.timings.prepared is not None:
        return
    if _abort_code(result) != _BEFORE_DISPATCH or result.hooks or result.claims is not None:
        ended = "a success" if result.error is None else f"{result.error.name} with code {result.error.code}"
        detail = f"{call} was never prepared, yet is {ended}, with {len(result.hooks)} hooks and claims {result.claims}"
        yield UNPREPARED.broken(call.lane.batch, detail, call)


def _points(call: CallTrace, result: ToolResult) -> Iterator[Violation]:
    batch, times = call.lane.batch, result.timings
    needed = (("prepared", "started"), ("started", "invoked"))
    for before, after in needed:
        if getattr(times, before) is None and getattr(times, after) is not None:
            yield POINTS.broken(batch, f"{call} was {after} and never {before}", call)
            return
    if times.settled is None or times.committed is None:
        yield POINTS.broken(batch, f"{call} is recorded and was never settled or committed", call)
        return
    for (before, earlier), (after, later) in pairwise(_timeline(call, result)):
        if later < earlier:
            detail = f"of {call}, {after} at {seconds(later)} is before {before} at {seconds(earlier)}"
            yield POINTS.broken(batch, detail, call)
            return


def _timeline(call: CallTrace, result: ToolResult) -> list[tuple[str, float]]:
    """Everything with a time, in the order in which it must have happened."""
    times = result.timings
    spans = {kind: [span for span in result.hooks if span.kind == kind] for kind in ("pre", "around", "post")}

    def ends(kind: str, side: str) -> list[tuple[str, float | None]]:
        return [(f"the {side} of its {kind} hooks", getattr(span, side)) for span in spans[kind]]

    line: list[tuple[str, float | None]] = [
        ("queued", times.queued),
        ("tool/call", None if call.call is None else call.call.time),
        *ends("pre", "start"),
        *ends("pre", "end"),
        ("prepared", times.prepared),
        ("started", times.started),
        *ends("around", "start"),
        ("invoked", times.invoked),
        *ends("around", "end"),
        ("settled", times.settled),
        *ends("post", "start"),
        *ends("post", "end"),
        ("committed", times.committed),
        ("tool/result", result.time),
    ]
    return [(name, time) for name, time in line if time is not None]


def _cause(call: CallTrace, result: ToolResult) -> Iterator[Violation]:
    batch, code = call.lane.batch, _abort_code(result)
    if code is None or batch.end is None or not batch.complete:
        return
    drained = batch.end.status == "drained" and code == _BEFORE_DISPATCH and call.lane.parent is None
    # cancelled_at of a batch is when the batch noticed: a body may have ended before, so times say nothing here.
    if batch.end.cancelled_at is not None or result.cancelled_at is not None or drained or _wrapped(result):
        return
    parent = None if call.lane.parent is None else batch.calls.get(call.lane.parent)
    if parent is not None and (parent.result is None or parent.result.is_error or _wrapped(parent.result)):
        return  # the body around it failed or was cut short, in one of its attempts at least
    detail = f"{call} ended as {code}, but the batch is {batch.end.status!r}, and nothing cancelled the call"
    yield CAUSE.broken(batch, detail, call)


def _after_cancel(call: CallTrace, result: ToolResult) -> Iterator[Violation]:
    batch, started = call.lane.batch, result.timings.started
    at = None if batch.end is None else batch.end.cancelled_at
    # Of a synchronous body, invoked is when its thread began, which may be a moment after a cancel that found the
    # thread on its way. What the batch decides is the start.
    if at is not None and started is not None and started > at:
        detail = f"{call} started at {seconds(started)}, after the cancel at {seconds(at)}"
        yield AFTER_CANCEL.broken(batch, detail, call)


CALL_RULES: Final = (_truth, _unprepared, _points, _cause, _after_cancel)
