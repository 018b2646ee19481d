"""The journal in a SQLite file: what is written is what happened, exactly, durably, and in few transactions."""

from __future__ import annotations

import logging
import math
import os
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

import json_values
from quiesce import PARALLEL, RunContext, open_runtime
from quiesce.errors import JournalFileError, JournalWriteError, RuntimeClosedError, SchedulerFault
from quiesce.journal import (
    BatchEnd,
    BatchStart,
    CallRequest,
    Event,
    MemoryJournal,
    SqliteJournal,
    ToolResult,
    batches,
    event_to_json,
    open_sqlite_journal,
    outcome_from_event,
    read_events,
    rebuild_outcomes,
    replay,
    result_event,
)
from quiesce.journal._sqlite_text import event_from_column, event_to_column
from quiesce.journal._sqlite_writer import Row, Writer
from quiesce.registry import FrozenDict, Outcome, Success, Timings, freeze
from quiesce.registry._json import json_equal
from quiesce.testing import check_trace
from toolbox import calls_of, registry_of
from world import Plan, World, judge, plans

START = BatchStart("b", 1.0, 2.0, "settled", 3, ())


def start(batch: str) -> BatchStart:
    return attrs.evolve(START, batch=batch)


class Both:
    """Records in memory and in a file."""

    def __init__(self, file: SqliteJournal) -> None:
        self.file = file
        self.memory = MemoryJournal()

    def append(self, event: Event) -> None:
        self.memory.append(event)
        self.file.append(event)

    async def flush(self) -> None:
        await self.file.flush()


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each transaction wrote."""
    counts: list[int] = []
    write = Writer.write

    def counted(writer: Writer, rows: list[Row]) -> None:
        write(writer, rows)
        counts.append(len(rows))

    monkeypatch.setattr(Writer, "write", counted)
    return counts


@settings(max_examples=40, deadline=None)
@given(
    plan=plans,
    durability=st.sampled_from(["settled", "dispatch"]),
    cancel_at=st.none() | st.sampled_from([0.5, 1.5, 2.5]),
    write_behind=st.sampled_from([0, 0.2, math.inf]),
    random=st.random_module(),
)
def test_a_random_batch_is_in_the_file_as_it_is_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    durability: str,
    cancel_at: float | None,
    write_behind: float,
    random: object,
) -> None:
    """Promise 8: the file holds the same events in the same order, the outcomes rebuilt from it are those returned."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    world = World(plan)
    outcomes: list[Outcome] = []
    memory: list[Event] = []

    async def main() -> bool:
        async with open_sqlite_journal(path, write_behind=write_behind) as file:
            journal = Both(file)
            async with open_runtime(
                world.registry,
                journal=journal,
                durability=durability,  # type: ignore[arg-type]
                max_parallel=plan.max_parallel,
            ) as runtime:
                batch = runtime.batch(world.calls, cancellable=plan.cancellable)
                with trio.move_on_after(math.inf if cancel_at is None else cancel_at) as scope:
                    await batch.run()
                assert read_events(path) == journal.memory.events, "all of it is flushed when run ends"
                outcomes.extend(outcome for outcome in batch.outcomes if outcome is not None)
                memory.extend(journal.memory.events)
                return scope.cancel_called

    cancelled = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    events = read_events(path)
    assert events == memory
    judge(world, outcomes, events, cancelled=cancelled)
    check_trace(events)
    (replayed,) = replay(path)
    assert list(replayed.outcomes) == outcomes
    assert replayed.complete


