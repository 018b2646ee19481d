"""Batches, streams and the runtime around them: promise 2 at every door out, and what can be seen meanwhile."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce import (
    EXCLUSIVE,
    Allow,
    Batch,
    Claims,
    Effect,
    Outcome,
    RunContext,
    ToolCall,
    open_runtime,
    run_calls,
)
from quiesce.errors import RuntimeClosedError, SchedulerFault
from quiesce.journal import BatchEnd, ToolCallStarted, ToolResult, event_from_json, event_to_json, rebuild_outcomes
from quiesce.registry import CallView, DispatchView
from quiesce.schedule import Committed, Progress, Settled, Stalled, Started
from toolbox import calls_of, registry_of
from world import ListJournal

Clock = trio.testing.MockClock
Proceed = Callable[[], Awaitable[Outcome]]


async def nap(_: object) -> str:
    """A body that takes ten seconds."""
    await trio.sleep(10)
    return "slept"


def codes(outcomes: object) -> list[str | None]:
    """The codes of a list of outcomes."""
    return [outcome.code for outcome in outcomes]  # type: ignore[attr-defined]


async def test_run_settles_everything_before_cancelled_propagates(autojump_clock: Clock) -> None:
    """A body that takes three seconds to stop holds the batch; ``Cancelled`` comes after it, with every outcome."""
    ended: list[float] = []

    async def slow_to_stop(_: object) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            ended.append(trio.current_time())

    async with open_runtime(registry_of(slow=slow_to_stop), max_parallel=1) as runtime:
        batch = runtime.batch(calls_of("slow", "slow"))
        with trio.move_on_after(1) as scope:
            await batch.run()
        assert scope.cancelled_caught
        assert ended == [4.0]
        assert codes(batch.outcomes) == ["ABORTED", "ABORTED_BEFORE_DISPATCH"]


async def test_cancel_makes_run_return_normally(autojump_clock: Clock) -> None:
    """``batch.cancel(reason)`` settles the batch, and the journal says why."""
    journal = ListJournal()
    async with open_runtime(registry_of(nap=nap), max_parallel=1, journal=journal) as runtime:
        batch = runtime.batch(calls_of("nap", "nap"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(batch.run)
            await trio.sleep(1)
            batch.cancel("changed my mind")
        assert codes(batch.outcomes) == ["ABORTED", "ABORTED_BEFORE_DISPATCH"]
        assert trio.current_time() == 1
    end = journal.events[-1]
    assert isinstance(end, BatchEnd)
    assert (end.status, end.cancelled_at, end.reason) == ("cancelled", 1, "changed my mind")


async def test_a_batch_cancelled_before_it_runs_runs_nothing() -> None:
    """Every call is ``ABORTED_BEFORE_DISPATCH`` and recorded, and no hook sees it."""
    registry = registry_of(nap=nap)
    seen: list[str] = []

    @registry.pre_execute
    async def pre(call: CallView, proceed: object) -> Allow:
        seen.append(call.call_id)
        return Allow()

    journal = ListJournal()
    async with open_runtime(registry, journal=journal) as runtime:
        batch = runtime.batch(calls_of("nap", "nap"))
        batch.cancel("too early")
        assert codes(await batch.run()) == ["ABORTED_BEFORE_DISPATCH"] * 2
    assert seen == []
    assert [type(event) for event in journal.events[1:-1]] == [ToolCallStarted, ToolResult] * 2


async def test_drain_lets_what_runs_finish_and_aborts_the_rest(autojump_clock: Clock) -> None:
    """Started calls succeed, ready and queued ones never start; ready ones still see their post hooks."""
    async with open_runtime(registry_of(Claims(writes={"k"}), nap=nap)) as runtime:
        batch = runtime.batch(calls_of("nap", "nap", "nap"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(batch.run)
            await trio.sleep(1)
            assert [pending.phase for pending in batch.pending()] == ["running", "ready", "ready"]
            assert [pending.waits_for for pending in batch.pending()] == [(), (0,), (0, 1)]
            batch.drain("closing time")
    assert codes(batch.outcomes) == [None, "ABORTED_BEFORE_DISPATCH", "ABORTED_BEFORE_DISPATCH"]
    assert trio.current_time() == 10


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_cancel_call_leaves_the_siblings_alone(index: int, autojump_clock: Clock) -> None:
    """One call of a running, a ready and a queued one is cancelled; the others succeed; a settled one says False."""
    ran: list[str] = []

    async def body(_: object, run: RunContext) -> str:
        ran.append(run.call_id)
        await trio.sleep(5)
        return "ok"

    async with open_runtime(registry_of(Claims(writes={"k"}), body=body), max_parallel=1) as runtime:
        batch = runtime.batch(calls_of("body", "body", "body"), cancellable=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(batch.run)
            await trio.sleep(1)
            assert [pending.phase for pending in batch.pending()] == ["running", "ready", "queued"]
            assert batch.cancel_call(index, "just this one")
    wanted: list[str | None] = [None, None, None]
    wanted[index] = "ABORTED" if index == 0 else "ABORTED_BEFORE_DISPATCH"
    assert codes(batch.outcomes) == wanted
    assert ran == [f"c{i}" for i in range(3) if i != index or index == 0]
    assert not batch.cancel_call(index)


async def test_cancel_call_needs_a_cancellable_batch() -> None:
    """The error says how to make one."""
    async with open_runtime(registry_of(nap=nap)) as runtime:
        with pytest.raises(ValueError, match="cancellable=True"):
            runtime.batch(calls_of("nap")).cancel_call(0)
        with pytest.raises(IndexError, match="there is no call 3"):
            runtime.batch(calls_of("nap"), cancellable=True).cancel_call(3)


async def test_a_batch_runs_once_and_a_closed_runtime_runs_nothing() -> None:
    """Both are refused with the remedy."""
    async with open_runtime(registry_of(nap=nap)) as runtime:
        batch = runtime.batch([])
        assert await batch.run() == []
        with pytest.raises(RuntimeClosedError, match="runs once"):
            await batch.run()
    with pytest.raises(RuntimeClosedError, match="closed"):
        await runtime.run([])


async def test_what_is_not_a_call_is_refused_by_its_place() -> None:
    """A dict is not a ``ToolCall``; the error names which and the way to make one."""
    async with open_runtime(registry_of(nap=nap)) as runtime:
        with pytest.raises(TypeError, match=r"calls\[1\] is \{'name': 'nap'\}.*ToolCall\(call_id, name"):
            await runtime.run([ToolCall("c", "nap"), {"name": "nap"}])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_parallel": 0}, "max_parallel must be a positive integer, got 0"),
        ({"max_parallel": True}, "max_parallel"),
        ({"limits": {"nap": 0}}, "limits\\['nap'\\]"),
        ({"stall_after": 0}, "stall_after"),
        ({"durability": "sometimes"}, "durability"),
    ],
)
async def test_options_out_of_range_are_refused(options: dict[str, Any], text: str) -> None:
    """The error names the option and its range."""
    with pytest.raises(ValueError, match=text):
        async with open_runtime(registry_of(nap=nap), **options):
            raise AssertionError("not refused")


async def test_an_exception_from_the_block_leaves_unchanged() -> None:
    """Never wrapped in a group; the very object."""
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught:
        async with open_runtime(registry_of(nap=nap)):
            raise error
    assert caught.value is error


async def test_leaving_the_runtime_waits_for_batches_of_other_tasks(autojump_clock: Clock) -> None:
    """A normal exit waits; the batch succeeds."""
    async with trio.open_nursery() as nursery:
        async with open_runtime(registry_of(nap=nap)) as runtime:
            batch = runtime.batch(calls_of("nap"))
            nursery.start_soon(batch.run)
            await trio.sleep(1)
        assert codes(batch.outcomes) == [None]
        assert trio.current_time() == 10


async def test_leaving_a_cancelled_runtime_settles_batches_of_other_tasks(autojump_clock: Clock) -> None:
    """A cancel or an error in the block cancels them, and the exit still waits until they have settled."""

    async def slow(_: object) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)

    batches: list[Batch] = []
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(1):
            async with open_runtime(registry_of(slow=slow)) as runtime:
                batches.append(runtime.batch(calls_of("slow")))
                nursery.start_soon(batches[0].run)
                await trio.sleep_forever()
        assert codes(batches[0].outcomes) == ["ABORTED"]
        assert trio.current_time() == 3


async def test_a_stream_yields_in_order_keeps_none_and_takes_calls_as_room_allows(autojump_clock: Clock) -> None:
    """An endless source is read no further than needed; outcomes come one by one in model order."""
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            yield ToolCall(f"c{taken}", "nap")
            taken += 1

    got: list[str] = []
    async with open_runtime(registry_of(nap=nap), max_parallel=2) as runtime:
        async with runtime.stream(endless()) as stream:
            async for outcome in stream:
                got.append(outcome.call_id)
                if len(got) == 30:
                    break
        assert runtime.pending() == []
    assert got == [f"c{i}" for i in range(30)]
    assert taken < 60


async def test_leaving_a_stream_settles_what_it_started(autojump_clock: Clock) -> None:
    """By ``break`` inside ``async with``, the bodies still running are cancelled and awaited."""
    ended: list[float] = []

    async def slow(arguments: dict[str, int], run: RunContext) -> None:
        try:
            await trio.sleep(1 if run.call_id == "c0" else 100)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            ended.append(trio.current_time())

    async with open_runtime(registry_of(slow=slow)) as runtime:
        async with runtime.stream(calls_of("slow", "slow")) as stream:
            async for outcome in stream:
                assert outcome.call_id == "c0"
                break
        assert ended == [3, 5]


async def test_a_cancel_around_a_stream_settles_it(autojump_clock: Clock) -> None:
    """The consumer's cancel reaches the bodies, and comes out after they have settled."""
    active = 0

    async def slow(_: object) -> None:
        nonlocal active
        active += 1
        try:
            await trio.sleep_forever()
        finally:
            active -= 1

    async with open_runtime(registry_of(slow=slow)) as runtime:
        with trio.move_on_after(1) as scope:
            async for _ in runtime.stream(calls_of("slow", "slow", "slow")):
                raise AssertionError("nothing can come")
        assert scope.cancelled_caught
        assert active == 0


