"""Rules for the calls of one lane beside each other: their order, their hooks, their claims and the pool."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ..journal import ToolCallStarted, ToolResult
from ..registry import ANY, Claims, HookSpan
from ..schedule import conflicts
from ._trace_records import CallTrace, LaneTrace, Rule, Violation, seconds

__all__ = ["LANE_RULES"]

MODEL_ORDER: Final = Rule(4, "records of a lane are made in model order")
RECORD_TIME: Final = Rule(4, "records of a lane are made in the order of their times")
PREPARED: Final = Rule(4, "calls are prepared one after another, in model order")
HOOKS: Final = Rule(4, "pre and post hooks run in model order and never overlap each other")
OVERLAP: Final = Rule(5, "calls whose claims conflict never overlap and run in model order")
BARRIER: Final = Rule(5, "a claim on anything is held until the commit, and waits for every rival before it")
POOL: Final = Rule(5, "no more calls run at once than the pool has places")
WAITS: Final = Rule(5, "a call waits only for calls before it")


def _model_order(lane: LaneTrace) -> Iterator[Violation]:
    for kind in (ToolCallStarted, ToolResult):
        last: CallTrace | None = None
        for call, event in lane.events:
            if event.type != kind.type or (kind is ToolCallStarted and _may_be_late(lane, call)):
                continue
            if last is not None and call.index < last.index:
                detail = f"the {event.type} of {call} comes after that of {last}"
                yield MODEL_ORDER.broken(lane.batch, detail, call, last)
            last = call
    for (call, event), (following, _) in pairwise(lane.events):
        # One that was cancelled before its turn is let go at its commit, when later calls may run already.
        if isinstance(event, ToolCallStarted) and _abandoned(call) and following is not call:
            detail = f"{call} was never prepared, and {following} comes between its tool/call and its tool/result"
            yield MODEL_ORDER.broken(lane.batch, detail, call, following)


def _may_be_late(lane: LaneTrace, call: CallTrace) -> bool:
    if call.result is None and not lane.batch.complete and lane.events[-1][0] is call:
        return True  # cut off between its two records
    return _abandoned(call)


def _abandoned(call: CallTrace) -> bool:
    return call.result is not None and call.result.timings.prepared is None


def _record_time(lane: LaneTrace) -> Iterator[Violation]:
    for (before, earlier), (after, later) in pairwise(lane.events):
        if later.time < earlier.time:
            detail = (
                f"the {later.type} of {after} at {seconds(later.time)} was recorded after the {earlier.type} of "
                f"{before} at {seconds(earlier.time)}"
            )
            yield RECORD_TIME.broken(lane.batch, detail, after, before)


def _prepared(lane: LaneTrace) -> Iterator[Violation]:
    """Whoever prepares a call does nothing else meanwhile: the lane's next record comes after."""
    for (call, event), (following, later) in pairwise(lane.events):
        prepared = None if call.result is None else call.result.timings.prepared
        if isinstance(event, ToolCallStarted) and prepared is not None and prepared > later.time:
            detail = f"{call} was being prepared until {seconds(prepared)}, the {later.type} of {following} is from "
            yield PREPARED.broken(lane.batch, f"{detail}{seconds(later.time)}", call, following)


def _hooks(lane: LaneTrace) -> Iterator[Violation]:
    found = [
        (span, call)
        for call in lane.calls
        if call.result is not None
        for span in call.result.hooks
        if span.kind in {"pre", "post"}
    ]
    for kind in ("pre", "post"):
        same = sorted((pair for pair in found if pair[0].kind == kind), key=lambda pair: pair[1].index)
        for (first, before), (second, after) in pairwise(same):
            if second.end < first.start:
                detail = f"{_told(second, after)} ran before {_told(first, before)}"
                yield HOOKS.broken(lane.batch, detail, before, after)
    yield from _overlapping_hooks(lane, found)


