"""The pytest plugin, used as its users do: in a pytest of its own, beside pytest-trio and pytest-xdist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

HEAD = """
import pytest
import trio
from trio.lowlevel import checkpoint
from quiesce.testing import Exhaustive, Pct

async def finishing_order(tasks):
    order = []
    async def work(number):
        await checkpoint()
        order.append(number)
    async with trio.open_nursery() as nursery:
        for number in range(tasks):
            nursery.start_soon(work, number)
    return order
"""
FINDS = """
@pytest.fixture
async def things():
    await checkpoint()
    yield []

@pytest.mark.schedules(30)
async def test_order(things):
    things += await finishing_order(3)
    assert things != [1, 0, 2]
"""


def _pytest(folder: Path, code: str, *options: str) -> str:
    """Run pytest on some tests with warnings as errors, and give what it prints."""
    (folder / "test_it.py").write_text(HEAD + code)
    command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_a_marked_test_becomes_many_and_a_failing_one_says_how_to_repeat_it(tmp_path: Path) -> None:
    """With pytest-trio, its async fixtures set up anew for each order; the printed command fails alone."""
    printed = _pytest(tmp_path, FINDS, "-o", "trio_mode=true")
    failed = re.search(r"(\d+) failed, (\d+) passed", printed)
    assert failed is not None, printed
    assert int(failed[1]) + int(failed[2]) == 30
    command = re.search(r'pytest "test_it.py::test_order\[replay\]" (--schedule-replay=\S+)', printed)
    assert command is not None, printed
    again = _pytest(tmp_path, FINDS, "-o", "trio_mode=true", command[1])
    assert "test_order[replay]" in again
    assert "1 failed in" in again


def test_the_orders_are_the_same_when_xdist_spreads_them(tmp_path: Path) -> None:
    """Which tests fail does not depend on where they run."""
    alone = _pytest(tmp_path, FINDS, "-o", "trio_mode=true", "-q")
    spread = _pytest(tmp_path, FINDS, "-o", "trio_mode=true", "-q", "-n", "2")

    def failed(printed: str) -> set[str]:
        return set(re.findall(r"FAILED (\S+)", printed))

    assert failed(alone) == failed(spread) != set()


def test_without_pytest_trio_the_plugin_runs_async_tests_itself(tmp_path: Path) -> None:
    """On a virtual clock: the test below would take ten seconds."""
    code = """
@pytest.mark.schedules(5)
async def test_time(tmp_path):
    begun = trio.current_time()
    await trio.sleep(10)
    assert trio.current_time() - begun == 10
    assert tmp_path.is_dir()
"""
    assert "5 passed" in _pytest(tmp_path, code, "-p", "no:trio")
    assert "5 passed" in _pytest(tmp_path, code), "a test that is not pytest-trio's own"


def test_a_test_that_stands_still_fails_with_the_line(tmp_path: Path) -> None:
    """A deadlock on a virtual clock ends the test at once, and the session goes on without a complaint."""
    code = """
@pytest.mark.schedules(2)
async def test_still(virtual_clock):
    await trio.Event().wait()

async def test_after():
    await checkpoint()
"""
    printed = _pytest(tmp_path, code, "-o", "trio_mode=true")
    assert "2 failed, 1 passed" in printed
    assert "Deadlock: every task waits" in printed
    assert re.search(r"at test_it.py:\d+ in test_still", printed)


def test_options_set_the_number_and_the_seed(tmp_path: Path) -> None:
    """``--schedules`` and ``--schedule-seed`` overrule the mark."""
    code = "@pytest.mark.schedules\nasync def test_it():\n    print('order', await finishing_order(4))\n"
    orders: list[list[str]] = []
    for seed in ("1", "1", "2"):
        printed = _pytest(tmp_path, code, "-rP", "--schedules=7", f"--schedule-seed={seed}")
        assert "7 passed" in printed
        orders.append(re.findall(r"order (\[.*\])", printed))
    assert orders[0] == orders[1] != orders[2]
    assert "20 passed" in _pytest(tmp_path, code)


def test_a_test_may_say_that_it_leaves_nothing_over(tmp_path: Path) -> None:
    """The fixture names what is left, and the line that made it."""
    code = """
KEPT = []

def test_clean(no_leftovers, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "half.tmp").write_text("x")

def test_leaky(no_leftovers):
    KEPT.append(open("/dev/null"))

def test_after():
    KEPT.pop().close()
