"""Run a scenario once, under a schedule that a picker chooses."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Literal, TypeAlias

import attrs
import trio
import trio.testing

from ._choices import Granularity, Schedule
from ._control import abandon, installed_order, require_control
from ._errors import Deadlock, TooManySteps
from ._strategies import Picker
from ._turns import Turns
from ._where import KIT_THREAD

__all__ = ["ClockKind", "Limits", "Run", "Scenario", "run_once", "stopped_by"]

Scenario: TypeAlias = Callable[[], Awaitable[object]]
ClockKind: TypeAlias = Literal["virtual", "real"]


@attrs.frozen
class Limits:
    """What one run may take, and its clock.

    Attributes:
        clock: ``virtual``: a mock clock that jumps to the next deadline when all tasks wait; ``real``: trio's own.
        max_steps: Steps after which the run is given up with ``TooManySteps``.
        patience: Real seconds that a run may stand still while a thread or descriptor could still wake it.
    """

    clock: ClockKind = attrs.field(default="virtual", validator=attrs.validators.in_(("virtual", "real")))
    max_steps: int = attrs.field(default=100_000, validator=attrs.validators.ge(1))
    patience: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))


@attrs.frozen
class Run:
    """What one run did.

    Attributes:
        error: What the scenario raised, or ``None``.
        value: What it returned.
        schedule: The choices that were made.
        turns: A line for each choice that was not the plain one.
        steps: Steps that its tasks took.
    """

    error: BaseException | None
    value: object
    schedule: Schedule
    turns: tuple[str, ...]
    steps: int


def run_once(
    scenario: Scenario,
    picker: Picker,
    granularity: Granularity,
    limits: Limits,
    instruments: Sequence[trio.abc.Instrument] = (),
) -> Run:
    """Run ``scenario`` in a ``trio.run`` of its own.

    Raises:
        RuntimeError: Called inside a run.
        ScheduleControlError: This trio's order of tasks cannot be chosen.
        KeyboardInterrupt: And any other exception that no scenario means: they end an exploration.
    """
    require_control()
    turns = Turns(picker, granularity, max_steps=limits.max_steps, patience=limits.patience)
    turns.ticks = int(limits.clock == "real")
    error: BaseException | None = None
    value: object = None
    clock = trio.testing.MockClock(autojump_threshold=0) if limits.clock == "virtual" else None
    try:
        with installed_order(turns):
            value = trio.run(_main, scenario, limits.clock, clock=clock, instruments=instruments)
    except trio.TrioInternalError:
        if turns.stopped is None:
            raise
    except Exception as raised:  # noqa: BLE001 - whatever the scenario raises is what is looked for
        error = raised
    if turns.stopped is not None:  # not in the clause above: its traceback would keep the tasks
        error = stopped_by(turns)
    schedule = Schedule(tuple(turns.choices), granularity, trio.__version__)
    return Run(error, value, schedule, turns.deviations(), turns.steps)


async def _main(scenario: Scenario, clock: ClockKind) -> object:
    if clock == "virtual":
        return await scenario()
    with _ticking():
        return await scenario()


@contextlib.contextmanager
def _ticking() -> Generator[None]:
    """Wake the loop now and then, so that a run that stands still under trio's own clock is noticed."""
    over = threading.Event()
    token = trio.lowlevel.current_trio_token()

    def tick() -> None:
        while not over.wait(0.25):
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(lambda: None, idempotent=True)

    threading.Thread(target=tick, name=f"{KIT_THREAD} ticks", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def stopped_by(turns: Turns) -> Exception:
    """What a run was given up for, after clearing away what it left; call this when ``turns.stopped`` is set.

    Raises:
        BaseException: It was not a finding but what the picker raised: Hypothesis ends an example in this way.
    """
    assert turns.stopped is not None
    error = turns.stopped.with_traceback(None)
    error.__context__ = None
    _discard(turns)
    if isinstance(error, Deadlock | TooManySteps):
        return error
    raise error


def _discard(turns: Turns) -> None:
    """Close what a run that was given up left behind, so that it does not complain when it is collected."""

    def ignore(_complaint: Any) -> None: ...

    before = sys.unraisablehook
    sys.unraisablehook = ignore
    try:
        abandon(turns.left)
        turns.forget()
        gc.collect()
    finally:
        sys.unraisablehook = before
