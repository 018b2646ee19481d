"""The recorded scenarios, compared by the rule of ``data/README.md``, in the plain order of tasks and in others."""

from __future__ import annotations

from typing import Any

import pytest

from case_files import load_scenarios
from harness import play
from quiesce.testing import RandomOrder, Schedule, explore, replay

BODY = {"body_enter", "body_exit"}
ORDERS = 20
Case = dict[str, Any]


def ordered(trace: list[Case]) -> list[Case]:
    """What happens along the scheduler's own thread of control: the exact sequence, ticks included."""
    return [event for event in trace if event["ev"] not in BODY and event["ev"] != "cancel"]


def bodies(trace: list[Case]) -> list[tuple[Any, ...]]:
    """Which body, when and how: a set, since bodies interleave by chance."""
    return sorted((e["t"], e["id"], e["ev"], str(e.get("interrupted"))) for e in trace if e["ev"] in BODY)


async def compare(case: Case) -> None:
    """Play a scenario and hold it against its recording."""
    got = await play(case["scenario"])
    assert ordered(got["trace"]) == ordered(case["trace"])
    assert bodies(got["trace"]) == bodies(case["trace"])
    assert got["end"] == case["end"]


scenarios = pytest.mark.parametrize("case", [pytest.param(c, id=c["scenario"]["name"]) for c in load_scenarios()])


@scenarios
def test_a_scenario_plays_as_recorded(case: Case) -> None:
    """The trace and the end of the turn are the recorded ones."""
    replay(lambda: compare(case), Schedule(()))


@scenarios
def test_a_scenario_plays_as_recorded_whatever_the_task_order(case: Case) -> None:
    """The order of tasks changes nothing: 20 random ones, each repeatable."""
    explore(lambda: compare(case), strategy=RandomOrder(), runs=ORDERS)
