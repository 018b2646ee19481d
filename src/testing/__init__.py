"""For your tests and ours: find the order of tasks, the cancel or the fault that breaks a tool, and replay it."""

from ._check_tool import ToolCheckError, ToolReport, check_tool
from ._choices import Granularity, Schedule
from ._drawn import DrawnSchedule, schedules
from ._errors import (
    BadScenarioError,
    Deadlock,
    FailingSchedule,
    MissingExtraError,
    ReplayWarning,
    ScheduleControlError,
    TooManySteps,
)
from ._explore import Exploration, StrategyName, explore, find_failure
from ._fakes import (
    Drains,
    Hangs,
    Ignores,
    Raises,
    Returns,
    ScriptedTool,
    Step,
    scripted_tool,
    virtual_clock,
)
from ._inject import Cancels, ProbedScenario, cancel_everywhere, fail_everywhere
from ._injector import Finding, Injection, InjectionError
from ._leftovers import Leftover, LeftoverError, LeftoverKind, Leftovers, watch_leftovers
from ._recording import Invocation
from ._replay import replay
from ._run import Scenario
from ._scenario import BatchResult, BatchScenario
from ._scripted import Decides, Proceeds, ScriptedHook, ScriptedJournal, scripted_hook
from ._strategies import Exhaustive, Pct, Picker, Point, RandomOrder, Strategy
from ._strike import Probe
from ._tool_rules import ToolFinding
from ._trace import Recorded, TraceError, TraceSource, check_trace, trace_violations
from ._trace_records import Violation

__all__ = [
    "BadScenarioError",
    "BatchResult",
    "BatchScenario",
    "Cancels",
    "Deadlock",
    "Decides",
    "Drains",
    "DrawnSchedule",
    "Exhaustive",
    "Exploration",
    "FailingSchedule",
    "Finding",
    "Granularity",
    "Hangs",
    "Ignores",
    "Injection",
    "InjectionError",
    "Invocation",
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
    "Proceeds",
    "Raises",
    "RandomOrder",
    "Recorded",
    "ReplayWarning",
    "Returns",
    "Scenario",
    "Schedule",
    "ScheduleControlError",
    "ScriptedHook",
    "ScriptedJournal",
    "ScriptedTool",
    "Step",
    "Strategy",
    "StrategyName",
    "TooManySteps",
    "ToolCheckError",
    "ToolFinding",
    "ToolReport",
    "TraceError",
    "TraceSource",
    "Violation",
    "cancel_everywhere",
    "check_tool",
    "check_trace",
    "explore",
    "fail_everywhere",
    "find_failure",
    "replay",
    "schedules",
    "scripted_hook",
    "scripted_tool",
    "trace_violations",
    "virtual_clock",
    "watch_leftovers",
]
