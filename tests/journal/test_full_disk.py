"""A disk that is full: an honest fault, a file that stays sound, and nothing lost once there is room again."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from quiesce import PARALLEL, RunContext, open_runtime
from quiesce.errors import JournalFileError, JournalWriteError, SchedulerFault
from quiesce.journal import BatchEnd, ToolResult, open_sqlite_journal, read_events, rebuild_outcomes, repair, replay
from quiesce.testing import check_trace
from toolbox import calls_of, registry_of

CALLS = 200
NAMES = [f"c{n}" for n in range(CALLS)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


def assert_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("durability", ["settled", "dispatch"])
@pytest.mark.parametrize("room_again", [False, True])
async def test_a_full_disk_is_a_fault_with_honest_statuses(small_disk: Path, durability: str, room_again: bool) -> None:
    """What is committed, what started and what never ran is told; the file holds all that was durable."""
    path = small_disk / "journal.db"
    invoked: list[str] = []
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))

    async def body(_: object, run: RunContext) -> str:  # noqa: ASYNC124
        invoked.append(run.call_id)
        return "x" * 10_000

    async def run() -> None:
        async with open_sqlite_journal(path, write_behind=math.inf) as journal:
            async with open_runtime(
                registry_of(PARALLEL, t=body),
                journal=journal,
                durability=durability,  # type: ignore[arg-type]
            ) as runtime:
                try:
                    await runtime.run(calls_of(*["t"] * CALLS))
                except SchedulerFault as error:
                    fault.append(error)
            with pytest.raises(JournalWriteError, match=r"cannot be written: .*; free some space"):
                await journal.flush()
            assert_sound(path)
            if room_again:
                ballast.unlink()
                for _ in range(2):
                    await journal.flush()

    fault: list[SchedulerFault] = []
    if room_again and durability == "dispatch":
        await run()
    else:
        # Nothing is lost in silence: whoever closes the journal is told, too.
        with pytest.raises(JournalFileError, match="cannot be written"):
            await run()
    (raised,) = fault
    assert isinstance(raised.__cause__, JournalWriteError)
    statuses = {status.call_id: status.state for status in raised.statuses}
    assert list(statuses) == NAMES
    assert {name for name, state in statuses.items() if state != "never_started"} == set(invoked)
    assert_sound(path)
    events = read_events(path)
    check_trace(events)
    if room_again and durability == "dispatch":
        assert [event.call_id for event in events if isinstance(event, ToolResult)] == [
            name for name, state in statuses.items() if state == "committed"
        ]
        assert isinstance(events[-1], BatchEnd)
        assert events[-1].status == "fault"
    else:
        ballast.unlink(missing_ok=True)
        repair(path)
        for replayed in replay(path):
            assert replayed.complete
            assert replayed.status == "repaired"
            never = {o.call_id for o in replayed.outcomes if o.code == "TOOL_NOT_STARTED"}
            assert not never & set(invoked)
            assert bool(never) == (durability == "dispatch")


PROGRAM = """
import json, math, resource, sys
import trio
from quiesce import *
from quiesce.errors import SchedulerFault
from quiesce.journal import open_sqlite_journal

path, calls = sys.argv[1], int(sys.argv[2])
registry, invoked = Registry(), []

@registry.tool(concurrency=PARALLEL)
async def t(name: str) -> str:
    '''Say much.

    Args:
        name: Of the call.
    '''
    invoked.append(name)
    return "x" * 10_000

async def main():
    async with open_sqlite_journal(path, write_behind=math.inf) as journal:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        try:
            await run_calls(registry, [ToolCall(f"c{n}", "t", {"name": f"c{n}"}) for n in range(calls)],
                            journal=journal, durability="dispatch")
        except SchedulerFault as fault:
            statuses = [[status.call_id, status.state] for status in fault.statuses]
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            await journal.flush()
            print(json.dumps([str(fault), statuses, invoked]))

trio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit for the size of files")
def test_a_file_that_may_not_grow_is_a_fault_and_goes_on_when_it_may(tmp_path: Path) -> None:
    """The same by a limit of the process, which needs no rights: fault, sound file, and the rest is written later."""
    path = tmp_path / "journal.db"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(CALLS)], capture_output=True, text=True, check=True
    )
    message, statuses, invoked = json.loads(done.stdout)
    assert "cannot be written" in message
    assert [name for name, _ in statuses] == NAMES
    assert [name for name, state in statuses if state != "never_started"] == invoked
    assert 0 < len(invoked) < CALLS
    assert_sound(path)
    events = read_events(path)
    check_trace(events)
    ((_, outcomes),) = rebuild_outcomes(events).items()
    assert [outcome.call_id for outcome in outcomes] == [name for name, state in statuses if state == "committed"]
    assert isinstance(events[-1], BatchEnd)
    assert events[-1].status == "fault"


def test_a_new_journal_on_a_full_disk_leaves_nothing_half_made(small_disk: Path) -> None:
    """It is published whole or not at all."""
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass

    async def main() -> None:
        async with open_sqlite_journal(small_disk / "journal.db"):
            raise AssertionError

    with pytest.raises(JournalFileError):
        trio.run(main)
    assert {entry.name for entry in small_disk.iterdir()} <= {"ballast", "journal.db-lock"}
    ballast.unlink()

    async def again() -> None:
        async with open_sqlite_journal(small_disk / "journal.db"):
            pass

    trio.run(again)
