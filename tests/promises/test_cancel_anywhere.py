"""Promises 1 to 7 hold wherever the cancel lands."""

from __future__ import annotations

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from counting import AtStep
from quiesce import EXCLUSIVE, Claims, open_runtime
from quiesce.registry import Outcome
from world import CallPlan, ListJournal, Plan, World, judge, plans

MIXED = Plan(
    (
        CallPlan(ticks=2, around="shield"),
        CallPlan(Claims(writes={"a"}), pre="slow", on_cancel="drain"),
        CallPlan(Claims(writes={"a"}), on_cancel="ignore", post="slow"),
        CallPlan(Claims(reads={"a"}), around="retry", ends="raise"),
        CallPlan(EXCLUSIVE, ticks=0, around="deadline"),
        CallPlan(ticks=3, post="block"),
    ),
    max_parallel=3,
    cancellable=True,
)


@attrs.define
class Run:
    """What a run of a plan came to."""

    world: World
    journal: ListJournal
    steps: int = 0
    cancelled: bool = False
    outcomes: list[Outcome] = attrs.field(factory=list[Outcome])


async def run_plan(plan: Plan, *, at_step: int | None = None, at_event: int | None = None) -> Run:
    """Run a plan, cancelling the scope around it after a step or an event, and check what promises 2 and 7 say."""
    run = Run(World(plan), ListJournal())
    scope = trio.CancelScope()
    instrument = AtStep(at_step, scope.cancel)
    run.journal.on_append = lambda count: scope.cancel() if count == at_event else None
    returned = False
    async with open_runtime(run.world.registry, max_parallel=plan.max_parallel, journal=run.journal) as runtime:
        batch = runtime.batch(run.world.calls, cancellable=plan.cancellable)
        tasks_before = trio.lowlevel.current_statistics().tasks_living
        trio.lowlevel.add_instrument(instrument)
        with scope:
            try:
                await batch.run()
                returned = True
            finally:
                # Promise 2, at the very moment run() returns or raises.
                trio.lowlevel.remove_instrument(instrument)
                assert not run.world.active
                assert trio.lowlevel.current_statistics().tasks_living == tasks_before
        run.cancelled = scope.cancel_called
        # Promise 7: it is never swallowed, and nothing else is raised.
        assert scope.cancelled_caught == (not returned)
        assert not returned or not scope.cancel_called or at_step == instrument.steps
        run.outcomes = [outcome for outcome in batch.outcomes if outcome is not None]
        run.steps = instrument.steps
    return run


def play(plan: Plan, *, at_step: int | None = None, at_event: int | None = None) -> Run:
    async def main() -> Run:
        return await run_plan(plan, at_step=at_step, at_event=at_event)

    run = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    judge(run.world, run.outcomes, run.journal.events, cancelled=run.cancelled)
    return run


def test_every_promise_holds_without_a_cancel() -> None:
    """The mixed plan itself is sound."""
    assert not play(MIXED).cancelled


def test_every_promise_holds_for_a_cancel_after_each_step() -> None:
    """Promises 1 to 7, with the cancel at the k-th checkpoint for all k."""
    steps = play(MIXED).steps
    assert steps > 20
    for k in range(1, steps + 1):
        play(MIXED, at_step=k)


def test_every_promise_holds_for_a_cancel_after_each_event() -> None:
    """Promises 1 to 7, with the cancel inside the k-th journal append for all k."""
    for k in range(1, len(play(MIXED).journal.events) + 1):
        play(MIXED, at_event=k)


@settings(max_examples=150, deadline=None)
@given(plan=plans, k=st.none() | st.integers(1, 80), random=st.random_module())
def test_every_promise_holds_for_random_batches_cancelled_at_a_step(plan: Plan, k: int | None, random: object) -> None:
    """Promises 1 to 7 over random batches, task orders and cancel points."""
    play(plan, at_step=k)


@settings(max_examples=100, deadline=None)
@given(plan=plans, k=st.integers(1, 14), random=st.random_module())
def test_every_promise_holds_for_random_batches_cancelled_at_an_event(plan: Plan, k: int, random: object) -> None:
    """Promises 1 to 7 over random batches and task orders, cancelled between two records."""
    play(plan, at_event=k)
