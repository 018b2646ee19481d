"""A foreground command leaves nothing of its process group alive, and its output is exact."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from quiesce.errors import ToolError
from quiesce.tools import _process_group
from quiesce.tools._process import Command, Completed, run_command
from quiesce.tools._tail import Tail

RunBash = Callable[..., Awaitable[Completed]]
SignalFrom = Callable[[str], Callable[[], Awaitable[str]]]

STUBBORN_TREE = """
    (trap '' TERM; sleep 60 & sleep 60; sleep 60) &
    trap : TERM
    echo $$ > ready
    while :; do sleep 60; done
"""
"""A tree of which no process ends at SIGTERM; the leader tells its id when it runs."""

OPEN_IDLE, IDLE = "mkfifo idle; exec 3<> idle", "while :; do read -r -t 0.05 -u 3; done"
"""Waiting for ever without a child: SIGTERM can get lost on a child that bash has forked and that is not yet itself."""


def live_members(group: int) -> list[str]:
    """The processes of a group that are no zombies, from the system's own table."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(entry.name)
    return found


def kill(pid: int) -> None:
    """End a process that is not a child of this one, and wait until it has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


async def test_a_command_that_exits_gives_its_code_and_output(run_bash: RunBash) -> None:
    """Exit code and both streams are reported; the streams are kept apart."""
    completed = await run_bash("echo out; echo err >&2; exit 3")
    assert (completed.exit_code, completed.signal, completed.timed_out) == (3, None, False)
    assert (completed.stdout.data, completed.stderr.data) == (b"out\n", b"err\n")


@pytest.mark.parametrize(("number", "name"), [("KILL", "SIGKILL"), ("40", "SIG40")])
async def test_a_command_that_a_signal_ends_gives_its_name(run_bash: RunBash, number: str, name: str) -> None:
    """Instead of an exit code there is the name of the signal."""
    completed = await run_bash(f"kill -{number} $$")
    assert (completed.exit_code, completed.signal) == (None, name)


async def test_a_command_has_no_input(run_bash: RunBash) -> None:
    """A command that reads its standard input meets the end at once, and nothing of this program's own input."""
    kept = os.dup(0)
    ours, writer = os.pipe()
    try:
        os.write(writer, b"ours\n")
        os.dup2(ours, 0)
        assert (await run_bash("head -n 1; echo done")).stdout.data == b"done\n"
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, ours, writer):
            os.close(descriptor)


async def test_a_cancelled_command_leaves_no_process_of_its_group(run_bash: RunBash, signal_from: SignalFrom) -> None:
    """A tree that traps SIGTERM is killed before ``Cancelled`` goes on."""
    ready = signal_from("ready")
    members: list[str] = ["not looked yet"]
    group = 0

    async def run() -> None:
        try:
            await run_bash(STUBBORN_TREE)
        finally:
            members[:] = live_members(group)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        group = int(await ready())
        assert len(live_members(group)) >= 2
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert members == []


async def test_a_timed_out_command_leaves_no_process_of_its_group(
    run_bash: RunBash, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """When its time runs out the tree is killed, and the result says so."""
    ready = signal_from("ready")
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash(STUBBORN_TREE, timeout=120))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        group = int(await ready())
        running_clock.jump(120)
    assert (results[0].timed_out, results[0].signal) == (True, "SIGKILL")
    assert live_members(group) == []


async def test_a_command_that_exits_with_0_at_its_timeout_has_timed_out(
    run_bash: RunBash, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """Trapping the signal does not hide that the time ran out."""
    ready = signal_from("ready")
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash(f"{OPEN_IDLE}; trap 'exit 0' TERM; echo > ready; {IDLE}", timeout=120))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready()
        running_clock.jump(120)
    assert (results[0].timed_out, results[0].exit_code) == (True, 0)


async def test_a_cancel_during_the_end_of_a_timed_out_command_leaves_its_result(
    run_bash: RunBash, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """Of timeout and cancel the first one counts: here the timeout."""
    ready = signal_from("ready")
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash(STUBBORN_TREE, timeout=120))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready()
        running_clock.jump(120)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [result.timed_out for result in results] == [True]


async def test_a_timeout_during_the_end_of_a_cancelled_command_changes_nothing(
    run_bash: RunBash, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """Of timeout and cancel the first one counts: here the cancel, which is not swallowed."""
    ready = signal_from("ready")
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash(STUBBORN_TREE, timeout=120))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
        running_clock.jump(120)
    assert nursery.cancel_scope.cancelled_caught
    assert results == []


async def test_a_timeout_and_a_cancel_in_the_same_instant_are_a_cancel(
    run_bash: RunBash, signal_from: SignalFrom, running_clock: trio.testing.MockClock
) -> None:
    """When both deadlines are met at once the caller's cancel is passed on."""
    ready = signal_from("ready")
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash("echo > ready; sleep 60", timeout=120))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready()
        running_clock.jump(120)
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
    assert results == []