async def test_a_fault_in_a_stream_reaches_its_reader() -> None:
    """``SchedulerFault``, from the loop itself."""

    class Broken(ListJournal):
        def append(self, event: object) -> None:
            if isinstance(event, ToolResult):
                raise OSError("disk full")

    async def quick(_: object) -> int:
        return 1

    async with open_runtime(registry_of(quick=quick), journal=Broken()) as runtime:
        stream = runtime.stream(calls_of("quick"))
        with pytest.raises(SchedulerFault, match="disk full"):
            await anext(stream)


async def test_events_tell_the_story_and_a_slow_reader_blocks_nobody(autojump_clock: Clock) -> None:
    """Started, latest progress, settled, committed; kept for a reader who comes late, and ended after ``run``."""

    async def body(_: object, run: RunContext) -> str:
        for percent in range(100):
            run.progress({"percent": percent})
        await trio.sleep(1)
        return "ok"

    async with open_runtime(registry_of(body=body)) as runtime:
        batch = runtime.batch(calls_of("body"))
        events = batch.events()
        (outcome,) = await batch.run()
        assert [event async for event in events] == [
            Started(0, "c0", "body", 0),
            Progress(0, "c0", "body", 0, {"percent": 99}),
            Settled(0, "c0", "body", 1, is_error=False),
            Committed(0, "c0", "body", 1, outcome),
        ]
        assert [event async for event in batch.events()] == []


