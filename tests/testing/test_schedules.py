"""Schedules: every order of tasks can be taken, each is repeatable, and its text carries it."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import math
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

import scenarios
from quiesce.testing import (
    BadScenarioError,
    Deadlock,
    Exhaustive,
    FailingSchedule,
    Granularity,
    Pct,
    Picker,
    Point,
    RandomOrder,
    ReplayWarning,
    Schedule,
    Strategy,
    TooManySteps,
    explore,
    find_failure,
    replay,
)

ClockKind = Literal["virtual", "real"]
CLOCKS: tuple[ClockKind, ...] = ("virtual", "real")
GRANULARITIES: tuple[Granularity, ...] = ("batch", "step")
choices = st.lists(st.integers(0, 60) | st.just(0) | st.just(0), max_size=80).map(tuple)


@given(choices, st.sampled_from(GRANULARITIES))
def test_a_replay_string_says_all_of_its_schedule(made: tuple[int, ...], granularity: Granularity) -> None:
    """A schedule comes back from its text, zeros at its end left out; the text needs no quoting in a shell."""
    schedule = Schedule(made, granularity, "0.35.0")
    assert Schedule.parse(str(schedule)) == schedule
    assert set(str(schedule)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.{}")
    assert schedule.choices[-1:] != (0,)


@pytest.mark.parametrize("text", ["", "q1", "q2-0.35.0-b-1", "q1-0.35.0-x-1", "q1-0.35.0-b-1!", "q1-0.35.0-b-{1"])
def test_what_is_not_a_replay_string_is_refused_with_what_one_looks_like(text: str) -> None:
    """Bad input gets a clear error."""
    with pytest.raises(ValueError, match=r"not a replay string.*q1-"):
        Schedule.parse(text)


def _interleavings(tasks: int, steps: int) -> int:
    orders: int = math.factorial(tasks * steps) // math.factorial(steps) ** tasks
    return orders


@pytest.mark.parametrize(("tasks", "checkpoints"), [(2, 1), (2, 3), (3, 1)])
def test_exhaustive_visits_every_interleaving_of_steps_once(tasks: int, checkpoints: int) -> None:
    """N tasks of k steps have (nk)! / (k!)^n interleavings: 6, 70 and 90 here."""
    seen: list[tuple[int, ...]] = []
    found = explore(scenarios.recording(tasks, checkpoints, seen), strategy=Exhaustive(granularity="step"), runs=10_000)
    assert found.complete
    assert len(set(seen)) == len(seen) == found.runs == _interleavings(tasks, checkpoints + 1)


@pytest.mark.parametrize(("tasks", "checkpoints"), [(2, 1), (2, 3), (3, 1)])
def test_exhaustive_visits_every_order_that_trio_can_take_once(tasks: int, checkpoints: int) -> None:
    """In each of its k batches trio may run n tasks in any order: (n!)^k, which is 4, 16 and 36 here."""
    seen: list[tuple[int, ...]] = []
    found = explore(scenarios.recording(tasks, checkpoints, seen), strategy="exhaustive", runs=10_000)
    assert found.complete
    assert len(set(seen)) == len(seen) == found.runs == math.factorial(tasks) ** (checkpoints + 1)


@pytest.mark.parametrize(("bound", "count"), [(0, 2), (1, 6), (2, 14), (6, 70)])
def test_a_preemption_bound_leaves_out_the_schedules_above_it(bound: int, count: int) -> None:
    """Two tasks of four steps: 2 orders without preemption; by hand, 4 more with one, 8 more with two; 70 in all."""
    seen: list[tuple[int, ...]] = []
    strategy = Exhaustive(preemptions=bound, granularity="step")
    explore(scenarios.recording(2, 3, seen), strategy=strategy, runs=10_000)
    switches = [_preemptions(order) for order in seen]
    assert max(switches) == bound
    everything = _orders(4)
    assert sorted(seen) == sorted(order for order in everything if _preemptions(order) <= bound)
    assert len(seen) == len(set(seen))
    assert len(seen) >= count


def _orders(steps: int) -> list[tuple[int, ...]]:
    """All interleavings of two tasks."""

    def extend(order: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(order) == 2 * steps:
            return [order]
        return [full for task in (0, 1) if order.count(task) < steps for full in extend((*order, task))]

    return extend(())


def _preemptions(order: tuple[int, ...]) -> int:
    """How often the turn was taken from a task that had steps left."""
    return sum(
        1
        for place, (before, after) in enumerate(itertools.pairwise(order))
        if before != after and before in order[place + 1 :]
    )


def _failing_runs(scenario: scenarios.Scenario, strategy: Strategy, runs: int) -> int:
    """How many of the runs fail."""
    failed = 0

    async def counting() -> None:
        nonlocal failed
        try:
            await scenario()
        except BaseExceptionGroup:
            failed += 1
        except AssertionError:
            failed += 1

    explore(counting, strategy=strategy, runs=runs)
    return failed


def _size(scenario: scenarios.Scenario) -> tuple[int, int]:
    """The numbers of tasks and of steps of a scenario, as a strategy sees them."""
    tasks: set[int] = set()
    steps = 0

    class Watching:
        granularity: Granularity = "step"

        def pickers(self) -> Iterator[Picker]:
            def pick(point: Point) -> int:
                nonlocal steps
                tasks.update(point.options)
                steps = point.step + 1
                return 0

            yield pick

    explore(scenario, strategy=Watching())
    return len(tasks), steps


@pytest.mark.parametrize(("scenario", "depth"), [(scenarios.lost_update(), 2), (scenarios.used_after_close(), 3)])
def test_pct_finds_a_bug_of_known_depth_at_least_as_often_as_its_bound_says(
    scenario: scenarios.Scenario, depth: int
) -> None:
    """One run finds it with a probability of at least 1 / (n * k^(d-1))."""
    tasks, steps = _size(scenario)
    bound = 1 / (tasks * steps ** (depth - 1))
    runs = math.ceil(6 / bound)
    failed = _failing_runs(scenario, Pct(depth=depth, steps=steps), runs)
    assert failed >= bound * runs, f"{failed} of {runs} runs found it; the bound expects {bound * runs:.1f}"


@pytest.mark.parametrize("scenario", [scenarios.lost_update(), scenarios.used_after_close()])
def test_a_bug_that_needs_a_delay_is_never_met_by_trio_alone(scenario: scenarios.Scenario) -> None:
    """In the batches of trio no order of tasks shows these two: exhaustive search says so."""
    assert explore(scenario, strategy="exhaustive", runs=100_000).complete


def test_pct_learns_the_number_of_steps_by_itself() -> None:
    """Without ``steps`` the first run is a calibration, and the bug is found soon after."""
    found = find_failure(scenarios.lost_update(), strategy="pct", runs=200)
    assert found.failure is not None
    assert found.runs > 1


def test_random_orders_are_many_and_repeatable() -> None:
    """Five tasks: trio alone gives a handful of orders; 200 seeded runs give more than 80, the same each time."""
    first: list[tuple[int, ...]] = []
    again: list[tuple[int, ...]] = []
    found = explore(scenarios.recording(5, 0, first), strategy=RandomOrder(seed=7), runs=200)
    explore(scenarios.recording(5, 0, again), strategy=RandomOrder(seed=7), runs=200)
    assert first == again
    assert len(set(first)) == found.distinct > 80


def test_a_failing_schedule_is_shrunk_to_what_matters() -> None:
    """Of the many choices of a failing run, those are left that make it fail."""

    async def scenario() -> None:
        order: list[int] = []

        async def work(number: int) -> None:
            for _ in range(5):
                await checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(work, number, name=f"worker {number}")
        assert order.index(2) > order.index(0)

    failure = find_failure(scenario, runs=50).failure
    assert failure is not None
    assert sum(1 for choice in failure.schedule.choices if choice) == 1
    assert failure.turns[0].endswith("worker 2#3 before worker 0#1, worker 1#2")
    with pytest.raises(AssertionError):
        replay(scenario, str(failure.schedule))


@given(st.integers(0, 2**32))
def test_a_shrunk_schedule_fails_again(seed: int) -> None:
    """What is printed is what failed."""
    strategy = RandomOrder(seed, granularity="step")
    failure = find_failure(scenarios.lost_update(), strategy=strategy, runs=20).failure
    if failure is not None:
        with pytest.raises(AssertionError):
            replay(scenarios.lost_update(), failure.schedule)


def test_what_is_found_is_raised_with_its_cause_and_how_to_run_it_again() -> None:
    """``explore`` raises; the scenario's own error is the cause."""
    with pytest.raises(FailingSchedule, match=r"again: quiesce.testing.replay\(.*'q1-") as raised:
        explore(scenarios.lost_update(), strategy="pct", runs=300)
    assert isinstance(raised.value.__cause__, AssertionError)
    assert raised.value.error is raised.value.__cause__


