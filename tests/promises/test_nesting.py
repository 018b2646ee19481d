"""Calls that bodies make: a lane of their own, settled before their parent, recorded with parent and root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce import EXCLUSIVE, Claims, Effect, Failure, RunContext, Success, ToolError, open_runtime, run_calls
from quiesce.errors import RuntimeClosedError
from quiesce.journal import MemoryJournal, ToolCallStarted, ToolResult, rebuild_outcomes
from quiesce.registry import DispatchView, JsonValue, Outcome
from toolbox import calls_of, registry_of
from world import ListJournal


async def test_a_child_never_waits_for_its_ancestors_place_or_claims() -> None:
    """Five levels of exclusive calls complete with a pool of one."""

    async def down(arguments: dict[str, int], run: RunContext) -> object:
        depth = arguments["depth"]
        if depth == 0:
            return "bottom"
        outcome = await run.call("down", {"depth": depth - 1})
        assert isinstance(outcome, Success)
        return outcome.value

    with trio.fail_after(5):
        (outcome,) = await run_calls(registry_of(EXCLUSIVE, down=down), calls_of("down", depth=5), max_parallel=1)
    assert outcome.text == "bottom"


async def test_sub_calls_are_recorded_with_parent_and_root_and_never_become_messages() -> None:
    """The journal names the parent and the root of each; rebuilding gives the outer outcome alone."""

    async def leaf(_: object) -> str:
        return "leaf"

    async def middle(_: object, run: RunContext) -> str:
        return (await run.call("leaf")).text

    async def outer(_: object, run: RunContext) -> str:
        return (await run.call("middle")).text

    journal = ListJournal()
    outcomes = await run_calls(registry_of(leaf=leaf, middle=middle, outer=outer), calls_of("outer"), journal=journal)
    results = [event for event in journal.events if isinstance(event, ToolResult)]
    assert [(event.name, event.call_id) for event in results] == [
        ("leaf", "c0:1:1"),
        ("middle", "c0:1"),
        ("outer", "c0"),
    ]
    leaf_event, middle_event, outer_event = results
    assert (leaf_event.parent, middle_event.parent, outer_event.parent) == (middle_event.key, outer_event.key, None)
    assert {event.root for event in results} == {outer_event.key}
    assert list(rebuild_outcomes(journal.events).values()) == [outcomes]


async def test_sub_calls_of_a_second_attempt_have_keys_of_their_own() -> None:
    """A hook that invokes the body again makes no two records of one key; the calls are counted on."""
    attempts = 0

    async def outer(_: object, run: RunContext) -> str:
        nonlocal attempts
        attempts += 1
        outcomes = [await run.call("inner", {}), await run.call("inner", {})]
        if attempts == 1:
            raise ToolError("again")
        return " ".join(f"{outcome.index} {outcome.call_id}" for outcome in outcomes)

    async def inner(_: object) -> str:
        return "ok"

    async def retry(call: DispatchView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        outcome = await proceed()
        return await proceed() if outcome.is_error else outcome

    registry = registry_of(outer=outer, inner=inner)
    registry.around(retry)
    journal = MemoryJournal()
    (outcome,) = await run_calls(registry, calls_of("outer"), journal=journal)
    assert isinstance(outcome, Success)
    assert outcome.value == "2 c0:3 3 c0:4"
    results = [event for event in journal.events if isinstance(event, ToolResult) and event.parent is not None]
    assert [event.key.rsplit(":", 1)[1] for event in results] == ["0", "1", "2", "3"]


async def test_submitted_calls_commit_in_the_order_of_submission(autojump_clock: trio.testing.MockClock) -> None:
    """``submit`` fixes the order; each result is delivered at its commit, and ``pending`` says what it waits for."""
    seen: list[str] = []

    async def nap(arguments: dict[str, float]) -> float:
        await trio.sleep(arguments["seconds"])
        return arguments["seconds"]

    async def outer(_: object, run: RunContext) -> list[object]:
        pending = [run.submit("nap", {"seconds": seconds}) for seconds in (3, 1, 2)]
        return [outcome.value for p in pending if isinstance(outcome := await p.outcome(), Success)]

    registry = registry_of(nap=nap, outer=outer)
    registry.on_result(lambda call, outcome: seen.append(outcome.text))
    (outcome,) = await run_calls(registry, calls_of("outer"))
    assert isinstance(outcome, Success)
    assert outcome.value == [3, 1, 2]
    assert seen == ["3", "1", "2", "[3,1,2]"]
    assert trio.current_time() == 3


async def test_cancelling_the_scope_around_run_call_settles_it_first(autojump_clock: trio.testing.MockClock) -> None:
    """The sub-call is cancelled, settled and recorded by the time the scope is left; the parent goes on."""
    settled_at: list[float] = []
    journal = ListJournal()

    async def slow(_: object) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            settled_at.append(trio.current_time())

    async def outer(_: object, run: RunContext) -> str:
        with trio.move_on_after(1):
            await run.call("slow")
        assert settled_at == [3]
        return "went on"

    (outcome,) = await run_calls(registry_of(slow=slow, outer=outer), calls_of("outer"), journal=journal)
    assert outcome.text == "went on"
    inner = next(event for event in journal.events if isinstance(event, ToolResult))
    assert (inner.error and inner.error.code, inner.effect) == ("ABORTED", Effect.UNKNOWN)


async def test_calls_that_the_body_does_not_await_settle_before_it_does(autojump_clock: trio.testing.MockClock) -> None:
    """They finish after a normal end, and are cancelled when the body fails."""
    ended: list[str] = []

    async def nap(_: object) -> str:
        try:
            await trio.sleep(2)
        finally:
            ended.append("nap")
        return "slept"

    async def leaves(_: object, run: RunContext) -> str:
        run.submit("nap")
        return "left"

    async def fails(_: object, run: RunContext) -> str:
        run.submit("nap")
        await trio.sleep(1)
        raise ValueError("on purpose")

    async with open_runtime(registry_of(nap=nap, leaves=leaves, fails=fails)) as runtime:
        (left,) = await runtime.run(calls_of("leaves"))
        assert (left.text, ended, trio.current_time()) == ("left", ["nap"], 2)
        (failed,) = await runtime.run(calls_of("fails"))
        assert (failed.text, ended, trio.current_time()) == ("Error: on purpose", ["nap", "nap"], 3)


async def test_a_deadline_around_the_parent_reaches_its_sub_calls(autojump_clock: trio.testing.MockClock) -> None:
    """A wrapper's deadline cancels the body, and through it the calls that it makes, awaited or not."""

    async def slow(_: object) -> None:
        await trio.sleep_forever()

    async def outer(_: object, run: RunContext) -> None:
        run.submit("slow")
        await run.call("slow")

    registry = registry_of(slow=slow, outer=outer)

    @registry.around
    async def deadline(call: DispatchView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        if call.parent is not None:
            return await proceed()
        with call.deadline(1) as budget:
            outcome = await proceed()
        return call.fail("late", "TOOL_TIMEOUT") if budget.fired else outcome

    (outcome,) = await run_calls(registry, calls_of("outer"))
    assert isinstance(outcome, Failure)
    assert outcome.code == "TOOL_TIMEOUT"
    assert trio.current_time() == 1


async def test_contexts_and_conclusion_of_a_sub_call_reach_the_request_through_its_parent() -> None:
    """In the order of the commits, after what the parent deferred before."""

    async def inner(_: object, run: RunContext) -> str:
        run.defer_context("from inner")
        run.conclude_turn()
        return "x"

    async def outer(_: object, run: RunContext) -> str:
        run.defer_context("first")
        await run.call("inner")
        run.defer_context("last")
        return "y"

    (outcome,) = await run_calls(registry_of(inner=inner, outer=outer), calls_of("outer"))
    assert isinstance(outcome, Success)
    assert outcome.contexts == ("first", "from inner", "last")
    assert outcome.concludes_turn


async def test_a_run_context_refuses_to_act_after_its_body_ended() -> None:
    """A kept context cannot start work that nobody owns."""
    kept: list[RunContext] = []

    async def body(_: object, run: RunContext) -> None:
        kept.append(run)

    registry = registry_of(body=body)
    await run_calls(registry, calls_of("body"))
    for act in (lambda: kept[0].submit("body"), lambda: kept[0].progress(1), kept[0].conclude_turn):
        with pytest.raises(RuntimeClosedError, match="after the body"):
            act()


@settings(max_examples=60, deadline=None)
@given(
    tree=st.recursive(st.just([]), lambda children: st.lists(children, max_size=3), max_leaves=8),
    cap=st.integers(1, 2),
    cancel_at=st.none() | st.integers(0, 4),
    random=st.random_module(),
)
def test_any_tree_of_calls_settles_inside_out(
    tree: list[JsonValue], cap: int, cancel_at: int | None, random: object
) -> None:
    """For random trees of calls on shared keys, cancelled or not: every parent outlives its children."""
    active: list[str] = []

    async def node(arguments: dict[str, list[JsonValue]], run: RunContext) -> str:
        active.append(run.call_id)
        try:
            pending = [run.submit("node", {"tree": child}) for child in arguments["tree"]]
            await trio.sleep(1)
            for call in pending:
                await call.outcome()
        finally:
            active.remove(run.call_id)
        return "done"

    journal = ListJournal()
    registry = registry_of(Claims(writes={"k"}), node=node)

    async def main() -> None:
        with trio.CancelScope() as scope:
            if cancel_at is not None:
                scope.deadline = trio.current_time() + cancel_at + 0.5
            await run_calls(registry, calls_of("node", tree=tree), max_parallel=cap, journal=journal)
        assert not active

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    started = [e.key for e in journal.events if isinstance(e, ToolCallStarted)]
    ended = [e.key for e in journal.events if isinstance(e, ToolResult)]
    assert sorted(started) == sorted(ended)
    for position, key in enumerate(ended):
        assert all(not later.startswith(f"{key}:") for later in ended[position:]), (
            "a child was recorded after its parent"
        )
