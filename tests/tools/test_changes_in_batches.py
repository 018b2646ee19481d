"""Reads, edits and writes in batches: what overlaps, what is in the files afterwards, and what a cancel leaves."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quiesce import Effect, Failure, Outcome, Registry, Success, ToolCall, open_runtime, run_calls
from quiesce.registry import JsonValue, ToolDefinition
from quiesce.testing import RandomOrder, cancel_everywhere, check_tool, explore, watch_leftovers
from quiesce.tools import edit_tool, read_tool, str_replace_editor_tool, write_tool

FILES = ("f0", "f1", "f2", "f3", "f4")
WORDS = ("one", "two", "three")
START = {"f0": "one\n", "f1": "one\ntwo\n", "f2": "two\r\nthree\r\n", "f3": ""}
"""The fifth file is not there at first."""

Contents: TypeAlias = dict[str, str]


def registry_for(folder: Path) -> Registry:
    """A registry with the file tools."""
    registry = Registry()
    for make in (read_tool, write_tool, edit_tool, str_replace_editor_tool):
        registry.register(make(folder))
    return registry


def contents_of(folder: Path) -> Contents:
    """The text of every file of a folder, whatever it is called."""
    return {path.name: path.read_bytes().decode() for path in folder.iterdir()}


def fill(folder: Path) -> None:
    """Put the first contents into a folder, and nothing else."""
    for path in folder.iterdir():
        path.unlink()
    for name, text in START.items():
        (folder / name).write_bytes(text.encode())


def expected(contents: Contents, call: ToolCall, folder: Path) -> tuple[Contents, JsonValue]:
    """What a call that did all it should makes of the contents, and what it tells of them: the model of the tools."""
    given: Any = call.arguments
    name = Path(given.get("file_path") or given["path"]).name
    if call.name == "read":
        text = contents[name].replace("\r\n", "\n")
        return contents, list(text.removesuffix("\n").split("\n") if text else [])
    if call.name == "write":
        return contents | {name: given["content"]}, contents.get(name)
    if call.name == "edit":
        old, new = given["old_string"], given["new_string"]
        before = contents[name]
        assert given.get("replace_all") or before.count(old) == 1
        return contents | {name: before.replace(old, new)}, before
    match given["command"]:
        case "create":
            assert name not in contents
            return contents | {name: given["file_text"]}, None
        case "insert":
            end = "\r\n" if "\r\n" in contents[name] else "\n" if contents[name] else ""
            return contents | {name: given["new_str"] + end + contents[name]}, None
        case _:
            return contents, None


def told(outcome: Outcome) -> JsonValue:
    """What a call told of the contents that it found."""
    value: Any = outcome.value if isinstance(outcome, Success) else outcome.late_value
    if outcome.name == "read":
        return [line["text"] for line in value["lines"]]
    return value["before"] if outcome.name in {"write", "edit"} else None


@attrs.frozen
class Cancel:
    """When a batch is cancelled: after this many steps of tasks, or events in threads, or calls of the system."""

    kind: Literal["step", "system call", "never"]
    count: int


@st.composite
def calls(draw: st.DrawFn, folder: Path) -> list[ToolCall]:
    """A batch of reads, edits and writes."""
    found: list[ToolCall] = []
    for index in range(draw(st.integers(2, 8))):
        file, word = draw(st.sampled_from(FILES)), draw(st.sampled_from(WORDS))
        path, text = str(folder / file), f"{word}\n"
        choices: list[tuple[str, dict[str, JsonValue]]] = [
            ("read", {"file_path": file}),
            ("write", {"file_path": file, "content": text}),
            ("edit", {"file_path": path, "old_string": word, "new_string": f"{word}{index}"}),
            ("edit", {"file_path": file, "old_string": "o", "new_string": "0", "replace_all": True}),
            ("str_replace_editor", {"command": "create", "path": path, "file_text": text}),
            ("str_replace_editor", {"command": "insert", "path": path, "insert_line": 0, "new_str": word}),
            ("str_replace_editor", {"command": "view", "path": path}),
        ]
        name, arguments = draw(st.sampled_from(choices))
        found.append(ToolCall(f"c{index}", name, arguments))
    return found


class CancelAfter(trio.abc.Instrument):
    """Cancels a scope after some steps of tasks."""

    def __init__(self, scope: trio.CancelScope, count: int) -> None:
        self._scope = scope
        self._left = count

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


SYSTEM_CALLS = ("open", "write", "fsync", "fchmod", "replace", "link", "unlink")


@contextmanager
def cancelled_at_a_system_call(scope: trio.CancelScope, count: int) -> Generator[None]:
    """Cancel right before the ``count``-th call of the system that a worker thread makes."""
    left, lock = count, threading.Lock()

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            with lock:
                left -= 1
                due = left == 0
            if due:
                trio.from_thread.run_sync(scope.cancel)
            return real(*args, **kwargs)

        return calling

    with pytest.MonkeyPatch.context() as patch:
        for name in SYSTEM_CALLS:
            patch.setattr(os, name, before(getattr(os, name)))
        yield


async def outcomes_of(folder: Path, batch_calls: list[ToolCall], cancel: Cancel, parallel: int) -> list[Outcome]:
    """Run a batch that is cancelled at some moment; it has one outcome a call all the same."""
    async with open_runtime(registry_for(folder), max_parallel=parallel) as runtime:
        batch = runtime.batch(batch_calls)
        with trio.CancelScope() as scope:
            if cancel.kind == "system call":
                with cancelled_at_a_system_call(scope, cancel.count):
                    await batch.run()
            else:
                instrument = CancelAfter(scope, cancel.count if cancel.kind == "step" else -1)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await batch.run()
                finally:
                    trio.lowlevel.remove_instrument(instrument)
    found = [outcome for outcome in batch.outcomes if outcome is not None]
    assert len(found) == len(batch_calls)
    return found


CANCELS = st.one_of(
    st.builds(Cancel, st.just("step"), st.integers(1, 60)),
    st.builds(Cancel, st.just("system call"), st.integers(1, 40)),
    st.just(Cancel("never", 0)),
)


def test_the_files_are_what_the_outcomes_say(tmp_path: Path) -> None:
    """After 200 batches on five files, cancelled anywhere: the completed calls, in model order, and no more.

    The promise allows that some calls whose effect is unknown have had theirs; these tools promise that none has.
    What reads and edits found is the model's too, and no temporary file is left.
    """
    seen: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=QUIET)
    @given(calls(tmp_path), CANCELS, st.integers(1, 5), st.integers(0, 2**16))
    def check(batch_calls: list[ToolCall], cancel: Cancel, parallel: int, seed: int) -> None:
        fill(tmp_path)
        found: list[Outcome] = []

        async def scenario() -> None:
            found[:] = await outcomes_of(tmp_path, batch_calls, cancel, parallel)

        # Not schedules(): what it draws would depend on how fast the threads are, and examples must not.
        explore(scenario, strategy=RandomOrder(seed), runs=1)
        contents: Contents = dict(START)
        for call, outcome in zip(batch_calls, found, strict=True):
            seen[f"{outcome.effect.value} {outcome.code}"] += 1
            if outcome.effect is Effect.COMPLETED:
                contents, before = expected(contents, call, tmp_path)
                assert told(outcome) == before
            elif outcome.effect is Effect.UNKNOWN and outcome.code != "ABORTED":
                assert isinstance(outcome, Failure)
                assert outcome.error.name == "ToolError"
        assert contents_of(tmp_path) == contents

    check()
    # The examples reached what they are for: calls cut short, finished too late, and never begun.
    assert min(seen[kind] for kind in KINDS) > 0, seen


QUIET = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
KINDS = ("unknown ABORTED", "completed ABORTED", "not_started ABORTED_BEFORE_DISPATCH", "completed None")


@pytest.mark.parametrize("tool", ["edit", "write", "str_replace_editor"])
async def test_changes_of_different_files_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    """Three changes that wait for each other on their way to the disk all end."""
    fill(tmp_path)
    meet = threading.Barrier(3)
    fsync = os.fsync

    def meeting(descriptor: int) -> None:
        meet.wait(20)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meeting)
    arguments: dict[str, Callable[[str], dict[str, JsonValue]]] = {
        "edit": lambda name: {"file_path": name, "old_string": "t", "new_string": "T", "replace_all": True},
        "write": lambda name: {"file_path": name, "content": "x"},
        "str_replace_editor": lambda name: {
            "command": "insert",
            "path": str(tmp_path / name),
            "insert_line": 0,
            "new_str": "x",
        },
    }
    for name in ("f0", "f1", "f2"):
        (tmp_path / name).write_text("t\n")
    batch = [ToolCall(name, tool, arguments[tool](name)) for name in ("f0", "f1", "f2")]
    outcomes = await run_calls(registry_for(tmp_path), batch)
    assert [outcome.effect for outcome in outcomes] == [Effect.COMPLETED] * 3


def test_edits_of_one_file_run_in_order_under_any_schedule(tmp_path: Path) -> None:
    """Each finds what the one before it left, also by another spelling of the path."""
    (tmp_path / "link").symlink_to("f0")
    texts = ["one", "two", "three", "four", "five"]
    batch = [
        ToolCall(old, "edit", {"file_path": path, "old_string": old, "new_string": new})
        for path, old, new in zip(("f0", "link", "./f0", str(tmp_path / "f0")), texts, texts[1:], strict=False)
    ]
    batch.insert(2, ToolCall("other", "write", {"file_path": "f1", "content": "x"}))

    async def scenario() -> None:
        (tmp_path / "f0").write_text("one")
        outcomes = await run_calls(registry_for(tmp_path), batch)
        assert [outcome.is_error for outcome in outcomes] == [False] * 5
        assert (tmp_path / "f0").read_text() == "five"

    explore(scenario, runs=50)


async def test_edits_of_one_file_in_two_batches_are_not_lost(tmp_path: Path) -> None:
    """Two batches are two lanes, which know nothing of each other's claims; they take turns all the same."""
    (tmp_path / "a").write_text("0" * 20)
    registry = registry_for(tmp_path)
    done: list[int] = []

    async def insert(runtime: Any, number: int) -> None:
        given: dict[str, JsonValue] = {
            "command": "insert",
            "path": str(tmp_path / "a"),
            "insert_line": 0,
            "new_str": str(number),
        }
        [outcome] = await runtime.run([ToolCall("c", "str_replace_editor", given)])
        assert not outcome.is_error
        done.append(number)

    async with open_runtime(registry) as runtime, trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(insert, runtime, number)
    assert sorted((tmp_path / "a").read_text().split("\n")[:-1], key=int) == [str(number) for number in range(20)]
    assert len(done) == 20


