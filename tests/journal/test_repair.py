"""Promise 8, after a crash: every call gets its outcome, and none says more than is known."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journals import Batches, batches_plans, record
from quiesce import Effect
from quiesce.errors import CrashError
from quiesce.journal import (
    TOOL_NOT_STARTED,
    TOOL_OUTCOME_UNKNOWN,
    BatchEnd,
    BatchStart,
    CallRequest,
    Event,
    ToolCallStarted,
    ToolResult,
    rebuild_outcomes,
    repaired,
    replay,
)
from quiesce.testing import check_trace


def keys_of(events: list[Event], kind: type[ToolCallStarted] | type[ToolResult]) -> list[str]:
    return [event.key for event in events if isinstance(event, kind)]


def judge_repair(cut: list[Event], closers: list[Event]) -> None:
    """What must hold of any repair, whatever was cut."""
    whole = cut + closers
    assert repaired(whole) == [], "a second repair adds nothing"
    ended = {event.batch for event in cut if isinstance(event, BatchEnd)}
    assert not {event.batch for event in closers} & ended, "finished batches are not touched"
    calls, results = keys_of(whole, ToolCallStarted), keys_of(whole, ToolResult)
    assert len(set(calls)) == len(calls)
    assert sorted(results) == sorted(calls), "each call has its pair, once"
    for event in whole:
        if isinstance(event, ToolResult):
            assert calls.index(event.key) >= 0
            inner = [key for key in results if key.startswith(f"{event.key}:")]
            assert all(results.index(key) < results.index(event.key) for key in inner), "sub-calls before their parent"
    for replayed in replay(whole):
        assert replayed.complete
        assert replayed.start is not None
        assert [o.index for o in rebuild_outcomes(whole)[replayed.batch]] == list(range(len(replayed.start.calls)))
        last = max(event.time for event in cut if event.batch == replayed.batch)
        own = [event for event in closers if event.batch == replayed.batch]
        assert all(event.time == last for event in own), "closers carry the time of the last event"
        if own:
            assert isinstance(own[-1], BatchEnd)
            assert replayed.status == "repaired"


@settings(max_examples=150, deadline=None)
@given(plan=batches_plans, data=st.data(), random=st.random_module())
def test_any_prefix_of_any_journal_is_repaired_completely_and_truthfully(
    plan: Batches, data: st.DataObject, random: object
) -> None:
    """A crash leaves a prefix: repair completes it, never says "never ran" of a body that ran, and once is enough."""
    recording = record(plan)
    events = recording.journal.events
    check_trace(events)
    assert repaired(events) == []
    for length in sorted(data.draw(st.sets(st.integers(0, len(events)), min_size=1, max_size=8))):
        cut = events[:length]
        check_trace(cut)
        closers = repaired(cut)
        judge_repair(cut, closers)
        recorded = set(keys_of(cut, ToolCallStarted))
        for event in closers:
            if not isinstance(event, ToolResult):
                continue
            assert event.error is not None
            assert event.error.name == CrashError.__name__
            if event.error.code == TOOL_NOT_STARTED:
                assert plan.durability == "dispatch"
                assert event.key not in recorded
                assert event.effect is Effect.NOT_STARTED
                # It ran only when more was durable than this crash left: in the world of this crash, it never ran.
                assert recording.invoked.get(event.key, length + 1) > length
            else:
                assert event.error.code == TOOL_OUTCOME_UNKNOWN
                assert event.effect is Effect.UNKNOWN
        # A repair that is itself cut short (by a copy of the file, say) is repaired like anything else.
        again = cut + closers[: data.draw(st.integers(0, len(closers)))]
        judge_repair(again, repaired(again))


@settings(max_examples=40, deadline=None)
@given(plan=batches_plans, data=st.data(), random=st.random_module())
def test_what_was_committed_before_the_crash_stays_as_it_was(
    plan: Batches, data: st.DataObject, random: object
) -> None:
    """The outcomes of a repaired batch begin with those that were delivered."""
    recording = record(plan)
    events = recording.journal.events
    cut = events[: data.draw(st.integers(0, len(events)))]
    before, after = rebuild_outcomes(cut), rebuild_outcomes(cut + repaired(cut))
    for batch, outcomes in before.items():
        assert after[batch][: len(outcomes)] == outcomes == recording.outcomes[batch][: len(outcomes)]


START = BatchStart("b", 1.0, 1000.0, "dispatch", 3, tuple(CallRequest(i, f"c{i}", "t", {}) for i in range(3)))


def started(index: int, *, parent: str | None = None, time: float = 2.0) -> ToolCallStarted:
    key = f"{parent or 'b'}:{index}"
    return ToolCallStarted("b", key, time, CallRequest(index, f"c{index}", "t", {}), parent, "b:0" if parent else key)


def told(closers: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.key, str(event.error and event.error.code)) if isinstance(event, ToolResult) else (event.type, "")
        for event in closers
    ]


def test_open_sub_calls_are_repaired_like_calls_the_innermost_first() -> None:
    """F5.9: a sub-call with a recorded start may have run; it gets its outcome before the call that made it."""
    cut: list[Event] = [
        START,
        started(0),
        started(0, parent="b:0"),
        started(1, parent="b:0"),
        started(0, parent="b:0:1"),
    ]
    assert told(repaired(cut)) == [
        ("b:0:1:0", "TOOL_OUTCOME_UNKNOWN"),
        ("b:0:0", "TOOL_OUTCOME_UNKNOWN"),
        ("b:0:1", "TOOL_OUTCOME_UNKNOWN"),
        ("b:0", "TOOL_OUTCOME_UNKNOWN"),
        ("tool/call", ""),
        ("b:1", "TOOL_NOT_STARTED"),
        ("tool/call", ""),
        ("b:2", "TOOL_NOT_STARTED"),
        ("batch/end", ""),
    ]


def test_under_settled_nothing_is_said_to_have_never_run() -> None:
    """Without a flush before each body, a missing start says nothing."""
    cut: list[Event] = [attrs.evolve(START, durability="settled"), started(0)]
    closers = repaired(cut)
    results = [event for event in closers if isinstance(event, ToolResult)]
    assert [event.error and event.error.code for event in results] == ["TOOL_OUTCOME_UNKNOWN"] * 3
    assert "was recorded as started" in str(results[0].error)
    assert "neither a start nor a result" in str(results[1].error)


def test_the_model_is_told_what_it_may_do() -> None:
    """F5.3, F5.4: retry only what is read-only or idempotent, verify the rest; what never ran may be made again."""
    cut: list[Event] = [START, started(0)]
    first, second, _ = rebuild_outcomes(cut + repaired(cut))["b"]
    assert "read" in first.text
    assert "idempotent" in first.text
    assert "Do not retry blindly" in first.text
    assert first.text.startswith("Error: ")
    assert "may be made again" in second.text


@pytest.mark.parametrize("status", ["completed", "cancelled", "drained", "interrupted", "fault", "repaired"])
def test_a_batch_with_its_end_gets_nothing(status: str) -> None:
    """F5.6: what ended is not touched, also if a fault left calls open."""
    assert repaired([START, started(0), BatchEnd("b", 3.0, status, None, None)]) == []  # type: ignore[arg-type]


def test_a_stream_is_repaired_by_what_it_recorded() -> None:
    """A stream lists no calls: those that were recorded as started get their outcome."""
    cut: list[Event] = [attrs.evolve(START, calls=()), started(0), started(1)]
    assert told(repaired(cut)) == [
        ("b:0", "TOOL_OUTCOME_UNKNOWN"),
        ("b:1", "TOOL_OUTCOME_UNKNOWN"),
        ("batch/end", ""),
    ]


def test_a_log_without_its_beginning_is_closed_without_a_claim() -> None:
    """Records of a batch whose start is lost may have run, whatever its durability was."""
    assert told(repaired([started(1)])) == [("b:1", "TOOL_OUTCOME_UNKNOWN"), ("batch/end", "")]


def test_a_result_without_its_call_is_a_result() -> None:
    """Of a log that is not whole in its middle, either, no call gets a second result."""
    cut: list[Event] = [START, started(0)]
    results = [event for event in repaired(cut) if isinstance(event, ToolResult)]
    assert told(repaired([START, *results[:2]])) == [
        ("tool/call", ""),
        ("b:2", "TOOL_NOT_STARTED"),
        ("batch/end", ""),
    ]


def test_nothing_is_repaired_in_an_empty_log() -> None:
    """F5.1."""
    assert repaired([]) == []
