"""Hooks, classifiers, sources and callers that misbehave: every one of these once lost an outcome, hung or leaked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from quiesce import (
    PARALLEL,
    Allow,
    Ask,
    Failure,
    Outcome,
    Output,
    Registry,
    RunContext,
    Success,
    ToolCall,
    define_tool,
    open_runtime,
    run_calls,
)
from quiesce.errors import RuntimeClosedError, SchedulerFault
from quiesce.journal import BatchEnd, BatchStart
from quiesce.registry import ApprovalOutcome, CallView, DispatchView, PostDecision, PreDecision
from toolbox import calls_of, registry_of
from world import ListJournal

Clock = trio.testing.MockClock
Proceed = Callable[[], Awaitable[Outcome]]


async def ok(_: object) -> str:
    return "ok"


async def nap(_: object) -> str:
    await trio.sleep(10)
    return "slept"


async def read_all(stream: AsyncIterator[Outcome], take: Callable[[Outcome], object] = lambda outcome: None) -> int:
    """Read a stream to its end, handing each outcome on; how many they were."""
    count = 0
    async for outcome in stream:
        take(outcome)
        count += 1
        assert count < 100, "it does not end"
    return count


async def test_calls_of_wrong_types_are_refused_by_their_place() -> None:
    """An agent that is no scope, or a name that is no text, never reaches the lane."""
    wrong: Any = "agent-1"
    with pytest.raises(TypeError, match=r"calls\[1\]\.agent is 'agent-1', not a Scope"):
        await run_calls(registry_of(ok=ok), [ToolCall("a", "ok"), ToolCall("b", "ok", {}, wrong)])
    names: Any = ["ok"]
    with pytest.raises(TypeError, match="'name' must be <class 'str'>"):
        ToolCall("a", names)


def test_an_interrupt_in_a_classifier_settles_everything_and_leaves_bare() -> None:
    """Also in that of a sub-call, which nobody could wait out before."""

    def classify(_: object) -> bool:
        raise KeyboardInterrupt

    async def outer(_: object, run: RunContext) -> None:
        await run.call("bad")

    registry = registry_of(ok=ok, outer=outer)
    registry.register(
        define_tool("bad", description="d", parameters={}, output=Output({"type": "json"}), execute=ok, claims=classify)
    )
    for names in (["ok", "bad", "ok"], ["outer"]):
        journal = ListJournal()

        async def main(names: list[str] = names, journal: ListJournal = journal) -> None:
            async with open_runtime(registry, journal=journal) as runtime:
                batch = runtime.batch(calls_of(*names))
                try:
                    await batch.run()
                finally:
                    assert None not in batch.outcomes

        with pytest.raises(KeyboardInterrupt):
            trio.run(main)
        assert isinstance(journal.events[-1], BatchEnd)
        assert journal.events[-1].status == "interrupted"


async def test_a_source_that_raises_ends_its_stream(autojump_clock: Clock) -> None:
    """On the first call that it is asked for, or a later one: the error comes out after the outcomes before it."""

    def broken(good: int) -> Iterator[ToolCall]:
        yield from calls_of(*["ok"] * good)
        raise LookupError("no more")

    async with open_runtime(registry_of(ok=ok), max_parallel=1) as runtime:
        for good in (0, 1, 10):
            read: list[Outcome] = []
            with pytest.raises(LookupError, match="no more"), trio.fail_after(5):
                await read_all(runtime.stream(broken(good)), read.append)
            assert [outcome.index for outcome in read] == list(range(good)), "no outcome is lost to the reader"


async def test_an_interrupt_ends_an_endless_stream() -> None:
    """No endless row of aborted calls: the lane stops, and the loop raises what stopped it."""

    def endless() -> Iterator[ToolCall]:
        while True:
            yield from calls_of("ok", "stop")

    async def stop(_: object) -> None:
        raise SystemExit(3)

    async with open_runtime(registry_of(ok=ok, stop=stop)) as runtime:
        with pytest.raises(SystemExit):
            await read_all(runtime.stream(endless()))


@pytest.mark.parametrize("slow", ["body", "pre", "post", "sibling"])
async def test_cancelling_the_scope_around_run_call_never_waits_for_others(slow: str, autojump_clock: Clock) -> None:
    """Not for an earlier sub-call's commit, nor for hooks of its own: it settles, and the body goes on."""

    async def outer(_: object, run: RunContext) -> float:
        if slow == "sibling":
            run.submit("nap")
        with trio.move_on_after(1):
            await run.call("nap" if slow == "body" else "ok")
            if slow == "post":
                raise AssertionError("its commit takes longer")
        return trio.current_time()

    registry = registry_of(outer=outer, nap=nap, ok=ok)

    @registry.pre_execute
    async def pre(call: CallView, proceed: object) -> Allow:
        await trio.sleep(50 if call.name == "ok" and slow == "pre" else 0)
        return Allow()

    @registry.post_execute
    async def post(call: CallView, outcome: Outcome, proceed: Callable[[], Awaitable[PostDecision]]) -> PostDecision:
        await trio.sleep(5 if call.name == "ok" and slow == "post" else 0)
        return await proceed()

    (outcome,) = await run_calls(registry, calls_of("outer"))
    assert isinstance(outcome, Success), outcome
    assert outcome.value == 1


