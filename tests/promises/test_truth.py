"""Promise 3: codes, effects and late values say what happened."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from quiesce import Effect, Failure, Outcome, RunContext, Success, ToolError, open_runtime, run_calls
from quiesce.journal import MemoryJournal, rebuild_outcomes
from quiesce.policies import Deadline
from quiesce.registry import DispatchView
from quiesce.schedule import Progress
from toolbox import calls_of, registry_of

Proceed = Callable[[], Awaitable[Outcome]]


async def run_cancelled(registry: object, *names: str, after: float = 1, cap: int = 10) -> list[Outcome]:
    """Run calls in a scope that is cancelled after some seconds; the outcomes of the batch."""
    async with open_runtime(registry, max_parallel=cap) as runtime:  # type: ignore[arg-type]
        batch = runtime.batch(calls_of(*names))
        with trio.move_on_after(after):
            await batch.run()
        return [outcome for outcome in batch.outcomes if outcome is not None]


async def test_a_value_that_arrives_during_a_cancel_is_kept_aside(autojump_clock: trio.testing.MockClock) -> None:
    """``ABORTED``, ``completed``, with the value in ``late_value`` and not in what the model sees."""

    async def body(_: object) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        return "the value"

    (outcome,) = await run_cancelled(registry_of(body=body), "body")
    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.effect, outcome.late_value) == ("ABORTED", Effect.COMPLETED, "the value")
    assert "the value" not in outcome.text


async def test_an_error_of_the_body_is_never_replaced_by_an_abort(autojump_clock: trio.testing.MockClock) -> None:
    """Alone or in a group with ``Cancelled``: the body's own error stands, with its code."""

    async def alone(_: object) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ToolError("could not stop", "STUCK") from None  # noqa: ASYNC104

    async def grouped(_: object) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await alone(None)

    outcomes = await run_cancelled(registry_of(alone=alone, grouped=grouped), "alone", "grouped")
    assert [(o.code, o.text, o.effect) for o in outcomes] == [("STUCK", "Error: could not stop", Effect.UNKNOWN)] * 2


async def test_errors_in_a_group_are_counted_and_an_empty_message_becomes_the_class_name() -> None:
    """One leaf is that error; several give the first and how many more."""

    async def several(_: object) -> None:
        raise ExceptionGroup("g", [ToolError("first", "ONE"), ExceptionGroup("h", [ValueError("x"), OSError("y")])])

    async def empty(_: object) -> None:
        raise ValueError

    first, second = await run_calls(registry_of(several=several, empty=empty), calls_of("several", "empty"))
    assert (first.text, first.code) == ("Error: first (and 2 more)", "ONE")
    assert second.text == "Error: ValueError"


async def test_a_retry_tells_the_truth_over_all_attempts() -> None:
    """Unknown if any attempt raised, also when a later one returned; completed if each returned."""
    attempts = 0

    async def flaky(_: object) -> str:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ValueError("first time")
        return "second time"

    async def picky(_: object) -> object:
        return "any"

    registry = registry_of(flaky=flaky, picky=picky)

    @registry.around
    async def twice(call: DispatchView, proceed: Proceed) -> Outcome:
        await proceed()
        return await proceed()

    first, second = await run_calls(registry, calls_of("flaky", "picky"))
    assert isinstance(first, Success)
    assert (first.value, first.effect) == ("second time", Effect.UNKNOWN)
    assert second.effect is Effect.COMPLETED


async def test_an_outcome_kept_over_another_attempt_says_what_is_so_after_it() -> None:
    """A hook that returns an older outcome, or one it made before, cannot make the effect untrue."""
    attempts = 0

    async def body(_: object) -> str:
        nonlocal attempts
        attempts += 1
        if attempts % 2 == 0:
            raise ToolError("the second attempt")
        return "first"

    async def keeps_the_first(call: DispatchView, proceed: Proceed) -> Outcome:
        first = await proceed()
        await proceed()
        return first

    async def makes_one_before(call: DispatchView, proceed: Proceed) -> Outcome:
        made = call.fail("prepared", "MADE")
        await proceed()
        return made

    for hook, effect in ((keeps_the_first, Effect.UNKNOWN), (makes_one_before, Effect.COMPLETED)):
        attempts = 0
        registry = registry_of(body=body)
        registry.around(hook)
        journal = MemoryJournal()
        (outcome,) = await run_calls(registry, calls_of("body"), journal=journal)
        assert outcome.effect is effect
        assert rebuild_outcomes(journal.events) == {journal.events[0].batch: [outcome]}