async def test_a_body_that_ignores_the_cancel_is_reported_as_stalled(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the line it is stuck on, in the events and in the log; ``pending`` says the same."""

    async def stubborn(_: object) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)  # the line it is stuck on

    async with open_runtime(registry_of(stubborn=stubborn), stall_after=5) as runtime:
        batch = runtime.batch(calls_of("stubborn"))
        events = batch.events()
        with caplog.at_level(logging.WARNING), trio.move_on_after(1):
            await batch.run()
        (stalled,) = [event async for event in events if isinstance(event, Stalled)]
    assert (stalled.time, stalled.running_for) == (5, 5)
    assert stalled.line is not None
    assert stalled.line.startswith(__file__)
    assert "in test_a_body_that_ignores_the_cancel_is_reported_as_stalled.<locals>.stubborn" in stalled.line
    assert len(caplog.records) == 1


async def test_a_cancel_does_not_cut_a_flush_short(autojump_clock: Clock) -> None:
    """``dispatch`` durability flushes before each body; a cancel during it lets it finish."""
    flushed: list[float] = []
    invoked: list[int] = []

    class Slow(ListJournal):
        async def flush(self) -> None:
            await trio.sleep(5)
            flushed.append(len(self.events))

    async def body(_: object) -> None:
        invoked.append(len(flushed))

    registry = registry_of(EXCLUSIVE, body=body)
    journal = Slow()
    async with open_runtime(registry, journal=journal, durability="dispatch") as runtime:
        await runtime.run(calls_of("body"))
        assert invoked == [1]
        with trio.move_on_after(2) as scope:
            await runtime.run(calls_of("body"))
        assert scope.cancelled_caught
        assert invoked == [1]
        assert isinstance(journal.events[-1], BatchEnd)


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_contextvars_come_from_the_caller_and_do_not_leak_between_siblings() -> None:
    """What a body sets stays in it; what an around hook sets reaches its body; a pre hook's setting reaches no body."""
    seen: list[tuple[str, str]] = []

    async def body(_: object, run: RunContext) -> None:
        seen.append((run.call_id, variable.get()))
        variable.set(f"set by {run.call_id}")
        await trio.lowlevel.checkpoint()
        assert variable.get() == f"set by {run.call_id}"

    registry = registry_of(body=body)

    @registry.pre_execute
    async def pre(call: CallView, proceed: object) -> Allow:
        variable.set("set by a pre hook")
        return Allow()

    @registry.around
    async def around(call: DispatchView, proceed: Proceed) -> Outcome:
        if call.call_id == "c1":
            variable.set("set around c1")
        return await proceed()

    variable.set("the caller's")
    await run_calls(registry, calls_of("body", "body", "body"), max_parallel=2)
    assert sorted(seen) == [("c0", "the caller's"), ("c1", "set around c1"), ("c2", "the caller's")]


async def test_a_failing_call_harms_no_other(autojump_clock: Clock) -> None:
    """Promise 6, plainly: errors, unknown names and malformed arguments beside calls that go on."""

    async def bad(_: object) -> None:
        raise ValueError("bad")

    calls = [
        ToolCall("1", "nap"),
        ToolCall("2", "bad"),
        ToolCall("3", "nope"),
        ToolCall.from_text("4", "nap", "{not json"),
        ToolCall("5", "nap"),
    ]
    outcomes = await run_calls(registry_of(nap=nap, bad=bad), calls)
    assert [(o.call_id, o.code, o.effect) for o in outcomes] == [
        ("1", None, Effect.COMPLETED),
        ("2", None, Effect.UNKNOWN),
        ("3", "UNKNOWN_TOOL", Effect.NOT_STARTED),
        ("4", "INVALID_ARGS", Effect.NOT_STARTED),
        ("5", None, Effect.COMPLETED),
    ]


async def test_events_survive_their_json_form() -> None:
    """Every event written and read back is equal, and the outcomes rebuilt from it are those delivered."""

    async def body(_: object, run: RunContext) -> dict[str, object]:
        run.defer_context({"note": ["x", 1.5, None]})
        return {"a": [1, {"b": "\ud800"}]}

    journal = ListJournal()
    outcomes = await run_calls(registry_of(body=body), [*calls_of("body", "nope")], journal=journal)
    read_back = [event_from_json(event_to_json(event)) for event in journal.events]
    assert read_back == journal.events
    (rebuilt,) = rebuild_outcomes(read_back).values()
    assert rebuilt == outcomes


def open_descriptors() -> int:
    """How many files, sockets and pipes this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))


@settings(max_examples=30, deadline=None)
@given(cancel_at=st.integers(0, 6), cap=st.integers(1, 4))
def test_no_task_thread_or_descriptor_is_left(cancel_at: int, cap: int) -> None:
    """After a cancelled batch of async and thread bodies: the same tasks and open descriptors as before."""

    def in_thread(_: object) -> str:
        return "thread"

    async def main() -> None:
        registry = registry_of(nap=nap, in_thread=in_thread)
        async with open_runtime(registry, max_parallel=cap) as runtime:
            await runtime.run(calls_of("in_thread"))  # trio's thread cache is warm from here on
            before = (trio.lowlevel.current_statistics().tasks_living, open_descriptors())
            with trio.move_on_after(cancel_at):
                await runtime.run(calls_of("nap", "in_thread", "nap", "in_thread"))
            assert (
                trio.lowlevel.current_statistics().tasks_living,
                open_descriptors(),
            ) == before

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_faulted_stream_does_not_keep_the_others_from_settling(autojump_clock: Clock) -> None:
    """Leaving the runtime settles every stream, then raises the fault that nobody read."""
    ended: list[float] = []

    class Broken(ListJournal):
        def append(self, event: object) -> None:
            if isinstance(event, ToolResult) and event.name == "quick":
                raise OSError("disk full")

    async def quick(_: object) -> int:
        return 1

    async def slow(_: object) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            ended.append(trio.current_time())

    async def leave_two_streams() -> None:
        async with open_runtime(registry_of(fast=quick, quick=quick, slow=slow), journal=Broken()) as runtime:
            broken = runtime.stream(calls_of("fast", "quick", "slow"))
            other = runtime.stream(calls_of("fast", "slow"))
            await anext(broken)
            await anext(other)
            await trio.sleep(1)

    with pytest.raises(SchedulerFault, match="disk full"):
        await leave_two_streams()
    assert ended == [3.0, 3.0]
