"""One controlled run's order of tasks: asks a picker, keeps what it chose, and notices when nothing can go on."""

from __future__ import annotations

import time
from collections.abc import Iterable

import attrs
import trio

from ._choices import Granularity
from ._errors import Deadlock, TooManySteps
from ._strategies import Picker, Point
from ._where import all_tasks, busy_threads, place_of_task, waits_for_thread

__all__ = ["Turns"]

Task = trio.lowlevel.Task

_TRIOS_OWN = ("<init>", "<TrioToken.run_sync_soon task>")
_SPIN_LIMIT = 1_000
_IDLE_TURNS = 3
_NAP = 0.0005
"""Real seconds that a run which waits for a thread gives to it."""


@attrs.frozen
class _Deviation:
    turn: int
    chosen: str
    passed: tuple[str, ...]


class Turns:
    """What orders the tasks of one run. Given to ``controlled_order``.

    Attributes:
        choices: What was chosen at each moment with more than one option.
        ticks: How many calls that only wake the loop may be in its queue: 1 if a thread makes such, else 0.
        granularity: What a choice decides; see ``Schedule``.
        picker: Whom to ask; may be replaced between two batches.
        steps: Steps that tasks of the scenario have taken.
        stopped: What ended the run from here: ``Deadlock``, ``TooManySteps``, or what the picker raised.
        left: All tasks, trio's own too, that were there when the run was given up, parents first; else empty.
    """

    def __init__(self, picker: Picker, granularity: Granularity, *, max_steps: int, patience: float) -> None:
        self.choices: list[int] = []
        self.ticks = 0
        self.steps = 0
        self.stopped: BaseException | None = None
        self.left: tuple[Task, ...] = ()
        self.picker = picker
        self.granularity: Granularity = granularity
        self._max_steps = max_steps
        self._patience = patience
        self._numbers: dict[Task, int] = {}
        self._current: Task | None = None
        self._in_a_row = 0
        self._idle = 0
        self._idle_since = 0.0
        self._deviations: list[_Deviation] = []
        self._threads_before = frozenset(busy_threads())

    def __call__(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        """Order one batch; see ``Arrange``."""
        try:
            return self._arrange(tasks)
        except BaseException as error:
            # Hypothesis ends an example by raising from a draw, for one.
            self.left = _tasks()
            self.stopped = error
            raise

    def _arrange(self, tasks: list[Task]) -> tuple[list[Task], list[Task]]:
        own = [task for task in tasks if not _is_trios(task)]
        trios = [task for task in tasks if _is_trios(task)]
        for task in own:
            self._numbers.setdefault(task, len(self._numbers))
        if not own:
            self._idle_turn()
            return trios, []
        self._idle = 0
        if self.steps >= self._max_steps:
            raise TooManySteps(self._max_steps, _lines(_tasks()))
        if self.granularity == "batch":
            return trios + self._whole_batch(own), []
        chosen = self._one_step(own)
        return [*trios, chosen], [task for task in own if task is not chosen]

    def deviations(self) -> tuple[str, ...]:
        """A line for each choice other than the first option."""
        return tuple(
            f"turn {found.turn}: {found.chosen} before {', '.join(found.passed)}" for found in self._deviations
        )

    def forget(self) -> None:
        """Let go of every task."""
        self.left = ()
        self._numbers.clear()
        self._current = None

    def _whole_batch(self, tasks: list[Task]) -> list[Task]:
        waiting = list(tasks)
        order: list[Task] = []
        while waiting:
            order.append(waiting.pop(self._pick(waiting)))
        return order

    def _one_step(self, tasks: list[Task]) -> Task:
        options = list(tasks)
        if self._current in options:
            options.remove(self._current)
            # One that runs alone for so long waits in a loop for another: let the others go on, as trio would.
            if not options or self._in_a_row < _SPIN_LIMIT:
                options.insert(0, self._current)
        return options[self._pick(options)]

    def _pick(self, options: list[Task]) -> int:
        current = None if self._current is None else self._numbers[self._current]
        choice = self.picker(Point(self.steps, tuple(self._numbers[task] for task in options), current))
        if not 0 <= choice < len(options):
            msg = f"the strategy picked option {choice} of {len(options)}"
            raise IndexError(msg)
        if len(options) > 1:
            self.choices.append(choice)
        chosen = options[choice]
        if choice:
            passed = options[:choice] if self.granularity == "batch" else options[:1]
            self._deviations.append(
                _Deviation(self.steps, self._label(chosen), tuple(self._label(task) for task in passed))
            )
        self._in_a_row = self._in_a_row + 1 if chosen is self._current else 1
        self._current = chosen
        self.steps += 1
        return choice

    def _label(self, task: Task) -> str:
        return f"{task.name.rsplit('.', 1)[-1]}#{self._numbers[task]}"

    def _idle_turn(self) -> None:
        """Nothing of the scenario can run: give up when nothing can ever wake it."""
        now = time.monotonic()
        self._idle += 1
        if self._idle == 1:
            self._idle_since = now
        if self._idle < _IDLE_TURNS or not self._numbers:
            return
        statistics = trio.lowlevel.current_statistics()
        if statistics.run_sync_soon_queue_size > self.ticks or statistics.seconds_to_next_deadline != float("inf"):
            return
        tasks = _tasks()
        if (
            _waits_for_descriptors(statistics.io_statistics)
            or busy_threads(self._threads_before)
            or any(map(waits_for_thread, tasks))
        ):
            if now - self._idle_since < self._patience:
                time.sleep(_NAP)  # noqa: ASYNC251 - nothing of the run can go on, and a thread needs the interpreter
                return
            because = f"nothing happened for {self._patience:g} s, though a thread or descriptor may yet wake a task"
        else:
            because = "every task waits, and nothing is left that could wake one"
        if not all(map(_is_trios, tasks)):  # else the scenario is over, and trio is about to be
            raise Deadlock(_lines(tasks), because)


def _tasks() -> tuple[Task, ...]:
    root = trio.lowlevel.current_root_task()
    return () if root is None else tuple(all_tasks(root))


def _is_trios(task: Task) -> bool:
    return task.name in _TRIOS_OWN


def _lines(tasks: Iterable[Task]) -> tuple[str, ...]:
    """Where each stands, without those that only wait for their children."""
    return tuple(
        f"{task.name} at {place_of_task(task)}"
        for task in tasks
        if not _is_trios(task) and not any(nursery.child_tasks for nursery in task.child_nurseries)
    )


def _waits_for_descriptors(statistics: object) -> bool:
    # trio itself always waits for one descriptor to be readable: that which wakes it from other threads.
    reading = getattr(statistics, "tasks_waiting_read", 1)
    return reading > 1 or getattr(statistics, "tasks_waiting_write", 0) > 0