async def test_cancel_call_ends_an_approval_that_never_comes(autojump_clock: Clock) -> None:
    """A call that is being prepared is cancelled like one that runs."""
    registry = registry_of(ok=ok)

    @registry.pre_execute
    async def ask(call: CallView, proceed: object) -> Ask:
        return Ask()

    @registry.approver
    async def thinking(request: object, proceed: object) -> ApprovalOutcome:
        await trio.sleep_forever()
        raise AssertionError

    async with open_runtime(registry) as runtime, trio.open_nursery() as nursery:
        batch = runtime.batch([ToolCall("c", "ok", {}, registry.scope())], cancellable=True)
        nursery.start_soon(batch.run)
        await trio.sleep(1)
        assert [pending.phase for pending in batch.pending()] == ["preparing"]
        assert batch.cancel_call(0)
    (outcome,) = batch.outcomes
    assert outcome is not None
    assert outcome.code == "ABORTED_BEFORE_DISPATCH"


async def test_a_second_proceed_left_behind_is_waited_for_too(autojump_clock: Clock) -> None:
    """And the outcome is the hook's: nobody cancelled the call."""
    running: list[str] = []

    async def body(_: object) -> str:
        running.append("body")
        try:
            await trio.sleep(10)
        finally:
            running.pop()
        return "ok"

    registry = registry_of(body=body)
    async with trio.open_nursery() as foreign:

        @registry.around
        async def twice(call: DispatchView, proceed: Proceed) -> Outcome:
            outcome = await proceed()
            foreign.start_soon(proceed)
            await trio.sleep(1)
            return outcome

        (outcome,) = await run_calls(registry, calls_of("body"))
        assert (running, outcome.text) == ([], "ok")


async def test_a_pre_hook_cannot_run_what_is_inside_it_twice_at_once() -> None:
    """``proceed`` refuses, and the call fails by the hook's error."""
    registry = registry_of(ok=ok)

    @registry.pre_execute
    async def twice(call: CallView, proceed: Callable[[], Awaitable[PreDecision]]) -> PreDecision:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proceed)
            nursery.start_soon(proceed)
        return Allow()

    @registry.pre_execute
    async def inner(call: CallView, proceed: object) -> Allow:
        await trio.lowlevel.checkpoint()
        return Allow()

    (outcome,) = await run_calls(registry, calls_of("ok"))
    assert isinstance(outcome, Failure)
    assert "while an earlier proceed() runs" in outcome.error.message


async def test_an_endless_retry_ends_with_its_caller(autojump_clock: Clock) -> None:
    """``while True: await proceed()`` neither freezes the loop nor survives the cancel."""
    registry = registry_of(nap=nap)

    @registry.around
    async def stubborn(call: DispatchView, proceed: Proceed) -> Outcome:
        while True:
            outcome = await proceed()
            if not outcome.is_error:
                return outcome

    async with open_runtime(registry) as runtime:
        batch = runtime.batch(calls_of("nap"))
        with trio.move_on_after(1):
            await batch.run()
    (outcome,) = batch.outcomes
    assert outcome is not None
    assert outcome.code == "ABORTED"