@settings(max_examples=25, deadline=None)
@given(plan=plans, random=st.random_module())
def test_a_durable_journal_changes_no_outcome(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, random: object
) -> None:
    """A flush before each body takes time, and nothing else: the outcomes are those with a journal in memory."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"

    async def run(durable: bool) -> list[Outcome]:
        world = World(plan)
        if not durable:
            async with open_runtime(world.registry, max_parallel=plan.max_parallel) as runtime:
                return await runtime.run(world.calls)
        async with (
            open_sqlite_journal(path) as journal,
            open_runtime(
                world.registry, max_parallel=plan.max_parallel, journal=journal, durability="dispatch"
            ) as runtime,
        ):
            return await runtime.run(world.calls)

    def played(*, durable: bool) -> list[Outcome]:
        return trio.run(run, durable, clock=trio.testing.MockClock(autojump_threshold=0))

    in_memory = played(durable=False)
    assert played(durable=True) == in_memory == next(iter(rebuild_outcomes(read_events(path)).values()))


any_text = st.text(st.characters(exclude_categories=()), max_size=8)


def event_of(value: object, text: str, *, time: float = 1.0) -> ToolResult:
    outcome = Success(text, text, 0, freeze(value), (), meta=freeze(value), contexts=(freeze(value),))
    return result_event(
        outcome, batch="b", key="b:0", parent=None, root="b:0", timings=Timings(time), hooks=(), waited=None
    )


@settings(deadline=None)
@given(value=json_values.values, text=any_text, time=st.floats(allow_nan=False, allow_infinity=False))
def test_every_value_comes_back_exactly(value: object, text: str, time: float) -> None:
    """Numbers keep their type, times their last digit, strings their lone surrogates; values come back frozen."""
    event = event_of({"value": value}, text, time=time)
    column = event_to_column(event)
    again = event_from_column(column)
    assert again == event
    assert repr(again) == repr(event), "1 and 1.0 are equal, and not the same"
    assert type(again) is ToolResult
    assert type(again.value) is FrozenDict or math.copysign(1, time) < 0
    if isinstance(column, str):
        column.encode()


AWKWARD: dict[str, object] = {
    "lone surrogate": "\ud800",
    "two that look like one character": "\ud83d\ude00",
    "that character": "\U0001f600",
    "the wrong way round": "\ude00\ud83d",
    "control and separator": "\x00\u2028",
    "whole float": 1e20,
    "whole float with many digits": 1.2345678901234567e20,
    "float beyond exact integers": 2.0**53 + 2,
    "smallest float": 5e-324,
    "big integer": 10**5000,
    "negative big integer": -(10**4301),
    "surrogates as keys": {"\ud83d\ude00": 1, "\ud83d": 2},
}


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD)
async def test_a_value_survives_the_file(tmp_path: Path, value: object) -> None:
    """Surrogates, alone or side by side, whole floats of any size and integers of any length, through SQLite."""
    event = event_of([value], "t", time=1723.123456789012)
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        journal.append(event)
    (again,) = read_events(tmp_path / "journal.db")
    assert again == event
    assert isinstance(again, ToolResult)
    assert isinstance(again.value, list)
    assert type(again.value[0]) is type(freeze(value))


@pytest.mark.parametrize("key", [None, "k"])
async def test_5000_levels_survive_the_file(tmp_path: Path, key: str | None) -> None:
    """Depth is no limit for arguments, values and metadata."""
    deep = freeze(json_values.nested(5000, ["\ud800", 10**5000, 1.5, None], key=key))
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        journal.append(attrs.evolve(START, calls=(CallRequest(0, "c", "t", deep),)))
        journal.append(event_of(deep, "t"))
    first, second = read_events(tmp_path / "journal.db")
    assert isinstance(first, BatchStart)
    assert json_equal(first.calls[0].arguments, deep)
    outcome = outcome_from_event(second)  # type: ignore[arg-type]
    assert isinstance(outcome, Success)
    assert json_equal(outcome.value, deep)
    assert json_equal(outcome.meta, deep)


@pytest.mark.parametrize("levels", [1, 3000])
async def test_an_event_that_is_no_json_is_refused_and_harms_no_other(tmp_path: Path, levels: int) -> None:
    """It is not taken, whatever it is; what comes before and after it is written."""
    path = tmp_path / "journal.db"
    async with open_sqlite_journal(path) as journal:
        journal.append(start("before"))
        for wrong in (object(), math.nan):
            with pytest.raises((TypeError, ValueError)):
                journal.append(BatchEnd("b", 1.0, "completed", None, json_values.nested(levels, wrong)))
        journal.append(start("after"))
    assert [event.batch for event in read_events(path)] == ["before", "after"]


async def test_flushes_that_wait_together_share_one_transaction(tmp_path: Path, transactions: list[int]) -> None:
    """One writes for all: of twenty flushes at once, the first writes its own event, the second all others."""
    async with (
        open_sqlite_journal(tmp_path / "journal.db", write_behind=math.inf) as journal,
        trio.open_nursery() as nursery,
    ):

        async def record(number: int) -> None:
            journal.append(start(f"b{number}"))
            await journal.flush()
            assert f"b{number}" in {event.batch for event in read_events(journal.path)}

        for number in range(20):
            nursery.start_soon(record, number)
    # All append before the first flush gets its thread, so it may take all; never more than two.
    assert sum(transactions) == 20
    assert len(transactions) <= 2


async def test_a_flush_of_nothing_writes_nothing(tmp_path: Path, transactions: list[int]) -> None:
    """It only asks whether all is durable."""
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        await journal.flush()
        journal.append(START)
        await journal.flush()
        await journal.flush()
    assert transactions == [1]


async def test_what_nobody_flushes_is_written_after_a_while(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under ``settled``, a crash in a long batch leaves what happened until a moment before it."""
    written = trio.Event()
    write = Writer.write
    token = trio.lowlevel.current_trio_token()

    def noted(writer: Writer, rows: list[Row]) -> None:
        write(writer, rows)
        token.run_sync_soon(written.set)

    monkeypatch.setattr(Writer, "write", noted)
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        journal.append(START)
        assert read_events(journal.path) == []
        await written.wait()
        assert read_events(journal.path) == [START]