async def test_a_cancel_before_the_start_starts_nothing(run_bash: RunBash, tmp_path: Path) -> None:
    """In a scope that is already cancelled no process comes into being."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_bash("touch started")
    assert scope.cancelled_caught
    assert not (tmp_path / "started").exists()


async def test_a_stopped_command_can_be_cancelled(run_bash: RunBash, signal_from: SignalFrom) -> None:
    """A process that stopped itself does not see SIGTERM, and is killed after the grace."""
    ready = signal_from("ready")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_bash, "echo > ready; kill -STOP $$")
        await ready()
        nursery.cancel_scope.cancel()


async def test_a_child_that_holds_the_output_does_not_hold_the_result(run_bash: RunBash) -> None:
    """After the command's exit, what it left in its group is ended, though it holds the pipe open."""
    with trio.fail_after(30):
        completed = await run_bash("sleep 60 & echo hi")
    assert (completed.exit_code, completed.stdout.data) == (0, b"hi\n")


async def test_a_child_without_output_is_ended_too(run_bash: RunBash) -> None:
    """A process left in the group is ended even though the pipes are closed, without waiting for the grace."""
    with trio.fail_after(30):
        completed = await run_bash("sleep 60 > /dev/null 2>&1 & echo hi", grace=60)
    assert (completed.exit_code, completed.stdout.data) == (0, b"hi\n")


async def test_a_child_that_still_writes_within_the_grace_is_read(
    run_bash: RunBash, signal_from: SignalFrom, tmp_path: Path
) -> None:
    """Output of a child that outlives the command belongs to the result, up to the grace."""
    exiting, gate = signal_from("exiting"), tmp_path / "gate"
    os.mkfifo(gate)
    results: list[Completed] = []

    async def run() -> None:
        results.append(await run_bash("(cat gate; echo late) & echo > exiting", grace=60))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await exiting()
        await trio.Path(gate).write_text("")
    assert results[0].stdout.data == b"late\n"


async def test_a_process_that_left_the_group_does_not_hold_the_result(run_bash: RunBash, tmp_path: Path) -> None:
    """A process of another session is not ended here, but its hold on the pipe ends with the grace."""
    with trio.fail_after(30):
        completed = await run_bash(
            "mkfifo out; setsid bash -c 'echo $$ > escaped; echo hi; echo > out; exec sleep 60' & read < out"
        )
    kill(int((tmp_path / "escaped").read_text()))
    assert completed.stdout.data == b"hi\n"


async def test_a_group_of_zombies_counts_as_gone(run_bash: RunBash, tmp_path: Path) -> None:
    """A child that its parent, in another group, never reaps does not hold the result."""
    script = f"""exec {sys.executable} -c '
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os.setsid()
    open("escaped", "w").write(str(os.getpid()))
    for number in (0, 1, 2, write):
        os.close(number)
    time.sleep(60)
os.close(write)
os.read(read, 1)
'"""
    with trio.fail_after(30):
        completed = await run_bash(script, grace=60)
    kill(int((tmp_path / "escaped").read_text()))
    assert completed.exit_code == 0


async def test_a_group_that_is_gone_is_never_signalled(run_bash: RunBash, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to somebody else by then: after the first absence not even signal 0 is sent."""
    sent: list[int] = []
    kill = os.killpg

    def recording(group: int, number: int) -> None:
        sent.append(number)
        kill(group, number)

    monkeypatch.setattr(os, "killpg", recording)
    await run_bash("echo hi")
    assert sent == [0]


async def test_a_group_that_may_not_be_signalled_is_waited_for(
    run_bash: RunBash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program with other rights is not alive for ever nor dead at once: the process table tells."""
    kill = os.killpg

    def refusing(group: int, number: int) -> None:
        kill(group, 0)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refusing)
    completed = await run_bash("(cat > /dev/null; head -c 100 /dev/zero >&2) < /proc/self/fd/0 & echo hi")
    assert len(completed.stderr.data) == 100


@attrs.frozen
class ReapedLeader:
    """A process that has exited and was reaped."""

    pid: int = 4_000_000
    returncode: int = 0


@pytest.mark.parametrize("last", [ProcessLookupError, PermissionError])
def test_without_a_process_table_the_system_is_asked_alone(
    monkeypatch: pytest.MonkeyPatch, last: type[OSError]
) -> None:
    """Where there is no /proc a group is gone when no signal reaches it; BSD says EPERM of a group of zombies."""
    answers: list[type[OSError] | None] = [None, last]

    def answering(_group: int, _number: int) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    monkeypatch.setattr(os, "killpg", answering)
    monkeypatch.setattr(_process_group, "_HAS_PROC", False)
    group = _process_group.ProcessGroup(cast("trio.Process", ReapedLeader()))
    assert [group.gone(), group.gone(), group.gone()] == [False, True, True]


