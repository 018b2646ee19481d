"""Promise 8: from the log alone come the messages' outcomes, and how each batch ended."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from journals import Batches, batches_plans, record
from quiesce import PARALLEL, open_runtime
from quiesce.journal import (
    BatchEnd,
    BatchStart,
    BatchSummary,
    CallRequest,
    MemoryJournal,
    ToolCallStarted,
    batches,
    open_sqlite_journal,
    read_events,
    rebuild_outcomes,
    repair,
    repaired,
    replay,
)
from toolbox import calls_of, registry_of


@settings(max_examples=30, deadline=None)
@given(plan=batches_plans, data=st.data(), random=st.random_module())
def test_replay_gives_the_outcomes_that_were_returned(plan: Batches, data: st.DataObject, random: object) -> None:
    """Of batches that ran at once, each has its own; of one cut short, those that were committed."""
    recording = record(plan)
    events = recording.journal.events
    for replayed in replay(events):
        assert list(replayed.outcomes) == recording.outcomes[replayed.batch]
        assert replayed.complete
        assert replayed.status == ("completed" if plan.cancel_at is None else replayed.status)
        assert [call.arguments for call in replayed.requests] in [list(arguments) for arguments in plan.trees]
    cut = events[: data.draw(st.integers(0, len(events)))]
    for replayed in replay(cut):
        ended = any(isinstance(event, BatchEnd) and event.batch == replayed.batch for event in cut)
        assert replayed.complete == ended == (replayed.status is not None)
        assert list(replayed.outcomes) == rebuild_outcomes(cut)[replayed.batch]


@settings(max_examples=15, deadline=None)
@given(plan=batches_plans, data=st.data(), random=st.random_module())
def test_a_file_is_repaired_as_its_events_are(
    tmp_path_factory: pytest.TempPathFactory, plan: Batches, data: st.DataObject, random: object
) -> None:
    """The act on a file appends what the pure function says, and nothing the second time."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    events = record(plan).journal.events
    cut = events[: data.draw(st.integers(0, len(events)))]

    async def write() -> None:
        async with open_sqlite_journal(path) as journal:
            for event in cut:
                journal.append(event)

    trio.run(write)
    wanted = repaired(cut)
    assert repair(path) == wanted
    assert repair(path) == []
    assert read_events(path) == cut + wanted
    assert replay(path) == replay(cut + wanted)
    starts = [event for event in cut if isinstance(event, BatchStart)]
    assert [summary.start for summary in batches(path)] == starts
    assert all(summary.status is not None for summary in batches(path))


async def test_a_stream_is_replayed_by_what_it_recorded() -> None:
    """Its ``batch/start`` lists no calls; they are those whose turn came."""

    async def body(_: object) -> str:
        await trio.lowlevel.checkpoint()
        return "ok"

    journal = MemoryJournal()
    async with open_runtime(registry_of(PARALLEL, t=body), journal=journal) as runtime:
        outcomes = [outcome async for outcome in runtime.stream(calls_of("t", "t", "t"))]
    (replayed,) = replay(journal.events)
    assert list(replayed.outcomes) == outcomes
    assert [request.call_id for request in replayed.requests] == ["c0", "c1", "c2"]
    assert replayed.complete


async def test_a_batch_whose_start_is_lost_is_still_listed(tmp_path: Path) -> None:
    """What is left of it is no secret."""
    end = BatchEnd("b", 3.0, "completed", None, None)
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        journal.append(end)
        journal.append(ToolCallStarted("c", "c:0", 2.0, CallRequest(0, "c0", "t", {}), None, "c:0"))
        journal.append(attrs.evolve(end, batch="c"))
    assert batches(tmp_path / "journal.db") == [
        BatchSummary("b", None, end),
        BatchSummary("c", None, attrs.evolve(end, batch="c")),
    ]
    assert [one.complete for one in replay(tmp_path / "journal.db")] == [True, False]