async def test_a_write_behind_that_fails_loses_nothing(
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is logged; whoever flushes next tries again, with what came meanwhile, in order."""
    failing = True
    failed = trio.Event()
    write = Writer.write
    token = trio.lowlevel.current_trio_token()

    def fail(writer: Writer, rows: list[Row]) -> None:
        if failing:
            token.run_sync_soon(failed.set)
            raise JournalWriteError(str(writer.path), "cannot be written", "wait")
        write(writer, rows)

    monkeypatch.setattr(Writer, "write", fail)
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        with caplog.at_level(logging.WARNING):
            journal.append(start("one"))
            await failed.wait()
            await trio.testing.wait_all_tasks_blocked()
        assert "cannot be written" in caplog.text
        journal.append(start("two"))
        with pytest.raises(JournalWriteError):
            await journal.flush()
        failing = False
        await journal.flush()
        assert [event.batch for event in read_events(journal.path)] == ["one", "two"]


async def test_a_cancel_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    """Leaving the block writes what waits, also if everything around it is cancelled."""
    path = tmp_path / "journal.db"
    with trio.CancelScope() as scope:
        async with open_sqlite_journal(path, write_behind=math.inf) as journal:
            journal.append(START)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert read_events(path) == [START]


async def test_the_error_of_the_block_leaves_unchanged(tmp_path: Path) -> None:
    """Never in a group, also under a cancel; and if the last write fails, too, a note says so."""
    error = RuntimeError("mine")
    with pytest.raises(RuntimeError) as caught, trio.CancelScope() as scope:  # noqa: PT012
        async with open_sqlite_journal(tmp_path / "journal.db") as journal:
            journal.append(START)
            scope.cancel()
            raise error
    assert caught.value is error
    assert read_events(tmp_path / "journal.db") == [START]


async def test_a_last_write_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal whose last events could not be written does not end in silence; its file is closed all the same."""

    def fail(writer: Writer, rows: object) -> None:
        raise JournalWriteError(str(writer.path), "cannot be written", "wait")

    path = tmp_path / "journal.db"
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", fail)
        with pytest.raises(JournalWriteError):
            async with open_sqlite_journal(path) as journal:
                journal.append(START)
        with pytest.raises(RuntimeError) as caught:  # noqa: PT012
            async with open_sqlite_journal(path) as journal:
                journal.append(START)
                raise RuntimeError("mine")
        assert "cannot be written" in caught.value.__notes__[0]
    async with open_sqlite_journal(path) as journal:
        assert read_events(path) == []


async def test_a_ctrl_c_while_it_closes_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written and closed first; then the interrupt is raised."""
    run_sync = trio.to_thread.run_sync
    interrupts = [KeyboardInterrupt("now"), KeyboardInterrupt("at once")]

    async def interrupted(*args: Any, **options: Any) -> object:
        # trio raises a Ctrl-C that came while the file is written at a checkpoint: before the thread starts.
        if interrupts:
            raise interrupts.pop()
        return await run_sync(*args, **options)

    with pytest.raises(KeyboardInterrupt, match="now"):  # noqa: PT012
        async with open_sqlite_journal(tmp_path / "journal.db", write_behind=math.inf) as journal:
            journal.append(START)
            monkeypatch.setattr(trio.to_thread, "run_sync", interrupted)
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        assert read_events(journal.path) == [START]


async def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    """Nothing is taken that would never be written."""
    async with open_sqlite_journal(tmp_path / "journal.db") as journal:
        pass
    with pytest.raises(RuntimeClosedError, match="is closed"):
        journal.append(START)
    with pytest.raises(RuntimeClosedError, match="is closed"):
        await journal.flush()


@pytest.mark.parametrize("write_behind", [-1, math.nan])
async def test_a_senseless_time_to_write_behind_is_refused(tmp_path: Path, write_behind: float) -> None:
    """Before anything is opened."""
    with pytest.raises(ValueError, match="write_behind"):
        async with open_sqlite_journal(tmp_path / "journal.db", write_behind=write_behind):
            raise AssertionError
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_a_journal_goes_on_where_it_was_left(tmp_path: Path) -> None:
    """A file that is opened again keeps its events, and places new ones after them."""
    path = tmp_path / "journal.db"
    for number in range(3):
        async with open_sqlite_journal(path) as journal:
            journal.append(start(f"b{number}"))
    assert [event.batch for event in read_events(path)] == ["b0", "b1", "b2"]
    assert read_events(path, batch="b1") == [start("b1")]
    assert [summary.start for summary in batches(path)] == [start("b0"), start("b1"), start("b2")]
    assert [summary.status for summary in batches(path)] == [None] * 3


async def test_a_write_that_fails_is_a_fault_with_honest_statuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under ``dispatch``, a body whose start could not be made durable is not run, and says so."""
    invoked: list[str] = []

    async def body(_: object, run: RunContext) -> str:  # noqa: ASYNC124
        invoked.append(run.call_id)
        return "ok"

    write = Writer.write
    path = tmp_path / "journal.db"

    def fail(writer: Writer, rows: list[Row]) -> None:
        if any("c1" in str(row) and row[1] == "tool/call" for row in rows):
            raise JournalWriteError(str(writer.path), "cannot be written", "wait")
        write(writer, rows)

    monkeypatch.setattr(Writer, "write", fail)
    with pytest.raises(SchedulerFault, match="cannot be written") as caught:
        async with (
            open_sqlite_journal(path, write_behind=math.inf) as journal,
            open_runtime(registry_of(PARALLEL, t=body), journal=journal, durability="dispatch") as runtime,
        ):
            await runtime.run(calls_of("t", "t", "t"))
    assert isinstance(caught.value.__cause__, JournalWriteError)
    assert invoked == ["c0"]
    # A fault starts nothing more and commits nothing more: of the first it is only known that it ran.
    assert [status.state for status in caught.value.statuses] == ["started", "never_started", "never_started"]
    check_trace(read_events(path))


def test_the_file_is_plain_enough_for_other_programs(tmp_path: Path) -> None:
    """One table, one JSON text a row, which SQLite's own JSON functions read."""
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with open_sqlite_journal(path) as journal:
            journal.append(start("é"))

    trio.run(main)
    connection = sqlite3.connect(path)
    try:
        (row,) = connection.execute("SELECT seq, batch, type, json_extract(event, '$.batch') FROM events")
    finally:
        connection.close()
    assert row == (0, "é", "batch/start", "é")
    assert event_to_json(start("é"))["type"] == "batch/start"


def test_errors_keep_their_fields_through_a_pickle() -> None:
    """They name the file, what is wrong, and what to do."""
    kinds: tuple[Callable[[str, str, str], JournalFileError], ...] = (JournalFileError, JournalWriteError)
    for kind in kinds:
        error = pickle.loads(pickle.dumps(kind("f", "is odd", "do something")))  # noqa: S301
        assert (error.path, error.problem, error.remedy) == ("f", "is odd", "do something")
        assert str(error) == "the journal 'f' is odd; do something"
