"""The recorded scenarios, compared by the rule of ``data/README.md``, plainly and under seeded task orders."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from case_files import load_scenarios
from counting import restored_schedule, seed_schedule
from harness import run_scenario

BODY = {"body_enter", "body_exit"}
SEEDS = 20
Case = dict[str, Any]


def ordered(trace: list[Case]) -> list[Case]:
    """What happens along the scheduler's own thread of control: the exact sequence, ticks included."""
    return [event for event in trace if event["ev"] not in BODY and event["ev"] != "cancel"]


def bodies(trace: list[Case]) -> list[tuple[Any, ...]]:
    """Which body, when and how: a set, since bodies interleave by chance."""
    return sorted((e["t"], e["id"], e["ev"], str(e.get("interrupted"))) for e in trace if e["ev"] in BODY)


def compare(case: Case) -> None:
    """Play a scenario and hold it against its recording."""
    got = run_scenario(case["scenario"])
    assert ordered(got["trace"]) == ordered(case["trace"])
    assert bodies(got["trace"]) == bodies(case["trace"])
    assert got["end"] == case["end"]


scenarios = pytest.mark.parametrize("case", [pytest.param(c, id=c["scenario"]["name"]) for c in load_scenarios()])


@scenarios
def test_a_scenario_plays_as_recorded(case: Case) -> None:
    """The trace and the end of the turn are the recorded ones."""
    compare(case)


@scenarios
def test_a_scenario_plays_as_recorded_whatever_the_task_order(case: Case) -> None:
    """Task scheduling by chance changes nothing: 20 seeds of trio's private generator."""
    with restored_schedule():
        for seed in range(SEEDS):
            if not seed_schedule(seed):
                pytest.skip("this trio no longer has the private flag and generator that seed its task order")
            compare(case)


def test_the_seeds_give_different_task_orders() -> None:
    """The twenty seeds are not one: without the flag trio only reverses a batch of tasks or not."""
    orders: set[tuple[int, ...]] = set()

    async def five() -> None:
        order: list[int] = []

        async def one(number: int) -> None:
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(one, number)
        orders.add(tuple(order))

    with restored_schedule():
        for seed in range(SEEDS):
            if not seed_schedule(seed):
                pytest.skip("this trio no longer has the private flag and generator that seed its task order")
            trio.run(five)
    assert len(orders) > 10
