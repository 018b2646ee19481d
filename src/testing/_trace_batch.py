"""Rules for a batch as a whole: who has a result, what lies between start and end, and that the journal is enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..journal import (
    BatchStart,
    CallRequest,
    Event,
    ToolCallStarted,
    ToolResult,
    event_from_json,
    event_to_json,
    outcome_from_event,
    result_event,
)
from ._trace_records import BatchTrace, CallTrace, LaneTrace, Rule, Violation, seconds

__all__ = ["BATCH_RULES"]

ONE_RESULT: Final = Rule(1, "each call has exactly one result")
SAME_CALL: Final = Rule(1, "a result is that of the call that was asked for")
NOTHING_LATER: Final = Rule(2, "nothing is recorded after the end of its batch")
WITHIN: Final = Rule(2, "all of a batch happens between its start and its end")
SUB_CALLS: Final = Rule(2, "sub-calls are over before the call that made them has settled")
STATUS: Final = Rule(7, "the status says whether the batch was cancelled")
START_FIRST: Final = Rule(8, "batch/start is the first record of its batch, and there is one")
CALL_FIRST: Final = Rule(8, "each tool/result has its tool/call before it")
KEYS: Final = Rule(8, "key, parent and root say where a call belongs")
JSON: Final = Rule(8, "each event survives its JSON form")
REBUILT: Final = Rule(8, "each outcome can be rebuilt from its record")


def _one_result(batch: BatchTrace) -> Iterator[Violation]:
    for call in batch.calls.values():
        for event in call.again:
            yield ONE_RESULT.broken(batch, f"{call} has a second {event.type} at {seconds(event.time)}", call)
    listed = _requests(batch)
    for lane in batch.lanes.values():
        known = {call.index: call for call in lane.calls}
        wanted = len(listed) if listed and lane.parent is None else max(known, default=-1) + 1
        last = max((call.index for call in lane.calls if call.result is not None), default=-1)
        # Results come in model order: before the last one that is there, none may be missing even after a crash.
        for index in range(wanted if batch.complete else min(last, wanted)):
            found = known.get(index)
            if found is None:
                yield ONE_RESULT.broken(batch, f"call {index} of {_name(lane)} has no result, and no tool/call")
            elif found.result is None:
                yield ONE_RESULT.broken(batch, f"{found} has no result", found)
        for index, call in known.items():
            if not 0 <= index < wanted:
                yield ONE_RESULT.broken(batch, f"{call} is none of the {wanted} calls of batch/start", call)
    if batch.complete and listed and None not in batch.lanes:
        yield ONE_RESULT.broken(batch, f"none of the {len(listed)} calls of batch/start has a result")


def _name(lane: LaneTrace) -> str:
    return "the batch" if lane.parent is None else f"the sub-calls of {lane.batch.calls.get(lane.parent, lane.parent)}"


def _requests(batch: BatchTrace) -> tuple[CallRequest, ...]:
    """What was asked for; none is known of a stream."""
    return () if batch.start is None else batch.start.calls


def _same_call(batch: BatchTrace) -> Iterator[Violation]:
    listed = _requests(batch)
    for call in batch.calls.values():
        asked = None if call.call is None else call.call.request
        if call.lane.parent is None and 0 <= call.index < len(listed):
            request = listed[call.index]
            if asked is not None and asked != request:
                yield SAME_CALL.broken(
                    batch, f"the tool/call of {call} is of {asked}, batch/start lists {request}", call
                )
                continue
            asked = request
        result = call.result
        if asked is None or result is None:
            continue
        wanted, found = (asked.index, asked.call_id, asked.name), (result.index, result.call_id, result.name)
        if wanted != found:
            yield SAME_CALL.broken(batch, f"the result of {call} says {found}, asked for was {wanted}", call)


def _nothing_later(batch: BatchTrace) -> Iterator[Violation]:
    if batch.end is None:
        return
    for event in batch.events[batch.end_at + 1 :]:
        if isinstance(event, ToolCallStarted | ToolResult):
            call = batch.calls[event.key]
            detail = f"a {event.type} of {call} at {seconds(event.time)} comes after batch/end"
            yield NOTHING_LATER.broken(batch, detail, call)
        else:
            yield NOTHING_LATER.broken(batch, f"a {event.type} at {seconds(event.time)} comes after batch/end")


def _within(batch: BatchTrace) -> Iterator[Violation]:
    low = batch.start.time if batch.start is not None else float("-inf")
    high = batch.end.time if batch.end is not None else float("inf")
    if high < low:
        yield WITHIN.broken(batch, f"batch/end at {seconds(high)} is before batch/start at {seconds(low)}")
        return
    for call in batch.calls.values():
        for event in (call.call, call.result):
            if event is not None and not low <= event.time <= high:
                detail = (
                    f"the {event.type} of {call} at {seconds(event.time)} is not in {seconds(low)}..{seconds(high)}"
                )
                yield WITHIN.broken(batch, detail, call)


def _sub_calls(batch: BatchTrace) -> Iterator[Violation]:
    for lane in batch.lanes.values():
        if lane.parent is None:
            continue
        parent = batch.calls.get(lane.parent)
        for call in lane.calls:
            if parent is None:
                yield SUB_CALLS.broken(batch, f"{call} was made by {lane.parent!r}, of which there is no record", call)
            elif (wrong := _outlives(call, parent)) is not None:
                yield SUB_CALLS.broken(batch, f"{call} {wrong} of {parent}, which made it", call, parent)


def _outlives(call: CallTrace, parent: CallTrace) -> str | None:
    """What is wrong with the place of a sub-call beside its parent: records first, since they have no ties."""
    if call.call is not None and call.call_at < parent.call_at:
        return "was recorded before the tool/call"
    if parent.result is None:
        return None
    if max(call.call_at, call.result_at) > parent.result_at:
        return "was recorded after the tool/result"
    outer = parent.result.timings
    if outer.invoked is None:
        return "was made, though the body was never invoked,"
    if call.result is None:
        return None
    inner = call.result.timings
    if inner.queued < outer.invoked:
        return f"was queued at {seconds(inner.queued)}, before the invocation at {seconds(outer.invoked)}"
    if outer.settled is not None and call.result.time > outer.settled:
        return f"was committed at {seconds(call.result.time)}, after the settling at {seconds(outer.settled)}"
    return None


def _status(batch: BatchTrace) -> Iterator[Violation]:
    end = batch.end
    if end is None or end.status == "fault":
        return
    was = end.cancelled_at is not None
    if was != (end.status in {"cancelled", "interrupted"}):
        yield STATUS.broken(batch, f"the status is {end.status!r}, cancelled_at {seconds(end.cancelled_at)}")
    elif end.status == "completed" and end.reason is not None:
        yield STATUS.broken(batch, f"the status is 'completed', with the reason {end.reason!r} for a cancel")
    elif end.cancelled_at is not None and end.cancelled_at > end.time:
        detail = f"cancelled_at {seconds(end.cancelled_at)} is after batch/end at {seconds(end.time)}"
        yield STATUS.broken(batch, detail)


def _start_first(batch: BatchTrace) -> Iterator[Violation]:
    starts = [at for at, event in enumerate(batch.events) if isinstance(event, BatchStart)]
    if starts != [0]:
        where = f"batch/start is record {', '.join(map(str, starts))}" if starts else "there is no batch/start"
        yield START_FIRST.broken(batch, f"{where} of {len(batch.events)}")


def _call_first(batch: BatchTrace) -> Iterator[Violation]:
    for call in batch.calls.values():
        if call.result is None or (call.call is not None and call.call_at < call.result_at):
            continue
        what = "no tool/call" if call.call is None else "its tool/call after its tool/result"
        yield CALL_FIRST.broken(batch, f"{call} has {what}", call)


def _keys(batch: BatchTrace) -> Iterator[Violation]:
    for call in batch.calls.values():
        for event in (call.call, call.result):
            if event is None:
                continue
            index = event.index if isinstance(event, ToolResult) else event.request.index
            key = f"{event.parent or batch.id}:{index}"
            parent = None if event.parent is None else batch.calls.get(event.parent)
            above = None if parent is None else parent.call or parent.result
            root = event.key if event.parent is None else event.root if above is None else above.root
            if (event.key, event.root, event.parent) != (key, root, call.lane.parent):
                detail = (
                    f"the {event.type} of {call} has key {event.key!r}, root {event.root!r} and parent "
                    f"{event.parent!r}; its place gives {key!r}, {root!r} and {call.lane.parent!r}"
                )
                yield KEYS.broken(batch, detail, call)


def _json(batch: BatchTrace) -> Iterator[Violation]:
    for event in batch.events:
        try:
            wrong = None if event_from_json(event_to_json(event)) == event else "is read back as another"
        except Exception as error:  # noqa: BLE001 - whatever it is, the event did not survive
            wrong = f"is not read back: {error}"
        if wrong is not None:
            yield JSON.broken(batch, f"the {event.type} at {seconds(event.time)}{_of(batch, event)} {wrong}")


def _of(batch: BatchTrace, event: Event) -> str:
    return f" of {batch.calls[event.key]}" if isinstance(event, ToolCallStarted | ToolResult) else ""


def _rebuilt(batch: BatchTrace) -> Iterator[Violation]:
    for call in batch.calls.values():
        result = call.result
        if result is None:
            continue
        try:
            again = result_event(
                outcome_from_event(result),
                batch=result.batch,
                key=result.key,
                parent=result.parent,
                root=result.root,
                timings=result.timings,
                hooks=result.hooks,
                waited=result.waited,
                claims=result.claims,
                cancelled_at=result.cancelled_at,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no outcome
            yield REBUILT.broken(batch, f"the record of {call} gives no outcome: {error!r:.200}", call)
            continue
        if again != result:
            names = [field.name for field in attrs.fields(ToolResult)]
            fields = [name for name in names if getattr(again, name) != getattr(result, name)]
            detail = f"the outcome of {call} would be recorded with another {', '.join(fields)}"
            yield REBUILT.broken(batch, detail, call)


BATCH_RULES: Final = (
    _one_result,
    _same_call,
    _nothing_later,
    _within,
    _sub_calls,
    _status,
    _start_first,
    _call_first,
    _keys,
    _json,
    _rebuilt,
)
