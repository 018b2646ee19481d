"""Hypothesis draws the order of tasks: it shrinks with the example, and state machines get one run of trio each."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import Bundle, run_state_machine_as_test
from trio.lowlevel import checkpoint

import scenarios
from quiesce.testing import Deadlock, DrawnSchedule, TooManySteps, replay, schedules
from quiesce.testing.stateful import TrioStateMachine, initialize, invariant, precondition, rule

quick = settings(database=None, deadline=None)


def _failure_of(test: Callable[[], object]) -> BaseException:
    with pytest.raises((AssertionError, ExceptionGroup)) as raised:  # noqa: ASYNC401
        test()
    return raised.value


async def _first_of(tasks: int) -> list[int]:
    """The order in which tasks that each wait once come to an end."""
    order: list[int] = []

    async def work(number: int) -> None:
        await checkpoint()
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(work, number)
    return order


def test_examples_differ_in_their_order_of_tasks() -> None:
    """Inside ``@given`` trio's seed is pinned; the drawn schedule is what varies."""
    seen: set[tuple[int, ...]] = set()

    @quick
    @given(schedules())
    def test(schedule: DrawnSchedule) -> None:
        schedule.run(note_order)

    async def note_order() -> None:
        seen.add(tuple(await _first_of(3)))

    test()
    assert seen == set(itertools.permutations(range(3)))


def test_shrinking_the_example_shrinks_the_schedule() -> None:
    """Of the order nothing is left but what makes the example fail, and it is printed as a replay string."""
    last: list[DrawnSchedule] = []

    @quick
    @given(schedules(), st.integers(2, 6))
    def test(schedule: DrawnSchedule, tasks: int) -> None:
        last.append(schedule)
        schedule.run(scenario, tasks)

    async def scenario(tasks: int) -> None:
        order = await _first_of(tasks)
        assert order.index(1) > order.index(0)

    failure = _failure_of(test)
    shown = last[-1].replay_string
    assert shown is not None
    assert shown.endswith("1")
    assert len(shown.rpartition("-")[2]) <= 2
    notes = "\n".join(failure.__notes__)
    assert f"schedule: {shown}" in notes
    assert "tasks=2" in notes
    with pytest.raises(AssertionError):
        replay(lambda: scenario(2), shown)


def test_the_database_replays_the_schedule() -> None:
    """A failing schedule is tried first the next time."""
    database = InMemoryExampleDatabase()
    tried: list[str | None] = []

    @settings(database=database, deadline=None, max_examples=300)
    @given(schedules())
    def test(schedule: DrawnSchedule) -> None:
        try:
            order = schedule.run(_first_of, 4)
        finally:
            tried.append(schedule.replay_string)
        assert order != [2, 0, 3, 1]

    _failure_of(test)
    shrunk = tried[-1]
    tried.clear()
    _failure_of(test)
    assert tried[0] == shrunk


def test_a_deadlock_is_what_the_example_fails_with() -> None:
    """What stands still fails at once, with the lines that wait."""

    @quick
    @given(schedules())
    def test(schedule: DrawnSchedule) -> None:
        schedule.run(scenarios.deadlocking)

    with pytest.raises(Deadlock, match="wait_then_set"):
        test()


class Counter:
    """A counter that loses an update when two additions overlap, and the number it should have."""

    def __init__(self) -> None:
        self.value = 0
        self.wanted = 0

    async def add(self) -> None:
        self.wanted += 1
        read = self.value
        await checkpoint()
        self.value = read + 1


def test_a_state_machine_keeps_one_run_for_all_its_rules() -> None:
    """A background task lives from rule to rule, moves only within rules, and is ended with the example."""
    ended: list[bool] = []
    steps: list[int] = []

    class Machine(TrioStateMachine):
        numbers: Bundle[int] = Bundle("numbers")

        def __init__(self) -> None:
            super().__init__()
            self.ticks = 0
            self.root: trio.lowlevel.Task | None = None

        async def tick(self) -> None:
            try:
                while True:
                    await trio.sleep(1)
                    self.ticks += 1
            finally:
                ended.append(True)

        @initialize()
        async def start(self) -> None:
            self.root = trio.lowlevel.current_root_task()
            self.nursery.start_soon(self.tick)

        @rule(target=numbers, seconds=st.integers(0, 3))
        async def wait(self, seconds: int) -> int:
            assert trio.lowlevel.current_root_task() is self.root
            before = self.ticks
            await trio.sleep(seconds)
            assert seconds - 1 <= self.ticks - before <= seconds + 1
            return seconds

        @rule(number=numbers)
        async def use(self, number: int) -> None:
            assert number in range(4)
            steps.append(number)

        @precondition(lambda self: self.ticks > 1)
        @rule()
        def look(self) -> None:
            assert self.ticks > 1

        @invariant()
        async def time_passes_in_rules_only(self) -> None:
            before = self.ticks
            await checkpoint()
            assert self.ticks - before <= 1

        async def close(self) -> None:
            await checkpoint()

    run_state_machine_as_test(Machine, settings=settings(quick, max_examples=30, stateful_step_count=10))
    assert len(ended) >= 30
    assert steps


