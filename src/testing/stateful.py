"""Hypothesis' rule-based state machines with async rules: one run of trio for each example.

Import ``rule``, ``initialize``, ``invariant`` and ``precondition`` from here; the first three take async functions.
Each rule runs to its end under an order of tasks that is drawn for it, beside the background tasks of ``self.nursery``;
between two rules nothing moves. Time is virtual.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import trio

from ._drawn import DrawnSchedule, schedules
from ._errors import MissingExtraError
from ._guest import SteppedRun
from ._strategies import fixed

try:
    from hypothesis import note, stateful
    from hypothesis.stateful import precondition
except ImportError as error:
    raise MissingExtraError("quiesce.testing.stateful", "hypothesis") from error

__all__ = ["TrioStateMachine", "initialize", "invariant", "precondition", "rule"]

F = TypeVar("F", bound=Callable[..., Any])


class TrioStateMachine(stateful.RuleBasedStateMachine):
    """Base of state machines whose rules are async.

    Override ``close`` to end what the machine opened; it is called within the run, once, after the last rule.

    Attributes:
        max_steps: Most steps of one rule; a rule that takes more fails with ``TooManySteps``.
        patience: Real seconds that a rule may stand still while a thread or descriptor could wake it.
    """

    max_steps = 20_000
    patience = 5.0

    def __init__(self) -> None:
        super().__init__()
        self._run = SteppedRun(max_steps=self.max_steps, patience=self.patience)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "teardown" in cls.__dict__:
            msg = f"{cls.__name__}.teardown: override the async method close() instead; teardown() ends the run of trio"
            raise TypeError(msg)

    @property
    def nursery(self) -> trio.Nursery:
        """For tasks that outlive a rule; cancelled at the end of the example. Their failure fails the example."""
        return self._run.nursery

    async def close(self) -> None:
        """Called after the last rule, before the nursery is cancelled. Does nothing here."""

    def teardown(self) -> None:
        """End the example's run: called by Hypothesis."""
        try:
            if not self._run.over:
                self._run.call(self.close, fixed(()))
        finally:
            self._run.close()

    def perform(self, call: Callable[[], Awaitable[Any]], schedule: DrawnSchedule | None = None) -> Any:
        """Run an async call within the example's run, to its end.

        Args:
            call: Takes nothing.
            schedule: The order of tasks meanwhile; the plain one if ``None``.

        Returns:
            Its value.
        """
        known = len(self._run.deviations())
        try:
            return self._run.call(call, fixed(()) if schedule is None else schedule.pick)
        finally:
            for turn in self._run.deviations()[known:]:
                note(f"    # {turn}")


def _is_async(function: Callable[..., Any]) -> bool:
    """Also of one that another decorator of Hypothesis has wrapped."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def _scheduled(decorate: Callable[..., Any], options: dict[str, Any]) -> Callable[[F], F]:
    def decorator(function: F) -> F:
        if not _is_async(function):
            return cast("F", decorate(**options)(function))

        @functools.wraps(function)
        def step(self: TrioStateMachine, /, order_of_tasks: DrawnSchedule, **arguments: Any) -> Any:
            return self.perform(lambda: function(self, **arguments), order_of_tasks)

        # Hypothesis reads the parameters of the function that it is given.
        parameters = list(inspect.signature(function).parameters.values())
        own = inspect.Parameter("order_of_tasks", inspect.Parameter.KEYWORD_ONLY, annotation=DrawnSchedule)
        step.__signature__ = inspect.Signature([*parameters, own])  # type: ignore[attr-defined]
        return cast("F", decorate(**options, order_of_tasks=schedules())(step))

    return decorator


def rule(**options: Any) -> Callable[[F], F]:
    """``hypothesis.stateful.rule`` for async functions; plain ones stay as they are.

    Args:
        options: ``target``, ``targets`` and a strategy for each parameter, as there.
    """
    return _scheduled(stateful.rule, options)


def initialize(**options: Any) -> Callable[[F], F]:
    """``hypothesis.stateful.initialize`` for async functions.

    Args:
        options: As there.
    """
    return _scheduled(stateful.initialize, options)


def invariant(*, check_during_init: bool = False) -> Callable[[F], F]:
    """``hypothesis.stateful.invariant`` for async functions, which run in the plain order of tasks.

    Args:
        check_during_init: As there.
    """

    def decorator(function: F) -> F:
        if not _is_async(function):
            return stateful.invariant(check_during_init=check_during_init)(function)

        @functools.wraps(function)
        def check(self: TrioStateMachine) -> None:
            self.perform(lambda: function(self))

        return cast("F", stateful.invariant(check_during_init=check_during_init)(check))

    return decorator