def test_a_deadlock_is_a_finding_that_names_the_waiting_lines() -> None:
    """A run that stands still for good ends at once, and says where."""
    with pytest.raises(FailingSchedule) as raised:
        explore(scenarios.deadlocking)
    assert isinstance(raised.value.error, Deadlock)
    waiting = raised.value.error.waiting
    assert len(waiting) == 2
    assert all("scenarios.py" in line and "wait_then_set" in line for line in waiting)


def test_a_deadlock_under_trios_own_clock_is_found_too() -> None:
    """Nothing moves under a real clock either: a tick from a thread lets the kit see it."""
    assert find_failure(scenarios.deadlocking, clock="real", runs=1).failure is not None


def test_waiting_for_a_thread_is_no_deadlock() -> None:
    """A worker thread may wake a task, so the run goes on until it does."""
    let_go = trio.Event()

    async def scenario() -> None:
        nonlocal let_go
        let_go = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, lambda: trio.from_thread.run_sync(let_go.set))
            await let_go.wait()

    explore(scenario, runs=20)


def test_a_thread_that_never_answers_is_given_up_after_a_while() -> None:
    """``patience`` bounds in real seconds how long a run may stand still."""
    held = threading.Event()

    async def scenario() -> None:
        await trio.to_thread.run_sync(held.wait, abandon_on_cancel=True)

    try:
        failure = find_failure(scenario, runs=1, patience=0.05).failure
    finally:
        held.set()
    assert failure is not None
    assert isinstance(failure.error, Deadlock)


