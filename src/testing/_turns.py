"""One controlled run's order of tasks: asks a picker, keeps what it chose, and ends a run that stands still."""

from __future__ import annotations

import attrs
import trio

from ._choices import Granularity
from ._control import abandon
from ._errors import Deadlock, TooManySteps
from ._standstill import Standstill, is_trios, living_tasks, waiting_lines
from ._strategies import Picker, Point

__all__ = ["Turns"]

Task = trio.lowlevel.Task

_SPIN_LIMIT = 1_000
_LAST_STEPS = 2_000
"""Steps that the tasks of a run which is given up get to end by themselves, cancelled."""
_LAST_PATIENCE = 1.0
_SHOWN = 3


@attrs.frozen
class _Deviation:
    """A choice that was not the plain one: who went before whom, and how many more."""

    turn: int
    chosen: str
    passed: tuple[str, ...]
    more: int

    def __str__(self) -> str:
        others = f" and {self.more} more" if self.more else ""
        return f"turn {self.turn}: {self.chosen} before {', '.join(self.passed)}{others}"


class Turns:
    """What orders the tasks of one run. Given to ``controlled_order``.

    A run that stands still, takes too many steps, or whose picker raises, is ended: its tasks are cancelled and get
    some more steps to clean up; what then is left is closed, and the run crashes with a ``trio.TrioInternalError``.

    Attributes:
        choices: What was chosen at each moment with more than one option.
        granularity: What a choice decides; see ``Schedule``.
        picker: Whom to ask; may be replaced between two batches.
        max_steps: The run is given up after so many steps.
        steps: Steps that tasks of the scenario have taken.
        stopped: What ended the run from here: ``Deadlock``, ``TooManySteps``, or what the picker raised.
    """

    def __init__(self, picker: Picker, granularity: Granularity, *, max_steps: int, patience: float) -> None:
        self.choices: list[int] = []
        self.steps = 0
        self.stopped: BaseException | None = None
        self.picker = picker
        self.granularity: Granularity = granularity
        self.max_steps = max_steps
        self._counted_from = 0
        self._standstill = Standstill(patience)
        self._numbers: dict[Task, int] = {}
        self._current: Task | None = None
        self._in_a_row = 0
        self._deviations: list[_Deviation] = []
        self._last_steps = _LAST_STEPS

    def __call__(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        """Order one batch; see ``Arrange``."""
        if self.stopped is None:
            try:
                return self._arrange(tasks)
            except BaseException as error:  # noqa: ASYNC103, BLE001 - no task runs here; Hypothesis ends an example by raising from a draw
                self.stopped = error
                _cancel_everything()
                self._standstill.moved()
        return self._wind_up(tasks)

    def deviations(self) -> tuple[str, ...]:
        """A line for each choice other than the first option."""
        return tuple(map(str, self._deviations))

    def allow(self, steps: int) -> None:
        """Count anew: from here on the scenario may take so many steps."""
        self._counted_from, self.max_steps = self.steps, steps

    def close(self) -> None:
        """The run is over: let go of every task."""
        self._standstill.leave()
        self._numbers.clear()
        self._current = None
        if self.stopped is not None:
            self.stopped.__traceback__ = self.stopped.__context__ = None

    def _arrange(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        self._standstill.attend()
        own = [task for task in tasks if not is_trios(task)]
        trios = [task for task in tasks if is_trios(task)]
        if not own:
            if self._numbers:
                self._standstill.idle()
            return trios, []
        self._standstill.moved()
        for task in own:
            self._numbers.setdefault(task, len(self._numbers))
        if self.steps - self._counted_from >= self.max_steps:
            raise TooManySteps(self.max_steps, waiting_lines(living_tasks()))
        if self.granularity == "batch":
            return trios + self._whole_batch(own), []
        chosen = self._one_step(own)
        return [*trios, chosen], [task for task in own if task is not chosen]

    def _wind_up(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        """Let cancelled tasks end in the plain order; when they do not, close them and crash the run."""
        try:
            if all(map(is_trios, tasks)):
                self._standstill.idle(patience=_LAST_PATIENCE)
            else:
                self._standstill.moved()
                self._last_steps -= len(tasks)
        except Deadlock:
            self._last_steps = 0
        if self._last_steps > 0:
            return tasks, []
        abandon(living_tasks())
        assert self.stopped is not None
        raise self.stopped

    def _whole_batch(self, tasks: list[Task]) -> list[Task]:
        waiting = list(tasks)
        numbers = [self._numbers[task] for task in waiting]
        order: list[Task] = []
        while waiting:
            choice = self._pick(waiting, numbers)
            order.append(waiting.pop(choice))
            del numbers[choice]
        return order

    def _one_step(self, tasks: list[Task]) -> Task:
        options = list(tasks)
        if self._current in options:
            options.remove(self._current)
            # One that runs alone for so long waits in a loop for another: let the others go on, as trio would.
            if not options or self._in_a_row < _SPIN_LIMIT:
                options.insert(0, self._current)
        return options[self._pick(options, [self._numbers[task] for task in options])]

    def _pick(self, options: list[Task], numbers: list[int]) -> int:
        current = None if self._current is None else self._numbers[self._current]
        choice = self.picker(Point(self.steps, numbers, current))
        if isinstance(choice, bool) or not isinstance(choice, int) or not 0 <= choice < len(options):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"the strategy picked {choice!r} of {len(options)} options; a picker gives a place from 0"
            raise ValueError(msg)
        if len(options) > 1:
            self.choices.append(choice)
        chosen = options[choice]
        if choice:
            passed = options[:choice] if self.granularity == "batch" else options[:1]
            shown = tuple(self._label(task) for task in passed[:_SHOWN])
            self._deviations.append(_Deviation(self.steps, self._label(chosen), shown, len(passed) - len(shown)))
        self._in_a_row = self._in_a_row + 1 if chosen is self._current else 1
        self._current = chosen
        self.steps += 1
        return choice

    def _label(self, task: Task) -> str:
        return f"{task.name.rsplit('.', 1)[-1]}#{self._numbers[task]}"


def _cancel_everything() -> None:
    """Cancel the main task of the run, and with it all that it started; trio then cancels system tasks itself."""
    root = trio.lowlevel.current_root_task()
    # Trio's first task holds three nurseries, one in the other: of its own task, of system tasks, of the main task.
    if root is not None and len(root.child_nurseries) == 3:  # noqa: PLR2004 - as said
        root.child_nurseries[-1].cancel_scope.cancel()