def _overlapping_hooks(lane: LaneTrace, found: list[tuple[HookSpan, CallTrace]]) -> Iterator[Violation]:
    latest: tuple[HookSpan, CallTrace] | None = None
    for span, call in sorted(found, key=lambda pair: (pair[0].start, pair[0].end)):
        if latest is not None and span.start < latest[0].end and latest[0].start < span.end:
            detail = f"{_told(span, call)} overlap {_told(*latest)}"
            yield HOOKS.broken(lane.batch, detail, call, latest[1])
        if latest is None or span.end >= latest[0].end:
            latest = span, call


def _told(span: HookSpan, call: CallTrace) -> str:
    return f"the {span.kind} hooks of {call} at {seconds(span.start)}..{seconds(span.end)}"


def _claims(lane: LaneTrace) -> Iterator[Violation]:
    """Compare each call with those before it that were not committed when its own turn came; no other can overlap."""
    open_calls: dict[CallTrace, ToolResult] = {}
    for call, event in lane.events:
        if isinstance(event, ToolResult):
            open_calls.pop(call, None)
            continue
        result = call.result
        if result is None or result.claims is None:
            continue
        for other, earlier in open_calls.items():
            if other.index < call.index and earlier.claims is not None:
                yield from _rivals(lane, (other, earlier), (call, result), event.time)
        open_calls[call] = result


def _rivals(
    lane: LaneTrace, first: tuple[CallTrace, ToolResult], second: tuple[CallTrace, ToolResult], turn: float
) -> Iterator[Violation]:
    (before, earlier), (after, later) = first, second
    one, other = earlier.claims, later.claims
    if one is None or other is None or not conflicts(one, other):
        return
    started, settled = later.timings.started, earlier.timings.settled
    ran = earlier.timings.started is not None and settled is not None
    if ran and started is not None and settled is not None and settled > started:
        detail = f"{after} started at {seconds(started)}, before {before} settled at {seconds(settled)}"
        yield OVERLAP.broken(lane.batch, f"{detail}; claims {other} and {one}", after, before)
    elif _has_any(one):
        # The records decide: its tool/call came while the other was not committed, be it at the same instant.
        detail = (
            f"the turn of {after} came at {seconds(turn)}, before the commit of {before} at {seconds(earlier.time)}"
        )
        yield BARRIER.broken(lane.batch, f"{detail}; claims {other} and {one}", after, before)
    elif _has_any(other) and ran and settled is not None and settled > turn:
        detail = f"the turn of {after} came at {seconds(turn)}, before {before} settled at {seconds(settled)}"
        yield BARRIER.broken(lane.batch, f"{detail}; claims {other} and {one}", after, before)


def _has_any(claims: Claims) -> bool:
    return claims.reads is ANY or claims.writes is ANY


def _pool(lane: LaneTrace) -> Iterator[Violation]:
    """Every lane has a pool of the same size. What settles at an instant has left its place to what starts at it."""
    start = lane.batch.start
    if start is None:
        return
    running: list[float] = []
    ran = [
        (started, settled, call)
        for call in lane.calls
        if call.result is not None
        and (started := call.result.timings.started) is not None
        and (settled := call.result.timings.settled) is not None
        and settled > started
    ]
    for started, settled, call in sorted(ran, key=lambda one: one[:2]):
        while running and running[0] <= started:
            heapq.heappop(running)
        heapq.heappush(running, settled)
        if len(running) > start.max_parallel:
            detail = (
                f"{call} is the {len(running)}th that runs at {seconds(started)}; max_parallel is {start.max_parallel}"
            )
            yield POOL.broken(lane.batch, detail, call)


def _waits(lane: LaneTrace) -> Iterator[Violation]:
    for call in lane.calls:
        waited = None if call.result is None else call.result.waited
        if waited is None:
            continue
        wrong = [index for index in waited.calls if not 0 <= index < call.index]
        if wrong or (waited.calls and waited.kind != "conflict"):
            detail = f"{call} waited for {', '.join(map(str, waited.calls))} because of {waited.kind!r}"
            yield WAITS.broken(lane.batch, detail, call)


LANE_RULES: Final = (_model_order, _record_time, _prepared, _hooks, _claims, _pool, _waits)