def test_a_scenario_that_spins_is_given_up() -> None:
    """A loop without an end is a finding, not a hang."""

    async def scenario() -> None:
        while True:  # noqa: ASYNC110
            await checkpoint()

    failure = find_failure(scenario, runs=1, max_steps=500).failure
    assert failure is not None
    assert isinstance(failure.error, TooManySteps)


def test_a_task_that_polls_does_not_starve_the_others() -> None:
    """Where one task may run alone, one that waits in a loop lets the others go on in the end."""

    async def scenario() -> None:
        done = False

        async def finish() -> None:
            nonlocal done
            await checkpoint()
            done = True

        async with trio.open_nursery() as nursery:
            nursery.start_soon(finish)
            while not done:  # noqa: ASYNC110
                await checkpoint()

    explore(scenario, strategy=Pct(depth=1), runs=10)


def test_a_scenario_that_depends_on_more_than_order_is_said_to() -> None:
    """What does not fail again is reported as it was, with the reason."""
    generator = random.Random(1)  # noqa: S311 - chance is what is tested
    calls = 0

    async def scenario() -> None:
        nonlocal calls
        calls += 1
        await checkpoint()
        assert calls != 3, generator

    failure = find_failure(scenario, runs=10).failure
    assert failure is not None
    assert failure.run == 3
    assert "depends on more than the order of its tasks" in str(failure)


