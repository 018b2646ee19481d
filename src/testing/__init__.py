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
from ._replay import replay
from ._run import Scenario
from ._strategies import Exhaustive, Pct, Picker, Point, RandomOrder, Strategy

__all__ = [
    "Deadlock",
    "DrawnSchedule",
    "Exhaustive",
    "Exploration",
    "FailingSchedule",
    "Granularity",
    "MissingExtraError",
    "Pct",
    "Picker",
    "Point",
    "RandomOrder",
    "ReplayWarning",
    "Scenario",
    "Schedule",
    "ScheduleControlError",
    "Strategy",
    "StrategyName",
    "TooManySteps",
    "explore",
    "find_failure",
    "replay",
    "schedules",
]