def test_a_cancel_anywhere_leaves_no_file_thread_or_descriptor() -> None:
    """The kit cancels at every checkpoint and event; each file is the old one or the new one by its outcome."""

    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill(folder)
            batch_calls = [
                ToolCall("c1", "write", {"file_path": "f0", "content": "new"}),
                ToolCall("c2", "edit", {"file_path": "f1", "old_string": "two", "new_string": "2"}),
                ToolCall("c3", "edit", {"file_path": "f0", "old_string": "new", "new_string": "newer"}),
                ToolCall("c4", "read", {"file_path": "f0"}),
                ToolCall("c5", "str_replace_editor", {"command": "create", "path": f"{name}/f4", "file_text": "x"}),
            ]
            async with open_runtime(registry_for(folder)) as runtime:
                batch = runtime.batch(batch_calls)
                try:
                    await batch.run()
                finally:
                    contents: Contents = dict(START)
                    for call, outcome in zip(batch_calls, batch.outcomes, strict=True):
                        if outcome is not None and outcome.effect is Effect.COMPLETED:
                            contents, _ = expected(contents, call, folder)
                    assert contents_of(folder) == contents

    assert cancel_everywhere(scenario).points > 30


CUT: list[tuple[str, dict[str, JsonValue]]] = [
    ("write", {"file_path": "f0", "content": "new"}),
    ("edit", {"file_path": "f0", "old_string": "one", "new_string": "new"}),
    ("str_replace_editor", {"command": "create", "path": "f4", "file_text": "new"}),
    ("str_replace_editor", {"command": "str_replace", "path": "f0", "old_str": "one"}),
    ("str_replace_editor", {"command": "insert", "path": "f0", "insert_line": 0, "new_str": "new"}),
]