def test_exploring_inside_a_run_is_refused_with_what_to_do() -> None:
    """Bad use gets a clear error."""

    async def main() -> None:
        explore(scenarios.deadlocking)

    with pytest.raises(RuntimeError, match="call this from a plain function"):
        trio.run(main)


def test_arguments_that_make_no_sense_are_refused() -> None:
    """Bad input gets a clear error."""
    with pytest.raises(ValueError, match="runs must be at least 1"):
        explore(scenarios.deadlocking, runs=0)
    with pytest.raises(ValueError, match="strategy must be 'random'"):
        explore(scenarios.deadlocking, strategy="chaos")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="depth"):
        Pct(depth=0)


def test_an_interrupt_is_not_a_finding() -> None:
    """Ctrl-C ends the exploration."""

    async def scenario() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(scenario)


def test_a_replay_gives_back_what_the_scenario_returns() -> None:
    """A schedule under which nothing fails any more passes."""

    async def scenario() -> str:
        await checkpoint()
        return "value"

    assert replay(scenario, Schedule((), trio_version=trio.__version__)) == "value"


def test_a_replay_under_another_trio_says_so() -> None:
    """The steps of a task may differ between versions of trio."""
    with pytest.warns(ReplayWarning, match=r"made with trio 0\.1\.2, this is trio"), pytest.raises(AssertionError):
        replay(scenarios.lost_update(), "q1-0.1.2-s-" + str(_failing_lost_update()).rsplit("-", 1)[1])


def _failing_lost_update() -> Schedule:
    failure = find_failure(scenarios.lost_update(), strategy="pct", runs=300).failure
    assert failure is not None
    return failure.schedule


def test_a_replay_that_does_not_fit_the_scenario_says_so() -> None:
    """A pass then proves nothing."""

    async def scenario() -> None:
        await checkpoint()

    with pytest.warns(ReplayWarning, match="did not offer the recorded choices"):
        replay(scenario, f"q1-{trio.__version__}-b-0111")


async def stubborn() -> None:
    """Catches everything that it is given, and waits again."""
    while True:
        with contextlib.suppress(BaseException):
            await trio.Event().wait()


async def retrying_cleanup() -> None:
    """Tries to clean up again and again; outside a run, trying fails at once."""
    try:
        with trio.CancelScope(shield=True):
            await trio.Event().wait()
    finally:
        while True:
            try:
                with trio.CancelScope(shield=True):
                    await trio.Event().wait()
            except Exception:  # noqa: BLE001, S112
                continue


@pytest.mark.parametrize("scenario", [stubborn, retrying_cleanup])
def test_what_cannot_be_ended_is_given_up_all_the_same(scenario: scenarios.Scenario) -> None:
    """A deadlock whose tasks catch all that ends them is a finding, not a hang, and nothing of it complains later."""
    failure = find_failure(scenario, runs=1).failure
    assert failure is not None
    assert isinstance(failure.error, Deadlock)
    gc.collect()


def test_a_deadlocked_scenario_cleans_up() -> None:
    """It is cancelled first, so that its own finally clauses run, and end what they started."""
    ended: list[int | None] = []

    async def scenario() -> None:
        process = await trio.lowlevel.open_process([sys.executable, "-c", "import time; time.sleep(60)"])
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await trio.Event().wait()
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                ended.append(await process.wait())

    failure = find_failure(scenario, runs=1, clock="real", patience=0.3).failure
    assert failure is not None
    assert set(ended) == {-9}


