"""The page of classic bugs: what it says of each is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trio

from quiesce.testing import Pct, RandomOrder, Schedule, explore, find_failure, replay

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_classic_bugs", DOCS / "_classic_bugs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


page = _module()
bugs = page.scenarios()
TEXT = (DOCS / "classic-bugs.md").read_text(encoding="utf-8")
ROWS = {match[1]: match[2].split(" | ") for match in re.finditer(r"^\| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE)}
STRINGS = dict(re.findall(r"^show\((\w+)\)\n```\n```text\n(?:turn .*\n|\n)*(q1-\S+)$", TEXT, re.MULTILINE))
bug_of = pytest.mark.parametrize("name", list(bugs))


def test_there_are_seven_each_with_its_string_and_its_row() -> None:
    """The page, its table and the programs are of the same seven bugs."""
    assert len(bugs) == 7
    assert set(bugs) == set(ROWS) == set(STRINGS)


@bug_of
def test_the_replay_string_of_the_page_fails_again(name: str) -> None:
    """It is of this version of trio, and shows the bug by itself."""
    assert Schedule.parse(STRINGS[name]).trio_version == trio.__version__
    with pytest.raises((AssertionError, ExceptionGroup)):  # noqa: ASYNC401
        replay(bugs[name], STRINGS[name])


@bug_of
def test_the_kit_finds_it_within_the_runs_of_the_table(name: str) -> None:
    """The worst of 15 seeds is in the table; here one of them is run again for each strategy that finds it."""
    for cell, make in zip(ROWS[name][1:], page.STRATEGIES.values(), strict=True):
        if cell != "-":
            worst = int(cell.split(", ")[1])
            assert find_failure(bugs[name], strategy=make(3), runs=worst).failure is not None


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row[0] == "0"])
def test_two_hundred_plain_runs_do_not_meet_it(name: str) -> None:
    """And no order that trio alone can take shows it either, as far as 300 random ones say."""
    assert page.plain_failures(bugs[name]) == 0
    explore(bugs[name], strategy=RandomOrder(), runs=300)


def test_at_least_three_survive_plain_repetition() -> None:
    """What the kit is for."""
    assert sum(row[0] == "0" for row in ROWS.values()) >= 3


def test_a_cured_program_has_no_failing_schedule() -> None:
    """The kit does not cry wolf: an event that is set last is found fault with by no strategy."""

    async def event_in_time() -> None:
        config: dict[str, int] = {}
        loaded = trio.Event()

        async def load() -> None:
            await trio.lowlevel.checkpoint()
            config["port"] = 80
            loaded.set()

        async def serve() -> None:
            await loaded.wait()
            assert "port" in config

        async with trio.open_nursery() as nursery:
            nursery.start_soon(load)
            nursery.start_soon(serve)

    explore(event_in_time, strategy=Pct(3), runs=300)
    explore(event_in_time, strategy=RandomOrder(granularity="step"), runs=300)
    assert explore(event_in_time, strategy="exhaustive", runs=10_000).complete