"""
    printed = _pytest(tmp_path, code)
    assert "2 passed" in printed or "3 passed" in printed, printed
    assert "1 error" in printed
    assert re.search(r"descriptor left over: .*/dev/null.*test_it.py:\d+ in test_leaky", printed)


def test_other_tests_are_left_alone(tmp_path: Path) -> None:
    """No mark: nothing of trio's is replaced."""
    code = """
import trio._core._run as scheduler
before = scheduler._r

def test_plain():
    assert scheduler._r is before

@pytest.mark.schedules(1)
def test_marked():
    assert scheduler._r is not before

def test_after():
    assert scheduler._r is before
"""
    assert "3 passed" in _pytest(tmp_path, code)


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("0", "n must be at least 1"),
        ("strategy=Exhaustive()", "each order is a test that may run elsewhere"),
        ("strategy=Pct()", "each order is a test that may run elsewhere"),
        ("times=3", "unexpected keyword argument 'times'"),
    ],
)
def test_a_wrong_mark_is_refused_with_what_it_is(tmp_path: Path, mark: str, says: str) -> None:
    """Bad input gets a clear error."""
    printed = _pytest(tmp_path, f"@pytest.mark.schedules({mark})\nasync def test_it(): ...\n")
    assert says in printed
    assert "schedules(n=20" in printed


def test_pct_orders_may_be_marked_with_their_number_of_steps(tmp_path: Path) -> None:
    """With ``steps`` known, each run stands for itself."""
    code = "@pytest.mark.schedules(9, strategy=Pct(steps=10, depth=2))\nasync def test_it(): await finishing_order(2)\n"
    assert "9 passed" in _pytest(tmp_path, code)


def test_a_replay_string_of_another_trio_warns(tmp_path: Path) -> None:
    """The steps of a task may differ between versions of trio; nonsense is refused before any test runs."""
    code = "@pytest.mark.schedules\nasync def test_it(): await finishing_order(2)\n"
    assert "1 passed" in _pytest(tmp_path, code, f"--schedule-replay=q1-{trio.__version__}-b-1")
    assert "made with trio 0.1.2" in _pytest(tmp_path, code, "-W", "default", "--schedule-replay=q1-0.1.2-b-1")


def test_a_parametrized_test_is_replayed_by_the_command_that_is_printed(tmp_path: Path) -> None:
    """Each variant has its own choices, whichever others run; the command names the variant."""
    code = """
@pytest.mark.schedules(6)
@pytest.mark.parametrize("which", ["a", "b"])
async def test_it(which):
    order = await finishing_order(3)
    assert which == "a" or order == sorted(order)
"""
    everything = _pytest(tmp_path, code)
    commands = re.findall(r'pytest "(\S+)" (--schedule-replay=\S+)', everything)
    assert commands
    for test, option in commands:
        assert "replay" in test
        (tmp_path / "test_it.py").write_text(HEAD + code)
        printed = _pytest_only(tmp_path, test, option)
        assert "1 failed" in printed, printed
    failed = re.findall(r"FAILED (\S+)", everything)
    assert re.findall(r"FAILED (\S+)", _pytest_only(tmp_path, failed[-1])) == failed[-1:]


def _pytest_only(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_a_marked_test_that_stands_still_on_the_real_clock_fails(tmp_path: Path) -> None:
    """Also one that runs trio itself."""
    code = """
@pytest.mark.trio
@pytest.mark.schedules(1)
async def test_async():
    await trio.sleep_forever()

@pytest.mark.schedules(1)
def test_sync():
    trio.run(trio.sleep_forever)
"""
    printed = _pytest(tmp_path, code)
    assert "2 failed" in printed
    assert printed.count("Deadlock: every task waits") >= 2


def test_the_clock_of_a_fixture_is_the_runs_clock_and_defaults_stay(tmp_path: Path) -> None:
    """Where the plugin runs the test itself."""
    code = """
@pytest.mark.schedules(2)
async def test_it(virtual_clock, number=3):
    assert trio.lowlevel.current_clock() is virtual_clock
    assert number == 3
"""
    assert "2 passed" in _pytest(tmp_path, code)


def test_a_mark_without_effect_warns(tmp_path: Path) -> None:
    """``unittest`` cases cannot be made into many tests."""
    code = """
import unittest

class TestIt(unittest.TestCase):
    @pytest.mark.schedules(5)
    def test_it(self): ...
"""
    assert "has no effect on this kind of test" in _pytest(tmp_path, code, "-W", "default")