def test_a_report_names_a_parent_that_waits_beside_its_children() -> None:
    """Only a task that stands at the end of its nursery is left out."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever, name="child")
            await trio.Event().wait()

    failure = find_failure(scenario, runs=1).failure
    assert failure is not None
    assert isinstance(failure.error, Deadlock)
    assert [line.partition(" at ")[0].rpartition(".")[2] for line in failure.error.waiting] == ["_main", "child"]


@pytest.mark.parametrize("clock", CLOCKS)
def test_waiting_for_a_process_is_no_deadlock(clock: ClockKind) -> None:
    """Under either clock the run goes on while a process may yet wake it: this one takes longer than three ticks."""
    script = "import sys, time; sys.stdin.read(); time.sleep(1)"

    async def scenario() -> None:
        process = await trio.lowlevel.open_process([sys.executable, "-c", script], stdin=subprocess.PIPE)
        assert process.stdin is not None
        await process.stdin.aclose()
        await process.wait()

    explore(scenario, runs=2, clock=clock)


def test_what_is_raised_past_exceptions_is_a_finding_too() -> None:
    """``pytest.fail``, an exit, a ``Cancelled`` that got loose; but not ``pytest.skip``."""

    async def fails() -> None:
        pytest.fail("on purpose")

    async def leaves() -> None:
        sys.exit(3)

    async def skips() -> None:
        pytest.skip("not here")

    for scenario, kind in ((fails, pytest.fail.Exception), (leaves, SystemExit)):
        failure = find_failure(scenario, runs=1).failure
        assert failure is not None
        assert isinstance(failure.error, kind)
    with pytest.raises(pytest.skip.Exception):
        explore(skips)


def test_what_is_no_scenario_is_refused_with_what_one_is() -> None:
    """Bad input gets a clear error before or in the first run."""

    async def takes(number: int) -> None: ...

    async def good() -> None: ...

    for wrong, says in (
        (takes, "takes no arguments"),
        (None, "async function without arguments"),
        (good(), "give the async function itself"),
        (lambda: 3, "returned 3"),
    ):
        with pytest.raises(BadScenarioError, match=says):
            explore(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_strategy_that_picks_nonsense_is_said_to() -> None:
    """Bad input gets a clear error."""

    class Wrong:
        granularity: Granularity = "batch"

        def pickers(self) -> Iterator[Picker]:
            yield lambda point: len(point.options)

    with pytest.raises(ValueError, match="a picker gives a place from 0"):
        explore(scenarios.lost_update(), strategy=Wrong())


def test_an_exhaustive_search_of_a_scenario_that_changes_is_refused() -> None:
    """It cannot say that it is complete: what it was to visit next is no longer there."""
    runs = itertools.count()

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2 + next(runs) % 2):
                nursery.start_soon(checkpoint)

    with pytest.raises(ValueError, match="did not offer the same choices again"):
        explore(scenario, strategy="exhaustive", runs=100)

    shrinking = itertools.count()

    async def shorter_each_time() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2 if next(shrinking) == 0 else 1):
                nursery.start_soon(checkpoint)

    with pytest.raises(ValueError, match="did not offer the same choices again"):
        explore(shorter_each_time, strategy="exhaustive", runs=100)


def test_two_threads_cannot_explore_at_once() -> None:
    """The second is refused, trio is left as it was, and runs in other threads are not touched."""
    scheduler: Any = importlib.import_module("trio._core._run")
    before = scheduler._r  # noqa: SLF001
    raised: list[BaseException] = []

    async def plain() -> None:
        for _ in range(10):
            await checkpoint()

    def other() -> None:
        trio.run(plain)
        try:
            explore(plain, runs=1)
        except RuntimeError as error:
            raised.append(error)

    async def scenario() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    explore(scenario, runs=1)
    assert "another thread explores" in str(raised[0])
    assert scheduler._r is before  # noqa: SLF001


def test_findings_survive_being_pickled() -> None:
    """pytest-xdist, for one, sends them from process to process."""
    failure = find_failure(scenarios.deadlocking, runs=1).failure
    again = pickle.loads(pickle.dumps(failure))  # noqa: S301 - our own
    assert str(again) == str(failure)
    assert isinstance(again.error, Deadlock)


def test_many_tasks_are_ordered_in_bearable_time() -> None:
    """Two thousand tasks in one batch, with little kept of each choice."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2_000):
                nursery.start_soon(checkpoint)

    before = time.monotonic()
    explore(scenario, runs=1)
    assert time.monotonic() - before < 30
