"""One run of a tool under watch: what came of its calls, how often its body ran, and what the world was like."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Awaitable, Callable
from typing import cast

import attrs
import trio

from ..errors import ToolError
from ..registry import Arguments, JsonValue, Outcome, Registry, RunContext, ToolCall, ToolDefinition
from ..registry._definitions import Bind
from ..schedule import open_runtime
from ._groups import leaves
from ._run import Limits, run_once
from ._strategies import Picker, fixed

__all__ = ["Seen", "ToolProbe"]


@attrs.frozen
class Seen:
    """What one run showed.

    Attributes:
        definition: The tool as it ran.
        outcomes: One a call, in order.
        invoked: How often the body was invoked, over all calls.
        escaped: What bodies raised that is neither a ``ToolError`` nor allowed: class name and text.
        error: What the run raised, ``Deadlock`` and ``TooManySteps`` included, or ``None``.
        before: What was observed before the run, or ``None`` if nobody observes.
        after: What was observed after it.
        steps: Steps of all tasks.
    """

    definition: ToolDefinition
    outcomes: tuple[Outcome | None, ...]
    invoked: int
    escaped: tuple[tuple[str, str], ...]
    error: BaseException | None
    before: object
    after: object
    steps: int


@attrs.define
class _Notes:
    allowed: tuple[type[BaseException], ...]
    invoked: int = 0
    escaped: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])

    def raised(self, error: BaseException) -> None:
        for leaf in leaves(error):
            if not isinstance(leaf, (ToolError, trio.Cancelled, *self.allowed)):
                self.escaped.append((type(leaf).__name__, f"{leaf!s:.200}"))


class _StepCounter(trio.abc.Instrument):
    """Counts steps and cancels a scope after one of them.

    Attributes:
        steps: Steps since the scope was opened.
        scope: Set by the scenario once it begins.
    """

    def __init__(self, cancel_after: int | None) -> None:
        self.steps = 0
        # Weak: a run that is given up must be able to let go of its tasks, and a scope holds them.
        self.scope: weakref.ref[trio.CancelScope] | None = None
        self._cancel_after = cancel_after

    def after_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 - trio's
        if self.scope is not None:
            self.steps += 1
            scope = self.scope()
            if self.steps == self._cancel_after and scope is not None:
                scope.cancel()


class ToolProbe:
    """Runs a tool again and again.

    Attributes:
        runs: How many runs were made.
    """

    def __init__(
        self,
        make: Callable[[], ToolDefinition],
        observe: Callable[[], object] | None,
        allowed: tuple[type[BaseException], ...],
        limits: Limits,
    ) -> None:
        self.runs = 0
        self._make = make
        self._observe = observe
        self._allowed = allowed
        self._limits = limits

    def run(
        self,
        *arguments: JsonValue,
        picker: Picker | None = None,
        max_parallel: int = 10,
        cancel_after: int | None = None,
    ) -> Seen:
        """Run one batch.

        Args:
            arguments: Of each call, in order.
            picker: The order of tasks; the plain one if ``None``.
            max_parallel: 1 runs the calls one after the other.
            cancel_after: The step after which the scope around the batch is cancelled, from 1, or ``None``.
        """
        self.runs += 1
        definition = self._make()
        before = self._look()
        notes, counter = _Notes(self._allowed), _StepCounter(cancel_after)
        registry = Registry()
        registry.register(attrs.evolve(definition, bind=_noting(definition, notes)))
        calls = [ToolCall(f"c{index}", definition.name, each) for index, each in enumerate(arguments)]
        outcomes: list[Outcome | None] = []

        async def scenario() -> None:
            try:
                async with open_runtime(registry, max_parallel=max_parallel) as runtime:
                    batch = runtime.batch(calls)
                    try:
                        with trio.CancelScope() as scope:
                            counter.scope = weakref.ref(scope)
                            await batch.run()
                    finally:
                        outcomes.extend(batch.outcomes)
            except (SystemExit, GeneratorExit):
                return  # a body raised it; it is noted there

        run = run_once(scenario, picker or fixed(()), "batch", self._limits, (counter,))
        return Seen(
            definition,
            tuple(outcomes),
            notes.invoked,
            tuple(notes.escaped),
            run.error,
            before,
            self._look(),
            counter.steps,
        )

    def _look(self) -> object:
        # A copy: what is observed may be the world itself, which goes on changing.
        return None if self._observe is None else copy.deepcopy(self._observe())


def _noting(definition: ToolDefinition, notes: _Notes) -> Bind:
    """The way to the definition's body, with notes of what it does."""

    def bind(arguments: Arguments, run: RunContext | None) -> Callable[[], object]:
        try:
            body = definition.bind(arguments, run)
        except BaseException as error:
            notes.raised(error)
            raise

        def invoke() -> object:
            notes.invoked += 1
            try:
                return body()
            except BaseException as error:
                notes.raised(error)
                raise

        async def invoke_async() -> object:
            notes.invoked += 1
            try:
                return await cast("Awaitable[object]", body())
            except BaseException as error:
                notes.raised(error)
                raise

        return invoke if definition.is_sync else invoke_async

    return bind