async def test_what_a_command_writes_while_it_is_ended_is_kept(run_bash: RunBash) -> None:
    """The pipes are read on while the group is being ended, also when more is written than a pipe holds."""
    script = f"""
        {OPEN_IDLE}
        trap 'head -c 200000 /dev/zero >&2; echo bye >&2; exit 0' TERM
        echo more than one byte
        {IDLE}
    """
    completed = await run_bash(script, grace=60, stdout_limit=1, stderr_limit=300_000, stop_when_cut=True)
    assert completed.stderr.data == b"\0" * 200_000 + b"bye\n"
    assert (completed.exit_code, completed.timed_out) == (0, False)


async def test_a_cancelled_command_gets_to_its_own_end(run_bash: RunBash, signal_from: SignalFrom) -> None:
    """Its pipes are read on after the cancel: last words that fill a pipe do not keep it from ending by itself."""
    ready, ended = signal_from("ready"), signal_from("ended")
    script = f"""
        {OPEN_IDLE}
        trap 'head -c 200000 /dev/zero; echo itself > ended; exit 0' TERM
        echo > ready
        {IDLE}
    """
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run_bash(script, grace=10))
        await ready()
        nursery.cancel_scope.cancel()
    with trio.fail_after(1):
        assert await ended() == "itself\n"


async def test_a_command_can_be_ended_by_the_length_of_its_output(run_bash: RunBash) -> None:
    """With ``stop_when_cut`` endless output ends the command; that is no timeout."""
    with trio.fail_after(30):
        completed = await run_bash("yes", stdout_limit=1000, stop_when_cut=True)
    assert completed.stdout.truncated
    assert (completed.signal, completed.timed_out) == ("SIGTERM", False)


async def test_fifty_commands_at_once_all_end(run_bash: RunBash) -> None:
    """Many commands side by side each get their own output."""
    results: dict[int, bytes] = {}

    async def run(number: int) -> None:
        results[number] = (await run_bash(f"echo {number}")).stdout.data

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(run, number)
    assert results == {number: f"{number}\n".encode() for number in range(50)}


async def test_twenty_cancelled_commands_all_end(run_bash: RunBash, signal_from: SignalFrom) -> None:
    """Many trees cancelled at once are all gone afterwards; the fixture looks for them."""
    ready = signal_from("ready")
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(run_bash, "(trap '' TERM; sleep 60) & echo > ready; sleep 60")
        for _ in range(20):
            await ready()
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught


async def test_long_output_keeps_exactly_its_end(run_bash: RunBash) -> None:
    """The kept bytes are the last ones, and the total counts all of them."""
    completed = await run_bash("seq 1 30000")
    everything = b"".join(b"%d\n" % number for number in range(1, 30001))
    assert completed.stdout.data == everything[-64_000:]
    assert (completed.stdout.total, completed.stdout.truncated) == (len(everything), True)


async def test_huge_output_takes_little_memory(run_bash: RunBash) -> None:
    """Fifty megabytes of output are held in less than one."""
    tracemalloc.start()
    try:
        completed = await run_bash("head -c 50000000 /dev/zero")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert completed.stdout.total == 50_000_000
    assert peak < 1_000_000


async def test_output_that_is_not_utf8_is_shown_with_replacements(run_bash: RunBash) -> None:
    """Bytes stay exact; their text has U+FFFD for what is not UTF-8."""
    completed = await run_bash(r"printf 'a\377b\303\251'")
    assert completed.stdout.data == b"a\xffb\xc3\xa9"
    assert completed.stdout.text == "a\ufffdb\u00e9"


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_a_tail_is_the_end_of_what_was_fed(chunks: list[bytes], limit: int) -> None:
    """Whatever the chunks, exactly the last ``limit`` bytes are kept."""
    tail, everything = Tail(limit), b"".join(chunks)
    for chunk in chunks:
        tail.feed(chunk)
    captured = tail.captured()
    assert captured.data == everything[-limit:]
    assert captured.total == len(everything)
    assert captured.truncated == tail.overflowed == (len(everything) > limit)


@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        (("true",), "/no/such/folder", "cannot run in the folder '/no/such/folder': No such file or directory"),
        (("true",), "/etc/hosts", "cannot run in the folder '/etc/hosts': Not a directory"),
        (("/no/such/program",), "/", "cannot start '/no/such/program': No such file or directory"),
        (("/etc/passwd",), "/", "cannot start '/etc/passwd': Permission denied"),
        (("true", "\0"), "/", "cannot start 'true': embedded null byte"),
        (("true", "x" * 3_000_000), "/", "cannot start 'true': Argument list too long"),
    ],
)
async def test_a_command_that_cannot_be_started_says_why(argv: tuple[str, ...], cwd: str, says: str) -> None:
    """A failed start is a tool error in plain words, and leaks nothing."""
    with pytest.raises(ToolError) as caught:
        await run_command(Command(argv, cwd, dict(os.environ), 1, 1), grace=math.inf)
    assert caught.value.message == says
    assert caught.value.code is None


async def test_a_platform_without_process_groups_is_refused(run_bash: RunBash, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a tree could not be ended nothing is started."""
    monkeypatch.delattr(os, "killpg")
    with pytest.raises(ToolError, match="this platform has no process groups"):
        await run_bash("true")
