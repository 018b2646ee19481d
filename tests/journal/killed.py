"""The program of the tests that kill: a process that forks a fresh run for each line it is sent.

Started once, since importing takes far longer than a run. A line is JSON: the journal's path, the folder for marker
files, the durability and the number of a random order. Each run writes a line to its output for all that it does, so
that whoever reads may kill it after any of them.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import trio

from quiesce import PARALLEL, Claims, Output, Registry, RunContext, ToolCall, define_tool, open_runtime
from quiesce.journal import Event, SqliteJournal, open_sqlite_journal

CALLS = 12


def tell(*words: object) -> None:
    """One line in one write, so that a kill leaves no half of it."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Telling:
    """A SQLite journal that tells what it was given and what it made durable."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self._count = 0

    def append(self, event: Event) -> None:
        self._journal.append(event)
        self._count += 1
        tell("appended", self._count)

    async def flush(self) -> None:
        count = self._count
        tell("flushing", count)
        await self._journal.flush()
        tell("flushed", count)


def registry_with(markers: Path, order: random.Random) -> Registry:
    """Tools whose bodies leave a file when they begin and another when they end."""
    registry = Registry()

    async def mark(arguments: dict[str, Any], run: RunContext) -> str:
        name = arguments["name"]
        (markers / f"{name}.begun").touch()
        tell("begun", name)
        for _ in range(order.randrange(4)):
            await trio.lowlevel.checkpoint()
        for number in range(arguments.get("calls", 0)):
            await run.call("mark", {"name": f"{name}:{number}"})
        (markers / f"{name}.ended").touch()
        tell("ended", name)
        return str(name)

    def claims(arguments: dict[str, Any]) -> Claims:
        return PARALLEL if arguments["name"] != "5" else Claims(writes={"key"})

    registry.register(
        define_tool(
            "mark", description="d", parameters={}, output=Output({"type": "json"}), execute=mark, claims=claims
        )
    )
    return registry


async def run(path: str, markers: str, durability: Any, seed: int) -> None:
    """Run one batch of calls, some of which make further calls."""
    order = random.Random(seed)  # noqa: S311
    async with (
        open_sqlite_journal(path, write_behind=order.choice([0, 0.001])) as journal,
        open_runtime(
            registry_with(Path(markers), order), journal=Telling(journal), durability=durability, max_parallel=4
        ) as runtime,
    ):
        calls = [ToolCall(f"c{n}", "mark", {"name": str(n), "calls": order.randrange(3)}) for n in range(CALLS)]
        batch = runtime.batch(calls)
        await batch.run()
    tell("closed")


def serve() -> None:
    """Fork a run for each line of input; tell its process id first, and that it is over last.

    It is reaped when another line comes: until then its process id is nobody else's, and may be killed.
    """
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            tell("pid", os.getpid())
            trio.run(run, *json.loads(line))
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        tell("over")
        sys.stdin.readline()
        os.waitpid(child, 0)


if __name__ == "__main__":
    serve()
