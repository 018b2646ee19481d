"""For your tests and ours: find the order of tasks, the cancel or the fault that breaks a tool, and replay it."""

from ._choices import Granularity, Schedule
from ._drawn import DrawnSchedule, schedules
from ._errors import (
    Deadlock,
    FailingSchedule,
    MissingExtraError,
    ReplayWarning,
    ScheduleControlError,
    TooManySteps,
)
from ._explore import Exploration, StrategyName, explore, find_failure
from ._inject import Cancels, ProbedScenario, cancel_everywhere, fail_everywhere
from ._injector import Finding, Injection, InjectionError
from ._leftovers import Leftover, LeftoverError, LeftoverKind, Leftovers, watch_leftovers
from ._replay import replay
from ._run import Scenario
from ._strategies import Exhaustive, Pct, Picker, Point, RandomOrder, Strategy
from ._strike import Probe

__all__ = [
    "Cancels",
    "Deadlock",
    "DrawnSchedule",
    "Exhaustive",
    "Exploration",
    "FailingSchedule",
    "Finding",
    "Granularity",
    "Injection",
    "InjectionError",
    "Leftover",
    "LeftoverError",
    "LeftoverKind",
    "Leftovers",
    "MissingExtraError",
    "Pct",
    "Picker",
    "Point",
    "Probe",
    "ProbedScenario",
    "RandomOrder",
    "ReplayWarning",
    "Scenario",
    "Schedule",
    "ScheduleControlError",
    "Strategy",
    "StrategyName",
    "TooManySteps",
    "cancel_everywhere",
    "explore",
    "fail_everywhere",
    "find_failure",
    "replay",
    "schedules",
    "watch_leftovers",
]
