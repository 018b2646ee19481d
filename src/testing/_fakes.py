"""A tool that plays a script on the run's clock and notes what was done with it, and the clock that makes it quick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import attrs
import trio
import trio.testing

from ..registry import PARALLEL, Arguments, JsonValue, Output, RunContext, ToolDefinition, define_raw_tool
from ..registry._definitions import Concurrency
from ._recording import Invocation, Recorder

__all__ = [
    "Drains",
    "Hangs",
    "Ignores",
    "Raises",
    "Returns",
    "ScriptedTool",
    "Step",
    "script_of",
    "scripted_tool",
    "virtual_clock",
]

Value: TypeAlias = "JsonValue | Callable[[Arguments], JsonValue]"


def virtual_clock() -> trio.testing.MockClock:
    """A clock for ``trio.run(..., clock=virtual_clock())`` that starts at 0 and jumps over every wait.

    It moves only when all tasks are blocked, and then straight to the next deadline: a script of many seconds takes
    no time, and each time that is read is exact. To act at a moment, ``await trio.sleep_until(moment)`` in a task of
    its own. What is due at one moment happens in any order. A worker thread or a child process does not hold the clock:
    while every task waits, it jumps past the deadlines of the others, so race real work against nothing.
    """
    return trio.testing.MockClock(autojump_threshold=0)


@runtime_checkable
class Step(Protocol):
    """What one invocation of a scripted tool does; any object with this method is one."""

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:
        """Be the body of one invocation.

        Args:
            arguments: The frozen arguments.
            run: As any tool may take it.
        """
        ...


def _value(value: Value, arguments: Arguments) -> JsonValue:
    return value(arguments) if callable(value) else value


_seconds = attrs.validators.ge(0.0)


@attrs.frozen
class Returns:
    """Return a value.

    Attributes:
        value: JSON, or a function that makes it from the arguments.
        after: Seconds first; with 0 a single checkpoint.
    """

    value: Value = None
    after: float = attrs.field(default=0.0, validator=_seconds)

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:  # noqa: ARG002 - see Step
        """See ``Step``."""
        await trio.sleep(self.after)
        return _value(self.value, arguments)


@attrs.frozen
class Raises:
    """Raise an error.

    Attributes:
        error: An exception, or a class of them that takes no arguments.
        after: Seconds first.
    """

    error: BaseException | type[BaseException]
    after: float = attrs.field(default=0.0, validator=_seconds)

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:  # noqa: ARG002 - see Step
        """See ``Step``."""
        await trio.sleep(self.after)
        # One exception may be raised by many runs: it must not collect their tracebacks, which keep their tasks alive.
        raise self.error if isinstance(self.error, type) else self.error.with_traceback(None)


@attrs.frozen
class Hangs:
    """Wait until cancelled."""

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:  # noqa: ARG002 - see Step
        """See ``Step``."""
        await trio.sleep_forever()


@attrs.frozen
class Drains:
    """Return a value; when cancelled, tidy up under a shield and then return it all the same.

    Attributes:
        value: As in ``Returns``.
        after: Seconds if it is not cancelled.
        cleanup: Seconds that tidying up takes, from the cancel.
    """

    value: Value = None
    after: float = attrs.field(default=1.0, validator=_seconds)
    cleanup: float = attrs.field(default=1.0, validator=_seconds)

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:  # noqa: ARG002 - see Step
        """See ``Step``."""
        try:
            await trio.sleep(self.after)
        except trio.Cancelled:  # noqa: ASYNC103 - a body that answers a cancel with its value is what this fakes
            # Shields the tidying up, for `cleanup` seconds. The scope stays cancelled: later checkpoints raise again.
            # Pinned by test_a_draining_tool_tidies_up_and_its_value_is_kept_aside.
            with trio.CancelScope(shield=True):
                await trio.sleep(self.cleanup)
        return _value(self.value, arguments)


@attrs.frozen
class Ignores:
    """Return a value after so many seconds, and take no notice of a cancel meanwhile.

    Attributes:
        value: As in ``Returns``.
        after: Seconds.
    """

    value: Value = None
    after: float = attrs.field(default=1.0, validator=_seconds)

    async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:  # noqa: ARG002 - see Step
        """See ``Step``."""
        # Shields all of the body, for `after` seconds: that is what it fakes.
        with trio.CancelScope(shield=True):
            await trio.sleep(self.after)
        return _value(self.value, arguments)


T = TypeVar("T")


def script_of(script: Sequence[T], number: int) -> T:
    """What the invocation of this number plays: the last part of a script goes on for ever."""
    return script[min(number, len(script) - 1)]


class ScriptedTool:
    """A tool that plays a script. Made by ``scripted_tool``.

    Attributes:
        definition: To be registered; may be registered in several places, whose invocations all count.
    """

    def __init__(self, name: str, steps: tuple[Step, ...], options: dict[str, Any]) -> None:
        self._steps = steps
        self._recorder = Recorder()
        self.definition: ToolDefinition = define_raw_tool(name, execute=self._execute, **options)

    def __repr__(self) -> str:
        return f"<ScriptedTool {self.definition.name!r}, {len(self.invocations)} invocations>"

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """Every invocation so far, in the order in which they began."""
        return self._recorder.invocations

    async def _execute(self, arguments: Arguments, run: RunContext) -> object:
        def play(number: int) -> Awaitable[object]:
            return script_of(self._steps, number).play(arguments, run)

        return await self._recorder.note(self.definition.name, run.call_id, arguments, play)


def scripted_tool(
    name: str,
    *steps: Step,
    claims: Concurrency = PARALLEL,
    parameters: Mapping[str, JsonValue] | None = None,
    output: Mapping[str, JsonValue] | None = None,
    timeout_ms: float | None = None,
) -> ScriptedTool:
    """A tool whose first invocation plays the first step, the second the second, and whose last step is repeated.

    Args:
        name: As the model calls it.
        steps: ``Returns``, ``Raises``, ``Hangs``, ``Drains``, ``Ignores``, or any ``Step``; ``Returns(None)`` if
            there is none.
        claims: What a call touches, as ``concurrency`` of ``quiesce.tool``.
        parameters: JSON Schema of the arguments; any object by default.
        output: JSON Schema of the value; any JSON by default.
        timeout_ms: As of any tool.

    Returns:
        The tool: ``registry.register(it.definition)``, then look at ``it.invocations``.

    Raises:
        TypeError: A step is not one.
    """
    for step in cast("tuple[object, ...]", steps):
        if not isinstance(step, Step):
            msg = f'scripted_tool("{name}"): {step!r:.80} is no step; write Returns(...), Raises(...) or the like'
            raise TypeError(msg)
    options: dict[str, Any] = {
        "description": "A scripted tool.",
        "parameters": {"type": "object"} if parameters is None else parameters,
        "output": Output({} if output is None else output),
        "concurrency": claims,
        "timeout_ms": timeout_ms,
    }
    return ScriptedTool(name, steps or (Returns(),), options)
