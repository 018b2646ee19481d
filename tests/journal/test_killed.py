"""A process killed with SIGKILL at any moment: a sound file, nothing flushed is lost, and repair tells the truth."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from quiesce import Success
from quiesce.journal import (
    TOOL_NOT_STARTED,
    BatchStart,
    ToolResult,
    batches,
    read_events,
    rebuild_outcomes,
    repair,
    replay,
)
from quiesce.testing import check_trace

PROGRAM = Path(__file__).with_name("killed.py")
MOST_LINES = 150
"""About as many as a whole run under ``dispatch`` tells."""


@attrs.frozen
class Killed:
    """A run that was killed.

    Attributes:
        path: Its journal.
        flushed: How many events it knew to be durable.
        begun: The names of the calls whose bodies left the mark of their beginning.
        ended: Likewise of their end.
        whole: Whether it came to its end before it could be killed.
    """

    path: Path
    flushed: int
    begun: frozenset[str]
    ended: frozenset[str]
    whole: bool


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    """The process that forks a fresh run for each line."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def kill_a_run(server: subprocess.Popen[str], folder: Path, durability: str, seed: int) -> Killed:
    """Start a run and kill it after a random number of the lines that it tells; it is elsewhere by then."""
    assert server.stdin is not None
    assert server.stdout is not None
    order = random.Random(seed)  # noqa: S311
    path, markers = folder / "journal.db", folder / "markers"
    markers.mkdir(parents=True)
    server.stdin.write(json.dumps([str(path), str(markers), durability, seed]) + "\n")
    server.stdin.flush()
    pid = int(server.stdout.readline().removeprefix("pid "))
    lines: list[str] = []
    for _ in range(order.randrange(MOST_LINES)):
        lines.append(server.stdout.readline())
        if lines[-1] == "over\n":
            break
    # A little later, so that it lands within a write as often as between two.
    sum(range(order.randrange(30_000)))
    os.kill(pid, signal.SIGKILL)
    while not lines or lines[-1] != "over\n":
        lines.append(server.stdout.readline())
    server.stdin.write("reap it\n")
    server.stdin.flush()
    flushed = [int(line.split()[1]) for line in lines if line.startswith("flushed")]
    return Killed(
        path=path,
        flushed=max(flushed, default=0),
        begun=frozenset(file.stem for file in markers.glob("*.begun")),
        ended=frozenset(file.stem for file in markers.glob("*.ended")),
        whole="closed\n" in lines,
    )


def judge(killed: Killed, durability: str) -> int:
    """Check the file of a killed run; gives how many calls were said to have never run."""
    if not killed.path.exists():
        assert not killed.flushed
        return 0
    before = read_events(killed.path)
    assert len(before) >= killed.flushed, "what was flushed is there"
    check_trace(before)
    appended = repair(killed.path)
    assert repair(killed.path) == []
    after = read_events(killed.path)
    assert after == before + appended
    with closing(sqlite3.connect(killed.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    never = 0
    names: dict[str, str] = {}
    for event in after:
        if isinstance(event, BatchStart):
            names.update({f"{event.batch}:{n}": str(n) for n in range(len(event.calls))})
        elif not isinstance(event, ToolResult):
            continue
        elif event.error is None:
            assert event.value in killed.ended, "what finished has left its mark"
        elif event.error.code == TOOL_NOT_STARTED:
            never += 1
            assert durability == "dispatch"
            assert names[event.key] not in killed.begun, "a body that is said to have never run has left its mark"
    for replayed in replay(after):
        assert replayed.complete
        assert len(rebuild_outcomes(after)[replayed.batch]) == len(replayed.requests)
        assert replayed.status in ("completed", "repaired")
        if replayed.status == "completed":
            assert all(isinstance(outcome, Success) for outcome in replayed.outcomes)
    if killed.whole:
        assert [summary.status for summary in batches(killed.path)] == ["completed"]
    if durability == "dispatch":
        started = {event.request.arguments["name"] for event in before if event.type == "tool/call"}  # type: ignore[union-attr,call-overload,index]
        assert killed.begun <= started, "a body began only once its start was durable"
    return never


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each run is a fork")
@pytest.mark.parametrize(("durability", "runs"), [("dispatch", 50), ("settled", 25)])
def test_a_killed_process_leaves_a_sound_file_and_the_truth(
    server: subprocess.Popen[str], tmp_path: Path, durability: str, runs: int
) -> None:
    """Promise 8, at random points: under ``dispatch``, "never ran" is never said of a body that began; under
    ``settled`` it is never said at all. No file is corrupt, and every event that was flushed is in it.
    """  # noqa: D205
    never: list[int] = []
    whole = 0
    for seed in range(runs):
        killed = kill_a_run(server, tmp_path / str(seed), durability, seed)
        whole += killed.whole
        never.append(judge(killed, durability))
    assert (sum(never) > 0) == (durability == "dispatch")
    assert whole < runs / 2, "most runs were killed before their end"
