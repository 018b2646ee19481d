"""Run a scenario once, under a schedule that a picker chooses."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

import attrs
import trio
import trio.testing

from ._choices import Granularity, Schedule
from ._control import installed_order, require_control, without_complaints
from ._errors import BadScenarioError, Deadlock, TooManySteps
from ._groups import leaves
from ._strategies import Picker
from ._turns import Turns

__all__ = ["ClockKind", "Limits", "Run", "Scenario", "check_scenario", "is_finding", "run_once", "stopped_by"]

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
        KeyboardInterrupt: And whatever else ``is_finding`` does not take for one.
    """
    require_control()
    turns = Turns(picker, granularity, max_steps=limits.max_steps, patience=limits.patience)
    error: BaseException | None = None
    value: object = None
    clock = trio.testing.MockClock(autojump_threshold=0) if limits.clock == "virtual" else None
    try:
        with installed_order(turns):
            value = trio.run(_main, scenario, clock=clock, instruments=instruments)
    except BaseException as raised:  # noqa: ASYNC103, BLE001 - sorted below; no checkpoint is near
        error = raised  # noqa: ASYNC104 - the run is over
    finally:
        turns.close()
    if turns.stopped is not None:
        with without_complaints():
            error = None  # its traceback keeps the tasks of a run that was given up
        error = stopped_by(turns)
    if error is not None and not is_finding(error):
        raise next((leaf for leaf in leaves(error) if isinstance(leaf, KeyboardInterrupt)), error)
    schedule = Schedule(tuple(turns.choices), granularity, trio.__version__)
    return Run(error, value, schedule, turns.deviations(), turns.steps)


async def _main(scenario: Scenario) -> object:
    awaitable: object = scenario()
    if not inspect.isawaitable(awaitable):
        msg = f"a scenario is an async function without arguments; {scenario!r} returned {awaitable!r:.80}"
        raise BadScenarioError(msg)
    return await awaitable


def check_scenario(scenario: object) -> None:
    """Refuse what cannot be run again and again.

    Raises:
        BadScenarioError: It is not a function, or needs arguments.
    """
    if inspect.iscoroutine(scenario):
        scenario.close()
        msg = "give the async function itself, not what it returned: a coroutine runs only once"
        raise BadScenarioError(msg)
    if not callable(scenario):
        msg = f"a scenario is an async function without arguments, got {scenario!r}"
        raise BadScenarioError(msg)
    try:
        inspect.signature(scenario).bind()
    except TypeError as error:
        msg = f"a scenario takes no arguments, but {scenario!r} does: {error}. Give them with functools.partial"
        raise BadScenarioError(msg) from None
    except ValueError:  # a callable whose parameters Python cannot tell
        return


def is_finding(error: BaseException) -> bool:
    """Whether what a run raised says something of the scenario.

    Ctrl-C does not, nor what Hypothesis and pytest raise to steer a test; ``pytest.fail`` does.
    """
    return all(_speaks_of_the_scenario(leaf) for leaf in leaves(error))


def _speaks_of_the_scenario(error: BaseException) -> bool:
    if isinstance(error, KeyboardInterrupt | BadScenarioError):
        return False
    if isinstance(error, Exception) and not isinstance(error, trio.TrioInternalError):
        return True
    if isinstance(error, trio.TrioInternalError):
        return False
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not packages & {"hypothesis", "_pytest"} or type(error).__name__ == "Failed"


def stopped_by(turns: Turns) -> Exception:
    """What a run was given up for; call this when ``turns.stopped`` is set, and let go of what the run raised before.

    Raises:
        BaseException: It was not a finding but what the picker raised: Hypothesis ends an example in this way.
    """
    assert turns.stopped is not None
    turns.close()
    error = turns.stopped
    if isinstance(error, Deadlock | TooManySteps):
        return error
    raise error