@pytest.mark.parametrize(
    "wrong", [{"content": "short"}, {"contexts": None}, {"error": "text"}, {"late_value": object()}]
)
async def test_a_malformed_outcome_of_a_hook_fails_its_call_alone(wrong: dict[str, object]) -> None:
    """It is read like any answer of a hook: understood, or a failure of this call; never a fault."""
    registry = registry_of(ok=ok)

    @registry.around
    async def meddling(call: DispatchView, proceed: Proceed) -> Outcome:
        outcome = await proceed()
        if call.call_id == "c0":
            failed: Any = call.fail("mine")
            return attrs.evolve(failed, **wrong)  # type: ignore[no-any-return]
        return outcome

    first, second = await run_calls(registry, calls_of("ok", "ok"))
    assert first.is_error
    assert second.text == "ok"


def test_an_interrupt_from_a_finalizer_or_a_grouped_one_from_an_observer_leaves_bare() -> None:
    """With every outcome committed."""

    def finalize(call: CallView, outcome: Outcome) -> None:
        raise KeyboardInterrupt

    finalizing = Registry()
    finalizing.register(
        define_tool(
            "ok",
            description="d",
            parameters={},
            output=Output({"type": "json"}),
            execute=ok,
            claims=PARALLEL,
            finalize_content=finalize,
        )
    )
    observed = registry_of(ok=ok)

    @observed.on_result
    def observe(call: CallView, outcome: Outcome) -> None:
        raise BaseExceptionGroup("g", [KeyboardInterrupt()])

    for registry in (finalizing, observed):

        async def main(registry: Registry = registry) -> None:
            async with open_runtime(registry) as runtime:
                batch = runtime.batch(calls_of("ok", "ok"))
                try:
                    await batch.run()
                finally:
                    assert None not in batch.outcomes

        with pytest.raises(KeyboardInterrupt):
            trio.run(main)


async def test_readers_of_events_end_whatever_keeps_a_batch_from_running() -> None:
    """A closed runtime, a journal that refuses the first record; and two readers of one stream."""

    class Broken(ListJournal):
        def append(self, event: object) -> None:
            raise SystemExit(4)

    async with open_runtime(registry_of(ok=ok), journal=Broken()) as runtime:
        refused, late = runtime.batch(calls_of("ok")), runtime.batch(calls_of("ok"))
        events = refused.events(), late.events()
        with pytest.raises(SchedulerFault):
            await refused.run()
    with pytest.raises(RuntimeClosedError):
        await late.run()
    with trio.fail_after(5):
        for stream in events:
            assert [event async for event in stream] == []
    async with open_runtime(registry_of(ok=ok)) as runtime, trio.open_nursery() as nursery:
        batch = runtime.batch(calls_of("ok"))
        shared = batch.events()

        async def read() -> None:
            async for _ in shared:
                pass

        with trio.fail_after(5):
            nursery.start_soon(read)
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await batch.run()


async def test_arguments_are_taken_when_they_are_handed_in() -> None:
    """What the caller does to them later changes neither the journal nor the body's view."""
    journal = ListJournal()
    arguments: dict[str, Any] = {"x": [1]}
    async with open_runtime(registry_of(ok=ok), journal=journal) as runtime:
        batch = runtime.batch([ToolCall("c", "ok", arguments)])
        arguments["x"].append(object())
        await batch.run()
    start = journal.events[0]
    assert isinstance(start, BatchStart)
    assert start.calls[0].arguments == {"x": [1]}


async def test_progress_comes_from_a_thread_that_an_async_body_made() -> None:
    """Where it is called decides, not what kind of tool it is."""

    async def body(_: object, run: RunContext) -> str:
        await trio.to_thread.run_sync(run.progress, "from a thread")
        return "ok"

    async with open_runtime(registry_of(body=body)) as runtime:
        batch = runtime.batch(calls_of("body"))
        events = batch.events()
        (outcome,) = await batch.run()
    assert outcome.text == "ok"
    assert "from a thread" in [getattr(event, "progress", None) async for event in events]


async def test_an_observer_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The others are told all the same, and every outcome stands (C6.20)."""
    registry = registry_of(ok=ok)
    told: list[str] = []

    @registry.on_result
    def failing(call: CallView, outcome: Outcome) -> None:
        raise LookupError("mine")

    registry.on_result(lambda call, outcome: told.append(call.call_id))
    outcomes = await run_calls(registry, calls_of("ok", "ok"))
    assert [outcome.text for outcome in outcomes] == ["ok", "ok"]
    assert told == ["c0", "c1"]
    assert len(caplog.records) == 2