async def test_the_two_abort_codes_are_true_whoever_chooses_them() -> None:
    """A tool cannot say that it never ran, nor a hook that a body ran which did not."""

    async def body(_: object) -> None:
        raise ToolError("I was never here", "ABORTED_BEFORE_DISPATCH")

    async def around(call: DispatchView, proceed: Proceed) -> Outcome:
        return call.fail("stopped", "ABORTED") if call.call_id == "c1" else await proceed()

    registry = registry_of(body=body)
    registry.around(around)
    outcomes = await run_calls(registry, calls_of("body", "body"))
    assert [outcome.code for outcome in outcomes] == ["ABORTED", "ABORTED_BEFORE_DISPATCH"]


async def test_a_wrapper_that_shields_does_not_detach_the_body_from_its_caller(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The caller's cancel reaches a body behind a wrapper's shield at once."""

    async def body(_: object) -> None:
        await trio.sleep(100)

    registry = registry_of(body=body)

    @registry.around
    async def shielding(call: DispatchView, proceed: Proceed) -> Outcome:
        with trio.CancelScope(shield=True):
            return await proceed()
        raise AssertionError("proceed() lets no Cancelled out")

    (outcome,) = await run_cancelled(registry, "body")
    assert outcome.code == "ABORTED"
    assert trio.current_time() == 1


async def test_a_deadline_reaches_a_body_behind_an_inner_wrappers_shield(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """So does a deadline of a wrapper further out."""

    async def body(_: object) -> None:
        await trio.sleep(100)

    registry = registry_of(body=body)
    Deadline(2).install(registry)

    @registry.around
    async def shielding(call: DispatchView, proceed: Proceed) -> Outcome:
        with trio.CancelScope(shield=True):
            return await proceed()
        raise AssertionError("proceed() lets no Cancelled out")

    (outcome,) = await run_calls(registry, calls_of("body"))
    assert outcome.code == "TOOL_TIMEOUT"
    assert trio.current_time() == 2


@pytest.mark.parametrize(
    ("inner", "outer", "caller", "code", "message"),
    [
        (1.0, 9.0, None, "TOOL_TIMEOUT", "inner"),
        (9.0, 1.0, None, "TOOL_TIMEOUT", "outer"),
        (1.0, 2.0, None, "TOOL_TIMEOUT", "outer"),  # both ran out: the body drains 3 seconds
        (2.0, 2.0, None, "TOOL_TIMEOUT", "outer"),  # a tie goes to the outermost
        (1.0, 9.0, 2.0, "TOOL_TIMEOUT", "inner"),
        (9.0, 9.0, 1.0, "ABORTED", ""),
        (2.0, 9.0, 1.0, "ABORTED", ""),
        (2.0, 2.0, 2.0, "ABORTED", ""),  # a tie with the caller's deadline, which lies outermost
    ],
)
async def test_the_first_cause_wins(
    inner: float, outer: float, caller: float | None, code: str, message: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Of two nested deadlines and the caller's, over a body that drains for three seconds or not."""
    drains = (inner, outer, caller) == (1.0, 2.0, None)

    async def body(_: object) -> None:
        try:
            await trio.sleep(50)
        finally:
            if drains:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3)

    registry = registry_of(body=body)
    for name, seconds in (("outer", outer), ("inner", inner)):

        @registry.around()
        async def deadline(call: DispatchView, proceed: Proceed, name: str = name, seconds: float = seconds) -> Outcome:
            with call.deadline(seconds) as budget:
                outcome = await proceed()
            return call.fail(name, "TOOL_TIMEOUT") if budget.fired else outcome

    async with open_runtime(registry) as runtime:
        batch = runtime.batch(calls_of("body"))
        with trio.CancelScope(deadline=trio.current_time() + (caller or 1000)):
            await batch.run()
    (outcome,) = batch.outcomes
    assert isinstance(outcome, Failure)
    assert outcome.code == code
    if message:
        assert outcome.error.message == message


async def test_what_trio_says_of_the_first_cause_is_as_relied_on() -> None:
    """``Cancelled`` carries the canceller's reason and whether a deadline or a call of ``cancel`` was first."""
    with trio.CancelScope() as scope:
        scope.cancel("because")
        with pytest.raises(trio.Cancelled) as caught:
            await trio.lowlevel.checkpoint()
        assert (caught.value.reason, caught.value.source) == ("because", "explicit")


