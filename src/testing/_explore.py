"""Explore: run a scenario under many orders of its tasks, and shrink the first that fails."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from ._errors import FailingSchedule
from ._groups import leaves
from ._replay import Tape
from ._run import ClockKind, Limits, Run, Scenario, check_scenario, run_once
from ._shrink import Choices, shrink
from ._strategies import Exhaustive, Pct, RandomOrder, Strategy

__all__ = ["Exploration", "StrategyName", "explore", "find_failure"]

StrategyName: TypeAlias = Literal["random", "pct", "exhaustive"]

_SHRINK_RUNS = 500


@attrs.frozen
class Exploration:
    """What an exploration did.

    Attributes:
        runs: How many runs were made, those for shrinking left out.
        distinct: How many different schedules they were.
        complete: Whether no schedule was left to try; only ``Exhaustive`` can say so.
        failure: What was found, or ``None``.
    """

    runs: int
    distinct: int
    complete: bool
    failure: FailingSchedule | None


def explore(
    scenario: Scenario,
    *,
    strategy: StrategyName | Strategy = "random",
    runs: int = 100,
    seed: int = 0,
    clock: ClockKind = "virtual",
    max_steps: int = 100_000,
    patience: float = 5.0,
) -> Exploration:
    """Run an async callable under many task orders, and raise what fails with the smallest schedule that shows it.

    Each run is a ``trio.run`` of its own, so ``scenario`` must build all it uses; call this from plain functions. It
    fails when it raises anything but Ctrl-C, when nothing can go on (``Deadlock``), or when it does not end
    (``TooManySteps``).

    Args:
        scenario: What to run; takes nothing, its value is not looked at.
        strategy: ``random`` (``RandomOrder``), ``pct`` (``Pct``), ``exhaustive`` (``Exhaustive``), or one of these
            or your own as an object.
        runs: Most runs; ``Exhaustive`` may end earlier.
        seed: Of the random strategies, if named.
        clock: ``virtual`` jumps to the next deadline when all tasks wait. Take ``real`` for scenarios that wait for
            processes or sockets; they are not repeatable in every detail.
        max_steps: Most steps of one run.
        patience: Real seconds that a run may stand still.

    Returns:
        How much was tried, when nothing failed.

    Raises:
        FailingSchedule: A schedule under which the scenario fails. Its cause is what the scenario raised.
        ScheduleControlError: This trio's order of tasks cannot be chosen.
        ValueError: An argument makes no sense.
        BadScenarioError: The scenario is not an async function without arguments.

    Source: ours; docs/testing.md.
    """
    found = find_failure(
        scenario, strategy=strategy, runs=runs, seed=seed, clock=clock, max_steps=max_steps, patience=patience
    )
    if found.failure is not None:
        raise found.failure from found.failure.error
    return found


def find_failure(
    scenario: Scenario,
    *,
    strategy: StrategyName | Strategy = "random",
    runs: int = 100,
    seed: int = 0,
    clock: ClockKind = "virtual",
    max_steps: int = 100_000,
    patience: float = 5.0,
) -> Exploration:
    """Like ``explore``, but returns what was found instead of raising it.

    Raises:
        ScheduleControlError: This trio's order of tasks cannot be chosen.
        ValueError: An argument makes no sense.
        BadScenarioError: The scenario is not an async function without arguments.
    """
    check_scenario(scenario)
    if runs < 1:
        msg = f"runs must be at least 1, got {runs!r}"
        raise ValueError(msg)
    limits = Limits(clock, max_steps, patience)
    chosen = _strategy(strategy, seed)
    seen: set[Choices] = set()
    count = 0
    for picker in chosen.pickers():
        if count == runs:
            return Exploration(count, len(seen), complete=False, failure=None)
        count += 1
        run = run_once(scenario, picker, chosen.granularity, limits)
        seen.add(run.schedule.choices)
        if run.error is not None:
            return Exploration(count, len(seen), complete=False, failure=_smallest(scenario, run, limits, count))
    return Exploration(count, len(seen), complete=True, failure=None)


def _strategy(strategy: StrategyName | Strategy, seed: int) -> Strategy:
    match strategy:
        case "random":
            return RandomOrder(seed)
        case "pct":
            return Pct(seed=seed)
        case "exhaustive":
            return Exhaustive()
        case _ if not hasattr(strategy, "pickers") or not hasattr(strategy, "granularity"):
            msg = f"strategy must be 'random', 'pct', 'exhaustive' or a Strategy, got {strategy!r}"
            raise ValueError(msg)
        case _:
            return strategy


def _smallest(scenario: Scenario, first: Run, limits: Limits, count: int) -> FailingSchedule:
    """Shrink a failing run, and say what is left of it."""
    kind = _kind(first.error)
    failing = first

    def fails(choices: Choices) -> Choices | None:
        nonlocal failing
        run = run_once(scenario, Tape(choices), first.schedule.granularity, limits)
        if run.error is None or _kind(run.error) != kind:
            return None
        failing = run
        return run.schedule.choices

    turns: tuple[str, ...]
    if fails(first.schedule.choices) is None:
        schedule = first.schedule
        turns = ("it did not fail again under the same choices: it depends on more than the order of its tasks",)
    else:
        schedule = attrs.evolve(first.schedule, choices=shrink(failing.schedule.choices, fails, _SHRINK_RUNS))
        turns = failing.turns
    assert failing.error is not None
    return FailingSchedule(_name(scenario), failing.error, schedule, count, turns)


def _kind(error: BaseException | None) -> frozenset[type]:
    """What makes two failures the same: the types of all that was raised."""
    return frozenset() if error is None else frozenset(type(leaf) for leaf in leaves(error))


def _name(scenario: Scenario) -> str:
    return str(getattr(scenario, "__qualname__", None) or getattr(scenario, "func", scenario))
