"""The built-in tools in batches: what overlaps, and what is left when a batch is cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from quiesce import Batch, Effect, Registry, ToolCall, open_runtime, run_calls
from quiesce.tools import builtin_tools

SignalFrom = Callable[[str], Callable[[], Awaitable[str]]]


def registry_for(workspace: Path, **options: Path) -> Registry:
    """A registry with all the built-in tools."""
    registry = Registry()
    for definition in builtin_tools(workspace, grace=0.1, **options):
        registry.register(definition)
    return registry


async def test_searches_overlap(tmp_path: Path) -> None:
    """Two searches that wait for each other both end, so they run side by side."""
    program = tmp_path / "fake-rg"
    program.write_text(f"#!/bin/bash\ncd {tmp_path}; mkdir first 2> /dev/null && read < meet || echo > meet\nexit 1\n")
    program.chmod(0o755)
    calls = [ToolCall("c1", "bash", {"command": "mkfifo meet", "description": "Make a FIFO"})]
    calls += [ToolCall("c2", "glob", {"pattern": "*"}), ToolCall("c3", "grep", {"pattern": "x"})]
    with trio.fail_after(30):
        outcomes = await run_calls(registry_for(tmp_path, ripgrep=program), calls)
    assert [outcome.text for outcome in outcomes] == ["(no output)", "No files found", "No matches found"]


async def test_a_cancelled_batch_is_settled_when_no_process_is_left(tmp_path: Path, signal_from: SignalFrom) -> None:
    """The command may have done something, the call after it has not begun; the fixture looks for processes."""
    ready = signal_from("ready")
    script = "trap '' TERM; (trap '' TERM; sleep 60) & echo > ready; sleep 60"
    calls = [
        ToolCall("c1", "bash", {"command": script, "description": "Wait"}),
        ToolCall("c2", "glob", {"pattern": "*"}),
    ]
    batches: list[Batch] = []

    async def run() -> None:
        async with open_runtime(registry_for(tmp_path)) as runtime:
            batches.append(runtime.batch(calls))
            await batches[0].run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready()
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert [(outcome.code, outcome.effect) for outcome in batches[0].outcomes if outcome] == [
        ("ABORTED", Effect.UNKNOWN),
        ("ABORTED_BEFORE_DISPATCH", Effect.NOT_STARTED),
    ]


async def test_codes_of_the_tools_reach_the_outcomes(tmp_path: Path) -> None:
    """What a tool says went wrong is what the outcome says."""
    calls = [
        ToolCall("c1", "read", {"file_path": "missing"}),
        ToolCall("c2", "read", {"file_path": "missing", "limit": 0}),
        ToolCall("c3", "grep", {"pattern": "("}),
        ToolCall("c4", "bash", {"command": " ", "description": "Nothing"}),
    ]
    outcomes = await run_calls(registry_for(tmp_path), calls)
    codes = ["FS_NOT_FOUND", "INVALID_ARGS", "SEARCH_INVALID_PATTERN", None]
    assert [outcome.code for outcome in outcomes] == codes