async def test_the_reason_of_the_callers_cancel_reaches_bodies(autojump_clock: trio.testing.MockClock) -> None:
    """``run.cancel_reason`` is what was said at ``scope.cancel(reason)``."""
    reasons: list[str | None] = []

    async def body(_: object, run: RunContext) -> None:
        with trio.CancelScope(shield=True):
            await run.wait_cancelled()
        assert run.cancelled
        reasons.append(run.cancel_reason)

    async with open_runtime(registry_of(body=body)) as runtime, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:

            async def cancel_soon() -> None:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel("the user pressed stop")

            nursery.start_soon(cancel_soon)
            await runtime.run(calls_of("body"))
    assert reasons == ["the user pressed stop"]


async def test_a_minted_outcome_of_another_call_is_checked_again() -> None:
    """A wrapper that answers from a cache gets its value validated and rendered for this call (C6.10)."""
    cache: list[Outcome] = []

    async def body(_: object) -> str:
        return "fresh"

    registry = registry_of(body=body)

    @registry.around
    async def cached(call: DispatchView, proceed: Proceed) -> Outcome:
        if cache:
            return attrs.evolve(cache[0], contexts=("cached",))
        cache.append(await proceed())
        return cache[0]

    first, second = await run_calls(registry, calls_of("body", "body"), max_parallel=1)
    assert (first.call_id, first.effect) == ("c0", Effect.COMPLETED)
    assert (second.call_id, second.index, second.text, second.effect) == ("c1", 1, "fresh", Effect.NOT_STARTED)
    assert second.contexts == ("cached",)


async def test_a_hook_that_leaves_its_body_behind_waits_for_it(autojump_clock: trio.testing.MockClock) -> None:
    """A hook that starts ``proceed`` in a foreign nursery and returns does not get rid of the body."""
    ended: list[float] = []

    async def body(_: object) -> None:
        try:
            await trio.sleep(50)
        finally:
            ended.append(trio.current_time())

    registry = registry_of(body=body)
    async with trio.open_nursery() as foreign:

        @registry.around
        async def leaving(call: DispatchView, proceed: Proceed) -> Outcome:
            foreign.start_soon(proceed)
            await trio.sleep(1)
            return call.succeed("never mind")

        await run_calls(registry, calls_of("body"))
        assert ended == [1]


async def test_a_synchronous_body_runs_in_a_thread_and_is_awaited_through_a_cancel() -> None:
    """It is never abandoned: the outcome comes after the thread has left the body, and tells of the late value."""
    began, go_on = threading.Event(), threading.Event()
    inside: list[int] = []

    def body(_: object) -> str:
        inside.append(threading.get_ident())
        began.set()
        assert go_on.wait(10)
        inside.clear()
        return "from a thread"

    async def canceller(scope: trio.CancelScope) -> None:
        await trio.to_thread.run_sync(began.wait, 10)
        assert inside != [threading.get_ident()]
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()

    async with open_runtime(registry_of(body=body)) as runtime, trio.open_nursery() as nursery:
        batch = runtime.batch(calls_of("body"))
        with trio.CancelScope() as scope:
            nursery.start_soon(canceller, scope)  # noqa: ASYNC111
            await batch.run()
        assert scope.cancelled_caught
        assert not inside
    (outcome,) = batch.outcomes
    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.effect, outcome.late_value) == ("ABORTED", Effect.COMPLETED, "from a thread")


async def test_a_synchronous_body_can_poll_and_report_from_its_thread() -> None:
    """``run.cancelled`` and ``run.progress`` work in a worker thread."""
    polled = threading.Event()

    def body(_: object, run: RunContext) -> str:
        run.progress("half")
        polled.set()
        while not run.cancelled:
            threading.Event().wait(0.001)
        return "stopped by itself"

    async with open_runtime(registry_of(body=body)) as runtime, trio.open_nursery() as nursery:
        batch = runtime.batch(calls_of("body"))
        events = batch.events()
        with trio.CancelScope() as scope:

            async def canceller() -> None:
                await trio.to_thread.run_sync(polled.wait, 10)
                scope.cancel()

            nursery.start_soon(canceller)
            await batch.run()
    (outcome,) = batch.outcomes
    assert isinstance(outcome, Failure)
    assert outcome.late_value == "stopped by itself"
    assert [event.progress async for event in events if isinstance(event, Progress)] == ["half"]


async def test_trio_run_inside_a_body_is_a_tool_error_and_the_loop_lives() -> None:
    """A second event loop is refused by trio; the call fails, its sibling does not."""

    async def nested(_: object) -> None:
        trio.run(trio.lowlevel.checkpoint)

    async def fine(_: object) -> str:
        await trio.lowlevel.checkpoint()
        return "fine"

    first, second = await run_calls(registry_of(nested=nested, fine=fine), calls_of("nested", "fine"))
    assert "run" in first.text
    assert first.is_error
    assert second.text == "fine"
