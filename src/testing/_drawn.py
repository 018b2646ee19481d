"""Schedules that Hypothesis draws, so that it shrinks and remembers them with the rest of an example."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any

from ._errors import MissingExtraError
from ._run import ClockKind, Limits, run_once
from ._strategies import Point

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["DrawnSchedule", "schedules"]


class DrawnSchedule:
    """An order of tasks that is drawn while a scenario runs: what ``schedules()`` gives.

    Attributes:
        replay_string: The schedule of the last run, for ``replay``; ``None`` before it.
    """

    def __init__(self, random: Random) -> None:
        self.replay_string: str | None = None
        self._random = random

    def __repr__(self) -> str:
        """The schedule, once it is known."""
        return f"DrawnSchedule({'not run yet' if self.replay_string is None else repr(self.replay_string)})"

    def pick(self, point: Point) -> int:
        """A ``Picker`` that draws; 0 is the simplest."""
        return self._random.randrange(len(point.options)) if len(point.options) > 1 else 0

    def run(
        self,
        scenario: Callable[..., Awaitable[object]],
        *args: Any,
        clock: ClockKind = "virtual",
        max_steps: int = 100_000,
        patience: float = 5.0,
    ) -> object:
        """Run ``scenario(*args)`` in a ``trio.run`` of its own, under this order; may be called again.

        Args:
            scenario: An async callable.
            args: For it.
            clock: See ``explore``.
            max_steps: See ``explore``.
            patience: See ``explore``.

        Returns:
            What the scenario returns.

        Raises:
            Exception: What the scenario raises, ``Deadlock`` and ``TooManySteps`` included.
        """
        from hypothesis import note  # noqa: PLC0415 - an extra

        async def whole() -> object:
            return await scenario(*args)

        run = run_once(whole, self.pick, "batch", Limits(clock, max_steps, patience))
        self.replay_string = str(run.schedule)
        if run.error is not None:
            note(f"schedule: {self.replay_string}")
            for turn in run.turns:
                note(f"  {turn}")
            raise run.error
        return run.value


def schedules() -> SearchStrategy[DrawnSchedule]:
    """A Hypothesis strategy for orders of tasks.

    Every choice of the run is drawn from the example, so that shrinking the example shrinks the interleaving too, and
    Hypothesis' database replays it. Inside ``@given`` trio's own seed is pinned: without this, all examples run one
    schedule.

    Raises:
        MissingExtraError: Hypothesis is not installed.
    """
    try:
        from hypothesis import strategies  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("schedules()", "hypothesis") from error

    @strategies.composite
    def drawn(draw: strategies.DrawFn) -> DrawnSchedule:
        return DrawnSchedule(draw(strategies.randoms(use_true_random=False)))

    return drawn()
