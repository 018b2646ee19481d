"""What the kit raises, so that a test can tell a finding from a fault of the kit's surroundings."""

from __future__ import annotations

from ._choices import Schedule
from ._groups import only_leaf

__all__ = [
    "BadScenarioError",
    "Deadlock",
    "FailingSchedule",
    "MissingExtraError",
    "ReplayWarning",
    "ScheduleControlError",
    "TooManySteps",
]


class BadScenarioError(TypeError):
    """What was given as a scenario cannot be run as one."""


class ScheduleControlError(RuntimeError):
    """The order of tasks cannot be controlled with this version of trio.

    Attributes:
        problem: What is missing.
    """

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"{problem}. Task orders cannot be chosen with it; quiesce.testing is made for trio 0.31 to 0.35. Install "
            f"one of these, or run the scenario with trio.run, without exploring."
        )

    def __reduce__(self) -> tuple[type[ScheduleControlError], tuple[str]]:
        return type(self), (self.problem,)


class MissingExtraError(ImportError):
    """Something of the kit needs a package that is not installed."""

    def __init__(self, feature: str, package: str) -> None:
        super().__init__(f"{feature} needs {package}: pip install 'quiesce[testing]'", name=package)


class ReplayWarning(UserWarning):
    """A replay string was made under another trio, or the scenario did not offer the recorded choices again."""


class Deadlock(AssertionError):  # noqa: N818 - what was found, not an error of the caller's
    """Every task waits, nothing is due, and no thread or file descriptor can wake one.

    Attributes:
        waiting: One line for each waiting task: its name and where it stands.
    """

    def __init__(self, waiting: tuple[str, ...], because: str) -> None:
        super().__init__("\n".join([f"{because}:", *(f"  {line}" for line in waiting)]))
        self.waiting = waiting
        self._because = because

    def __reduce__(self) -> tuple[type[Deadlock], tuple[tuple[str, ...], str]]:
        return type(self), (self.waiting, self._because)


class TooManySteps(AssertionError):  # noqa: N818 - as above
    """The scenario did not end within the number of steps allowed: probably it spins."""

    def __init__(self, limit: int, waiting: tuple[str, ...]) -> None:
        self._limit = limit
        head = f"not over after {limit} steps (raise max_steps if it may take more):"
        super().__init__("\n".join([head, *(f"  {line}" for line in waiting)]))
        self.waiting = waiting

    def __reduce__(self) -> tuple[type[TooManySteps], tuple[int, tuple[str, ...]]]:
        return type(self), (self._limit, self.waiting)


class FailingSchedule(AssertionError):  # noqa: N818 - as above
    """A scenario fails under a schedule. The scenario's own exception is the ``__cause__``.

    Attributes:
        error: What the scenario raised, ``Deadlock`` and ``TooManySteps`` included.
        schedule: The smallest failing schedule found.
        run: The number of the run that failed first, from 1.
        turns: What the schedule does differently from the plain one, a line for each deviation.
    """

    def __init__(self, name: str, error: BaseException, schedule: Schedule, run: int, turns: tuple[str, ...]) -> None:
        shown = only_leaf(error)
        lines = [f"{name} fails in run {run}: {type(shown).__name__}: {_text(shown)}"]
        lines += [f"  {turn}" for turn in turns] or ["  in the plain order of tasks"]
        lines.append(f"again: quiesce.testing.replay({name}, {str(schedule)!r})")
        super().__init__("\n".join(lines))
        self.error = error
        self.schedule = schedule
        self.run = run
        self.turns = turns
        self._name = name

    def __reduce__(self) -> tuple[type[FailingSchedule], tuple[str, BaseException, Schedule, int, tuple[str, ...]]]:
        return type(self), (self._name, self.error, self.schedule, self.run, self.turns)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the scenario's __str__ must not hide what was found
        return "<its text cannot be made>"