def test_a_state_machine_finds_and_shrinks_an_interleaving() -> None:
    """The order of tasks is drawn for each rule, and shrunk with the steps."""

    class Machine(TrioStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.counter = Counter()

        @rule(count=st.integers(1, 3))
        async def add(self, count: int) -> None:
            async with trio.open_nursery() as nursery:
                for place in range(count):
                    nursery.start_soon(self.add_later, place)

        async def add_later(self, place: int) -> None:
            for _ in range(place):
                await checkpoint()
            await self.counter.add()

        @invariant()
        def nothing_is_lost(self) -> None:
            assert self.counter.value == self.counter.wanted

    failure = _failure_of(lambda: run_state_machine_as_test(Machine, settings=quick))
    text = "\n".join(failure.__notes__)
    assert text.count("state.add(") == 1
    assert "count=2" in text


def test_a_failing_background_task_fails_the_example() -> None:
    """Nothing that a machine's nursery runs is lost."""

    class Machine(TrioStateMachine):
        async def fail(self) -> None:
            await trio.sleep(2)
            msg = "in the background"
            raise AssertionError(msg)

        @initialize()
        async def start(self) -> None:
            self.nursery.start_soon(self.fail)

        @rule()
        async def wait(self) -> None:
            await trio.sleep(1)

    failure = _failure_of(lambda: run_state_machine_as_test(Machine, settings=quick))
    assert "in the background" in "".join(traceback.format_exception(failure))


def test_a_rule_that_waits_for_ever_is_a_deadlock() -> None:
    """It ends at once with the line that waits."""

    class Machine(TrioStateMachine):
        @rule()
        async def wait(self) -> None:
            await trio.Event().wait()

    with pytest.raises(Deadlock, match="in test_a_rule_that_waits_for_ever"):
        run_state_machine_as_test(Machine, settings=quick)


def test_plain_rules_stay_plain() -> None:
    """A rule that is not async is Hypothesis' own."""
    seen: list[Any] = []

    class Machine(TrioStateMachine):
        @rule(x=st.just(3))
        def note(self, x: int) -> None:
            seen.append(x)
            assert not trio.lowlevel.in_trio_task()

        @invariant(check_during_init=True)
        def always(self) -> None:
            assert set(seen) <= {3}

    run_state_machine_as_test(Machine, settings=settings(quick, max_examples=5))
    assert seen


def test_a_rule_that_spins_fails_after_so_many_steps() -> None:
    """The number is an attribute of the machine."""

    class Machine(TrioStateMachine):
        max_steps = 300

        @rule()
        async def spin(self) -> None:
            while True:  # noqa: ASYNC110
                await checkpoint()

    with pytest.raises(TooManySteps, match="300 steps"):
        run_state_machine_as_test(Machine, settings=settings(quick, max_examples=2))


def test_a_machine_that_overrides_teardown_is_refused() -> None:
    """It would leave its run open, and every later one would fail."""
    with pytest.raises(TypeError, match=r"override the async method close\(\) instead"):

        class Machine(TrioStateMachine):  # pyright: ignore[reportUnusedClass]
            def teardown(self) -> None: ...


def test_decorators_may_stand_in_any_order() -> None:
    """``precondition`` below ``rule``, and a parameter of any name."""
    seen: list[int] = []

    class Machine(TrioStateMachine):
        @rule(schedule=st.just(3))
        @precondition(lambda self: True)
        async def note(self, schedule: int) -> None:
            await checkpoint()
            seen.append(schedule)

    run_state_machine_as_test(Machine, settings=settings(quick, max_examples=3))
    assert set(seen) == {3}
