"""Replay: run a scenario again under a schedule that was written down."""

from __future__ import annotations

import warnings

import trio

from ._choices import Schedule
from ._errors import ReplayWarning
from ._run import ClockKind, Limits, Scenario, check_scenario, run_once
from ._strategies import Point

__all__ = ["Tape", "other_trio", "replay"]


def replay(
    scenario: Scenario,
    schedule: str | Schedule,
    *,
    clock: ClockKind = "virtual",
    max_steps: int = 100_000,
    patience: float = 5.0,
) -> object:
    """Run a scenario once under the schedule of a replay string, for instance in a debugger.

    Args:
        scenario: As it was given to ``explore``.
        schedule: A replay string, or what ``FailingSchedule.schedule`` holds.
        clock: As given to ``explore``.
        max_steps: As given to ``explore``.
        patience: As given to ``explore``.

    Returns:
        What the scenario returns, if it no longer fails.

    Raises:
        Exception: What the scenario raises, as it is.
        ValueError: The text is not a replay string.
        ScheduleControlError: This trio's order of tasks cannot be chosen.

    Warns:
        ReplayWarning: The string was made under another version of trio, whose tasks may take other steps.
    """
    check_scenario(scenario)
    wanted = schedule if isinstance(schedule, Schedule) else Schedule.parse(schedule)
    misfit = other_trio(wanted)
    if misfit is not None:
        warnings.warn(misfit, stacklevel=2)
    picker = Tape(wanted.choices)
    run = run_once(scenario, picker, wanted.granularity, Limits(clock, max_steps, patience))
    if run.error is not None:
        raise run.error
    if picker.misfits or picker.left:
        warnings.warn(
            "the scenario did not offer the recorded choices again, so its passing proves nothing: it was changed "
            "since, or depends on more than the order of its tasks (threads, time, the order of a set, chance)",
            ReplayWarning,
            stacklevel=2,
        )
    return run.value


class Tape:
    """Plays choices back, then takes the first option for ever.

    Attributes:
        left: Choices that have not been asked for.
        misfits: Choices of an option that was not there; the last one was taken instead.
    """

    def __init__(self, choices: tuple[int, ...]) -> None:
        self.left = list(reversed(choices))
        self.misfits = 0

    def __call__(self, point: Point) -> int:
        if len(point.options) == 1 or not self.left:
            return 0
        wanted = self.left.pop()
        self.misfits += wanted >= len(point.options)
        return min(wanted, len(point.options) - 1)


def other_trio(schedule: Schedule) -> ReplayWarning | None:
    """What to say of a schedule made under another version of trio than this one; ``None`` if it was not."""
    if schedule.trio_version == trio.__version__:
        return None
    return ReplayWarning(
        f"the replay string was made with trio {schedule.trio_version}, this is trio {trio.__version__}: tasks may "
        f"take other steps, so a pass proves nothing. Install trio=={schedule.trio_version} to be sure"
    )