@pytest.mark.parametrize(("name", "arguments"), CUT)
async def test_a_cancel_before_the_rename_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, JsonValue]
) -> None:
    """The thread notices it by itself, even after all was written; nothing is left of it."""
    fill(tmp_path)
    fsync, scope = os.fsync, trio.CancelScope()

    def syncing(descriptor: int) -> None:
        fsync(descriptor)
        trio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(os, "fsync", syncing)
    if "path" in arguments:
        arguments = {**arguments, "path": str(tmp_path / str(arguments["path"]))}
    async with open_runtime(registry_for(tmp_path)) as runtime:
        batch = runtime.batch([ToolCall("c1", name, arguments)])
        with scope:
            await batch.run()
    [outcome] = batch.outcomes
    assert outcome is not None
    assert (outcome.code, outcome.effect) == ("ABORTED", Effect.UNKNOWN)
    assert contents_of(tmp_path) == START


async def test_a_cancel_after_the_rename_is_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is aborted for the model, and the outcome says that it was completed."""
    (tmp_path / "a").write_text("old")
    replace = os.replace
    scope = trio.CancelScope()

    def replacing(old: Path, new: Path) -> None:
        replace(old, new)
        trio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(os, "replace", replacing)
    calls_made = [ToolCall("c1", "edit", {"file_path": "a", "old_string": "old", "new_string": "new"})]
    async with open_runtime(registry_for(tmp_path)) as runtime:
        batch = runtime.batch(calls_made)
        with scope:
            await batch.run()
    [outcome] = batch.outcomes
    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.effect) == ("ABORTED", Effect.COMPLETED)
    assert outcome.late_value == {"path": "a", "before": "old", "after": "new"}
    assert (tmp_path / "a").read_text() == "new"


async def test_codes_reach_the_outcomes(tmp_path: Path) -> None:
    """What a tool says went wrong is what the outcome says, and the model is told the remedy."""
    (tmp_path / "a").write_text("x x")
    batch = [
        ToolCall("c1", "write", {"file_path": "missing/a", "content": ""}),
        ToolCall("c2", "edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
        ToolCall("c3", "edit", {"file_path": "a", "old_string": "", "new_string": "y"}),
        ToolCall("c4", "str_replace_editor", {"command": "create", "path": str(tmp_path / "a"), "file_text": ""}),
    ]
    outcomes = await run_calls(registry_for(tmp_path), batch)
    assert [outcome.code for outcome in outcomes] == ["FS_NOT_FOUND", "FS_AMBIGUOUS_EDIT", "INVALID_ARGS", None]
    assert "set replace_all" in outcomes[1].text


NAMES = st.sampled_from(["f0", "f1", "new", "link", "missing/a", ".", "loop", "\ud800"])
TEXT = st.sampled_from(["", "one", "two\n", "x\r\ny", "\ud800", "\0", "\ufeff", "t"])
ARGUMENTS: dict[str, Callable[[Path], st.SearchStrategy[Any]]] = {
    "write": lambda folder: st.fixed_dictionaries({"file_path": NAMES, "content": TEXT}),
    "edit": lambda folder: st.fixed_dictionaries(
        {"file_path": NAMES, "old_string": TEXT, "new_string": TEXT}, optional={"replace_all": st.booleans()}
    ),
    "str_replace_editor": lambda folder: st.fixed_dictionaries(
        {
            "command": st.sampled_from(["view", "create", "str_replace", "insert"]),
            "path": NAMES.map(lambda name: str(folder / name)),
        },
        optional={
            "file_text": TEXT | st.none(),
            "old_str": TEXT | st.none(),
            "new_str": TEXT | st.none(),
            "insert_line": st.integers(-1, 3) | st.none(),
            "view_range": st.lists(st.integers(-1, 3), max_size=2) | st.none(),
        },
    ),
}


@pytest.mark.parametrize("make", [write_tool, edit_tool, str_replace_editor_tool])
def test_the_kits_check_passes(tmp_path: Path, make: Callable[[Path], ToolDefinition]) -> None:
    """Arguments of every kind, pairs in every order, cancels: only ``ToolError``, honest claims, no leftovers."""
    folder = tmp_path / "scratch"
    folder.mkdir()

    def fresh() -> ToolDefinition:
        fill(folder)
        (folder / "link").symlink_to("f0")
        (folder / "loop").symlink_to("loop")
        return make(folder)

    def observe() -> dict[str, bytes | str]:
        return {
            path.name: str(path.readlink()) if path.is_symlink() else path.read_bytes() for path in folder.iterdir()
        }

    name = fresh().name
    with watch_leftovers() as leftovers:
        report = check_tool(fresh, examples=20, arguments=ARGUMENTS[name](folder), observe=observe)
    leftovers.check()
    assert report.accepted > 10
    assert report.pairs > 0
    assert report.unclear == 0
    assert not [entry for entry in folder.iterdir() if entry.name.startswith(".quiesce-")]
