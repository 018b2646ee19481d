"""Strategies: how the choices of many runs are made. Pure; they never see a task, only its number."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol, TypeAlias

import attrs

from ._choices import Granularity

__all__ = ["Exhaustive", "Pct", "Picker", "Point", "RandomOrder", "Strategy", "fixed"]


@attrs.frozen
class Point:
    """A moment at which a task is about to run.

    Only those with two or more options are choices of a ``Schedule``; at the others the answer is 0.

    Attributes:
        step: How many steps tasks have taken in this run, from 0.
        options: The tasks that could run next, as numbers in the order of their first appearance; 1 or more. It
            changes once the picker has answered: copy what you keep.
        current: The task that ran last, or ``None`` before the first.
    """

    step: int
    options: Sequence[int]
    current: int | None


Picker: TypeAlias = Callable[[Point], int]
"""Gives the place in ``options`` of the task that runs next. Out of range is an error."""


class Strategy(Protocol):
    """Makes the choices of run after run."""

    @property
    def granularity(self) -> Granularity:
        """What a choice decides; see ``Schedule``."""
        ...

    def pickers(self) -> Iterator[Picker]:
        """One picker a run, in order; ends when no schedule is left to try.

        A picker has made the choices of its whole run before the next one is asked for.
        """
        ...


def fixed(choices: tuple[int, ...]) -> Picker:
    """Takes these choices one after the other, then 0 for ever."""
    left = iter(choices)
    return lambda point: next(left, 0) if len(point.options) > 1 else 0


@attrs.frozen
class RandomOrder:
    """Each choice uniform and independent.

    Attributes:
        seed: The same seed gives the same runs.
        granularity: See ``Schedule``.
    """

    seed: int = 0
    granularity: Granularity = "batch"

    def pickers(self) -> Iterator[Picker]:
        """See ``Strategy``; never ends."""
        generator = random.Random(self.seed)  # noqa: S311 - schedules, not secrets
        while True:
            run = random.Random(generator.getrandbits(64))  # noqa: S311

            def pick(point: Point, run: random.Random = run) -> int:
                return run.randrange(len(point.options))

            yield pick


@attrs.frozen
class Pct:
    """Probabilistic concurrency testing: random priorities, changed at few random moments.

    The task of the highest priority runs. Every task draws its priority when it first appears; at ``depth - 1`` random
    steps the task that is about to run falls below all others. A bug that needs ``depth`` ordering constraints is
    found by one run with probability of at least ``1 / (n * k ** (depth - 1))``, for n tasks and k steps.

    Source: Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of
    Finding Bugs, ASPLOS 2010. The bound needs ``step``: in a ``batch`` all tasks take their turn, however low.

    Attributes:
        depth: Ordering constraints that the bug needs; 1 or more.
        steps: k, if you know it; else taken from the longest run so far, the first of which changes no priority.
        seed: The same seed gives the same runs.
        granularity: See ``Schedule``.
    """

    depth: int = attrs.field(default=3, validator=attrs.validators.ge(1))
    steps: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    seed: int = 0
    granularity: Granularity = "step"

    def pickers(self) -> Iterator[Picker]:
        """See ``Strategy``; never ends."""
        generator = random.Random(self.seed)  # noqa: S311
        longest = self.steps or 0
        while True:
            changes = [generator.randrange(longest) for _ in range(self.depth - 1)] if longest else []
            run = _PctRun(random.Random(generator.getrandbits(64)), changes)  # noqa: S311
            yield run
            longest = self.steps or max(longest, run.steps)


class _PctRun:
    """The priorities of one run.

    Attributes:
        steps: Steps seen so far.
    """

    def __init__(self, generator: random.Random, changes: list[int]) -> None:
        self.steps = 0
        self._generator = generator
        self._changes = sorted(changes)
        self._priorities: dict[int, float] = {}
        self._lowest = 0.0

    def __call__(self, point: Point) -> int:
        for task in point.options:
            self._priorities.setdefault(task, 1 + self._generator.random())
        self.steps = point.step + 1
        while self._changes and self._changes[0] <= point.step:
            # Each change puts the task below those that earlier changes put below the rest.
            self._changes.pop(0)
            self._lowest -= 1
            self._priorities[self._highest(point)] = self._lowest
        return point.options.index(self._highest(point))

    def _highest(self, point: Point) -> int:
        return max(point.options, key=self._priorities.__getitem__)


_CHANGED = (
    "the scenario did not offer the same choices again, so not every schedule of it can be visited: an exhaustive "
    "search needs a scenario whose runs differ in nothing but the order of tasks (no threads, no chance, no state that "
    "is kept between runs)"
)


@attrs.frozen
class Exhaustive:
    """Every schedule once, the plain one first; for small scenarios.

    Attributes:
        preemptions: Most deviations from the plain schedule in one run, or ``None`` for no bound. With ``step``, a
            deviation takes the turn from a task that could have gone on; with ``batch``, it lets a younger task go
            first. Two find most bugs (Musuvathi, Qadeer: Iterative Context Bounding, PLDI 2007).
        granularity: See ``Schedule``.
    """

    preemptions: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(0)))
    granularity: Granularity = "batch"

    def pickers(self) -> Generator[Picker]:
        """See ``Strategy``; ends after the last schedule."""
        prefix: list[int] = []
        expected: list[int] = []
        while True:
            run = _ExhaustiveRun(prefix, expected, self.granularity)
            yield run
            run.require_end()
            expected = run.counts
            following = run.following(self.preemptions)
            if following is None:
                return
            prefix = following


class _ExhaustiveRun:
    """One path through the tree of schedules: a prefix, then the first child at each node.

    Attributes:
        counts: How many options there were at each choice.
    """

    def __init__(self, prefix: list[int], expected: list[int], granularity: Granularity) -> None:
        self.counts: list[int] = []
        self._prefix = prefix
        self._expected = expected
        self._granularity = granularity
        self._taken: list[int] = []
        self._free: list[bool] = []

    def __call__(self, point: Point) -> int:
        if len(point.options) == 1:
            return 0
        place = len(self._taken)
        if place < len(self._prefix) and len(point.options) != self._expected[place]:
            raise ValueError(_CHANGED)
        choice = self._prefix[place] if place < len(self._prefix) else 0
        self.counts.append(len(point.options))
        self._free.append(self._granularity == "step" and point.options[0] != point.current)
        self._taken.append(choice)
        return choice

    def require_end(self) -> None:
        """Raise if the run was over before its prefix was."""
        if len(self._taken) < len(self._prefix):
            raise ValueError(_CHANGED)

    def following(self, bound: int | None) -> list[int] | None:
        """The prefix of the next path in depth-first order within the bound; ``None`` after the last."""
        costs = [self._cost(place, choice) for place, choice in enumerate(self._taken)]
        for place in range(len(self._taken) - 1, -1, -1):
            choice = self._taken[place] + 1
            if choice == self.counts[place]:
                continue
            spent = sum(costs[:place]) + self._cost(place, choice)
            if bound is None or spent <= bound:
                return [*self._taken[:place], choice]
        return None

    def _cost(self, place: int, choice: int) -> int:
        return 0 if not choice or self._free[place] else 1
