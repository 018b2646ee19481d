"""``quiesce run``."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

from ..adapters import encode
from ..errors import SchedulerFault
from ..policies import Deadline
from ..registry import Outcome, Registry
from ..schedule import Batch, open_runtime
from ..tools import builtin_tools
from ._input import BadInputError, Message, read_message
from ._show import print_outcomes, show_live

__all__ = ["RunOptions", "run"]

STALL_AFTER = 60.0
"""Seconds after which a call is shown as stalled."""


@attrs.frozen
class RunOptions:
    """What the command line asks for.

    Attributes:
        file: Path of the message, or ``-``.
        workspace: Where the tools work, or ``None`` for a fresh temporary directory.
        as_json: Whether to print messages instead of outcomes.
        max_parallel: Size of the pool.
        deadline: Seconds a call, or ``None``.
    """

    file: str
    workspace: Path | None
    as_json: bool
    max_parallel: int
    deadline: float | None


@attrs.define
class Result:
    """How the batch ended.

    Attributes:
        outcomes: Those that are committed, in model order.
        signal: The signal that ended it early, or ``None``.
        fault: What broke, or ``None``.
    """

    outcomes: list[Outcome] = attrs.field(factory=list[Outcome])
    signal: int | None = None
    fault: SchedulerFault | None = None


def run(options: RunOptions) -> int:
    """Run the calls of one message and print what came of them; returns the exit code.

    Raises:
        BadInputError: The message or the workspace cannot be used.
    """
    message = read_message(options.file)
    with _workspace(options.workspace) as workspace:
        result = trio.run(_run, message, options, workspace)
    if options.as_json:
        print(encode(message.format.messages(result.outcomes, document=message.document), pretty=True), flush=True)
    else:
        print_outcomes(result.outcomes)
    if result.fault is not None:
        return _report_fault(result.fault)
    if result.signal is not None:
        return 128 + result.signal
    return 1 if any(outcome.is_error for outcome in result.outcomes) else 0


def _report_fault(fault: SchedulerFault) -> int:
    print(f"quiesce: {fault}", file=sys.stderr)
    for status in fault.statuses:
        print(f"quiesce: call {status.index} {status.name} ({status.call_id}): {status.state}", file=sys.stderr)
    return 3


@contextmanager
def _workspace(given: Path | None) -> Generator[Path]:
    """The folder to work in; a fresh one is removed again if nothing was left in it."""
    if given is not None:
        if not given.is_dir():
            msg = f"--workspace {given}: is not a directory; make it first, or leave the option out for a fresh one"
            raise BadInputError(msg)
        yield given.resolve()
        return
    fresh = Path(tempfile.mkdtemp(prefix="quiesce-"))
    try:
        yield fresh
    finally:
        try:
            fresh.rmdir()
        except OSError:
            print(f"quiesce: the calls left files in {fresh}", file=sys.stderr)


async def _run(message: Message, options: RunOptions, workspace: Path) -> Result:
    registry = Registry()
    for tool in builtin_tools(workspace):
        registry.register(tool)
    Deadline(default=options.deadline, cap=options.deadline).install(registry)
    result = Result()
    async with open_runtime(registry, max_parallel=options.max_parallel, stall_after=STALL_AFTER) as runtime:
        batch = runtime.batch(message.calls)
        # While the receiver is open no signal raises KeyboardInterrupt anywhere, so none can be lost on the way.
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_heed_signals, signals, batch, result)
                async with trio.open_nursery() as showing:
                    showing.start_soon(show_live, batch.events(), message.calls)
                    try:
                        await batch.run()
                    except SchedulerFault as fault:
                        result.fault = fault
                nursery.cancel_scope.cancel()
    result.outcomes = [outcome for outcome in batch.outcomes if outcome is not None]
    return result


async def _heed_signals(signals: AsyncIterator[int], batch: Batch, result: Result) -> None:
    """The first signal cancels the batch, which then settles; a further one shows what it still waits for."""
    async for number in signals:
        name = signal.Signals(number).name
        if result.signal is None:
            result.signal = number
            print(f"quiesce: {name}: cancelling, and waiting until everything has settled", file=sys.stderr)
            batch.cancel(name)
            continue
        for pending in batch.pending():
            print(f"quiesce: still settling: {pending}", file=sys.stderr)
