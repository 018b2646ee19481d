"""Run one foreground command in a process group of its own, and leave nothing of that group alive."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

import attrs
import trio

from ..errors import ToolError
from ._process_group import ProcessGroup
from ._tail import Captured, Tail

if TYPE_CHECKING:
    from trio.lowlevel import FdStream

__all__ = ["Command", "Completed", "run_command"]

_CHUNK_BYTES: Final = 65_536


@attrs.frozen
class Command:
    """What to run, and how much of its output to keep.

    Attributes:
        argv: Program and arguments; no shell reads them.
        cwd: The folder to run in; absolute.
        env: The whole environment.
        stdout_limit: Bytes of its standard output to keep, from the end.
        stderr_limit: Bytes of its standard error to keep, from the end.
        stop_when_cut: End it as soon as its standard output passes the limit.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdout_limit: int
    stderr_limit: int
    stop_when_cut: bool = False


@attrs.frozen
class Completed:
    """How a command ended.

    Attributes:
        exit_code: Its exit code, or ``None`` if a signal ended it.
        signal: The name of that signal (``SIGKILL``), or ``None``.
        timed_out: Whether it was ended because its time ran out. It may have exited with 0 all the same.
        stdout: The tail of its standard output.
        stderr: The tail of its standard error.
    """

    exit_code: int | None
    signal: str | None
    timed_out: bool
    stdout: Captured
    stderr: Captured


async def run_command(command: Command, *, grace: float, timeout: float = math.inf) -> Completed:  # noqa: ASYNC109
    """Run a command to its end.

    The outcome comes once no process of the command's group is alive: what the command left running in its group is
    ended with SIGTERM, and SIGKILL after the grace. A cancel ends the group in the same way before ``Cancelled`` goes
    on. Of ``timeout`` and a cancel from outside, the first one counts: once the time has run out, the result says so
    even if the cancel comes while the group is being ended.

    Args:
        command: What to run.
        grace: Seconds from SIGTERM to SIGKILL; also how long its pipes may stay open after it exited.
        timeout: Seconds until it is ended; a result, not an error, hence not a cancel scope of the caller's.

    Raises:
        ToolError: It cannot be started.

    Source: ``spec/catalogue.md`` 5.4, 6.1, 7.1 to 7.3.
    """
    deadline = trio.current_time() + timeout
    process = await _start(command)
    # No checkpoint between the start and the nursery in `run`: a process that was started is always ended.
    return await _Running(process, command, grace, deadline).run()


async def _start(command: Command) -> trio.Process:
    if not hasattr(os, "killpg"):
        msg = f"cannot start {command.argv[0]!r}: this platform has no process groups, and commands need one"
        raise ToolError(msg)
    try:
        return await trio.lowlevel.open_process(
            list(command.argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=dict(command.env),
            start_new_session=True,
        )
    except OSError as error:
        if error.filename == command.cwd:
            msg = f"cannot run in the folder {command.cwd!r}: {error.strerror}"
        else:
            msg = f"cannot start {command.argv[0]!r}: {error.strerror or error}"
        raise ToolError(msg) from error
    except ValueError as error:  # a NUL, or a surrogate that no file system encoding has
        msg = f"cannot start {command.argv[0]!r}: {error}"
        raise ToolError(msg) from error


class _Running:
    """One run of one command: the readers of its pipes, the wait for its leader, and the end of its group."""

    __slots__ = ("_closed", "_command", "_grace", "_group", "_process", "_reading", "_stderr", "_stdout", "_waiting")

    def __init__(self, process: trio.Process, command: Command, grace: float, deadline: float) -> None:
        self._process = process
        self._command = command
        self._grace = grace
        self._group = ProcessGroup(process)
        self._stdout = Tail(command.stdout_limit)
        self._stderr = Tail(command.stderr_limit)
        # The readers go on while the group is being ended, or a process that writes its last words into a full pipe
        # would not get to its exit. Bounded: `_finish` cancels this scope, at the latest when the group is gone and
        # one grace has passed. Pinned by test_a_cancelled_command_gets_to_its_own_end.
        self._reading = trio.CancelScope(shield=True)
        self._closed = trio.Event()
        self._waiting = trio.CancelScope(deadline=deadline)

    async def run(self) -> Completed:
        stdout, stderr = cast("FdStream", self._process.stdout), cast("FdStream", self._process.stderr)
        with contextlib.closing(stdout), contextlib.closing(stderr):
            timed_out = await self._supervise(stdout, stderr)
        code = self._process.returncode
        assert code is not None, "the group is gone, so its leader is reaped"
        return Completed(
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            timed_out=timed_out,
            stdout=self._stdout.captured(),
            stderr=self._stderr.captured(),
        )

    async def _supervise(self, stdout: FdStream, stderr: FdStream) -> bool:
        patience = 0.0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, stdout, stderr)
            try:
                timed_out = await self._wait_for_leader()
                if self._process.returncode is not None and not self._group.gone():
                    await self._wait_for_pipes()
                patience = self._grace
            finally:
                # Covers the kill ladder and the last reads, so that no cancel comes between a group and its end. Lasts
                # at most the grace, the time the kernel takes to end killed processes, and another grace if a process
                # that left the group still holds a pipe. Pinned by
                # test_a_cancelled_command_leaves_no_process_of_its_group.
                with trio.CancelScope(shield=True):
                    await self._finish(patience)
            # The command has ended with a result: a cancel that comes now must not take it back. Covers the wait for
            # the readers, which `_finish` has told to stop. Only on this path: a shielded nursery would take the
            # caller's `Cancelled` for its own and swallow it. Pinned by
            # test_a_cancel_during_the_end_of_a_timed_out_command_leaves_its_result.
            nursery.cancel_scope.shield = True
        return timed_out

    async def _wait_for_leader(self) -> bool:
        """Wait for the leader's exit, the deadline or an overflow; whether it was the deadline."""
        # Nothing awaits between the delivery of `Cancelled` and the end of this block, so `cancelled_caught` is exact
        # here: a cancel from outside that comes in the same instant wins, one that comes later is too late.
        with self._waiting:
            await self._process.wait()
        return self._waiting.cancelled_caught and not self._cut

    async def _wait_for_pipes(self) -> None:
        """The leader has exited: give what it left behind one grace to close the pipes."""
        with trio.move_on_after(self._grace):
            async with trio.open_nursery() as nursery:
                # Watched meanwhile, so that its absence is noticed when it happens and not a whole grace later.
                nursery.start_soon(self._group.wait_gone)
                await self._closed.wait()
                nursery.cancel_scope.cancel()

    async def _finish(self, patience: float) -> None:
        await self._group.end(self._grace)
        with trio.move_on_after(patience):
            await self._closed.wait()
        self._reading.cancel()

    async def _read(self, stdout: FdStream, stderr: FdStream) -> None:
        with self._reading:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._collect, stdout, self._stdout)
                nursery.start_soon(self._collect, stderr, self._stderr)
        self._closed.set()

    async def _collect(self, stream: FdStream, tail: Tail) -> None:
        while chunk := await stream.receive_some(_CHUNK_BYTES):
            tail.feed(chunk)
            if self._cut:
                self._waiting.cancel()

    @property
    def _cut(self) -> bool:
        return self._command.stop_when_cut and self._stdout.overflowed


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between SIGRTMIN and SIGRTMAX
        return f"SIG{number}"
