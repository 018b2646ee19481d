"""A batch with everything around it as one value: scripted tools and hooks, calls, and a cancel at a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import attrs
import trio

from ..journal import Event, Journal
from ..registry import PARALLEL, JsonValue, Outcome, Registry, Success, ToolCall, ToolDefinition
from ..registry._definitions import Concurrency
from ..schedule import Batch, open_runtime
from ._choices import Schedule
from ._explore import Exploration, explore
from ._fakes import ScriptedTool, Step, scripted_tool
from ._recording import Invocation
from ._run import Limits, run_once
from ._scripted import HookKind, Move, ScriptedHook, ScriptedJournal, scripted_hook
from ._strategies import fixed

__all__ = ["BatchResult", "BatchScenario"]

BatchEnding: TypeAlias = Literal["returned", "cancelled", "raised"]
Check: TypeAlias = "Callable[[BatchResult], object]"
_Act: TypeAlias = Callable[[Batch, trio.CancelScope], object]


@attrs.frozen
class BatchResult:
    """What a ``BatchScenario`` did.

    Attributes:
        outcomes: One a call, in model order; ``None`` only after a fault.
        events: What the journal holds.
        invocations: Every invocation of a scripted tool, in the order in which they began.
        hooks: Every call of a scripted hook, by kind, in the order in which they began.
        duration: Seconds of the run's clock until all had settled.
        how: ``returned``, ``cancelled`` (the scope around the batch), or ``raised``.
        error: What the batch raised, or ``None``.
    """

    outcomes: tuple[Outcome | None, ...]
    events: tuple[Event, ...]
    invocations: tuple[Invocation, ...]
    hooks: Mapping[str, tuple[Invocation, ...]]
    duration: float
    how: BatchEnding
    error: Exception | None = None

    @property
    def codes(self) -> tuple[str | None, ...]:
        """The code of each outcome; ``None`` for a success, and for a failure without one."""
        return tuple(None if outcome is None else outcome.code for outcome in self.outcomes)

    @property
    def values(self) -> tuple[JsonValue, ...]:
        """The value of each success, ``None`` for a failure."""
        return tuple(outcome.value if isinstance(outcome, Success) else None for outcome in self.outcomes)

    @property
    def timeline(self) -> tuple[str, ...]:
        """A line for each begin and end of a scripted body or hook, in the order of time: ``1.5 c0 a returned``."""
        noted = [("", self.invocations), *((f" {kind}", seen) for kind, seen in self.hooks.items())]
        lines: list[tuple[int, str]] = []
        for what, invocations in noted:
            for each in invocations:
                lines.append((each.begin_rank, f"{each.began:g} {each.call_id} {each.name}{what} begins"))
                if each.end_rank is not None:
                    lines.append((each.end_rank, f"{each.ended:g} {each.call_id} {each.name}{what} {each.how}"))
        return tuple(line for _, line in sorted(lines))


@attrs.frozen
class BatchScenario:
    """A batch of calls in a world of its own, written down in a few words; each method gives a new scenario.

    ``BatchScenario().tool("a", Returns(1, after=2)).call("a").call("a").cancel_at(1.5).run()``. The calls are ``c0``,
    ``c1``, ... in the order in which they are named. Everything is made anew for each run, so one scenario can be run
    many times and under many task orders. If an approver is scripted, every call has an agent to be asked.
    """

    _tools: tuple[Callable[[], ScriptedTool | ToolDefinition], ...] = ()
    _hooks: tuple[Callable[[], ScriptedHook], ...] = ()
    _setups: tuple[Callable[[Registry], object], ...] = ()
    _calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    _acts: tuple[tuple[float, _Act], ...] = ()
    _journal: Callable[[], Journal] = ScriptedJournal
    _options: Mapping[str, Any] = attrs.field(factory=dict[str, Any])

    def tool(
        self,
        name: str,
        *steps: Step,
        claims: Concurrency = PARALLEL,
        parameters: Mapping[str, JsonValue] | None = None,
        output: Mapping[str, JsonValue] | None = None,
    ) -> BatchScenario:
        """With a scripted tool; see ``scripted_tool``."""
        make = partial(scripted_tool, name, *steps, claims=claims, parameters=parameters, output=output)
        return attrs.evolve(self, tools=(*self._tools, make))

    def definition(self, make: Callable[[], ToolDefinition]) -> BatchScenario:
        """With a tool of yours.

        Args:
            make: Called once a run, so that each run can have a fresh one.
        """
        return attrs.evolve(self, tools=(*self._tools, make))

    def hook(self, kind: HookKind, *moves: Move) -> BatchScenario:
        """With a scripted hook, inside those before it; see ``scripted_hook``."""
        return attrs.evolve(self, hooks=(*self._hooks, partial(scripted_hook, kind, *moves)))

    def setup(self, prepare: Callable[[Registry], object]) -> BatchScenario:
        """With anything else in the registry: hooks of yours, guards.

        Args:
            prepare: Called once a run with the run's registry, after the tools and scripted hooks are in it.
        """
        return attrs.evolve(self, setups=(*self._setups, prepare))

    def call(self, name: str, /, **arguments: Any) -> BatchScenario:
        """With one more call, last in model order.

        Args:
            name: The tool.
            arguments: Any JSON.
        """
        return attrs.evolve(self, calls=(*self._calls, (name, arguments)))

    def journal(self, make: Callable[[], Journal]) -> BatchScenario:
        """With another journal.

        Args:
            make: Called once a run, such as ``lambda: ScriptedJournal(append_fails_at=3)``.
        """
        return attrs.evolve(self, journal=make)

    def options(self, **options: Any) -> BatchScenario:
        """With options of ``open_runtime``: ``max_parallel``, ``limits``, ``durability``, ``stall_after``."""
        return attrs.evolve(self, options={**self._options, **options})

    def cancel_at(self, time: float) -> BatchScenario:
        """With a cancel of the scope around the batch after so many seconds."""
        return self._act(time, lambda _batch, scope: scope.cancel())

    def cancel_batch_at(self, time: float, reason: str | None = None) -> BatchScenario:
        """With ``Batch.cancel`` after so many seconds."""
        return self._act(time, lambda batch, _scope: batch.cancel(reason))

    def drain_at(self, time: float, reason: str | None = None) -> BatchScenario:
        """With ``Batch.drain`` after so many seconds."""
        return self._act(time, lambda batch, _scope: batch.drain(reason))

    def cancel_call_at(self, time: float, index: int, reason: str | None = None) -> BatchScenario:
        """With ``Batch.cancel_call`` after so many seconds; makes the batch cancellable."""
        return self._act(time, lambda batch, _scope: batch.cancel_call(index, reason))

    def _act(self, time: float, act: _Act) -> BatchScenario:
        if time < 0:
            msg = f"a moment is in seconds from the start of the run, 0 or later; got {time!r}"
            raise ValueError(msg)
        return attrs.evolve(self, acts=(*self._acts, (time, act)))

    def run(self, schedule: str | Schedule | None = None) -> BatchResult:
        """Run it once, in a ``trio.run`` of its own on a virtual clock.

        Args:
            schedule: The order of tasks, or its replay string; the plain one if omitted.

        Returns:
            What happened. What the batch raises is in it, as ``error``.

        Raises:
            Deadlock: Nothing can go on, a ``Hangs`` that nobody cancels, say.
            BaseException: A scripted ``KeyboardInterrupt`` or the like, bare.
            ScheduleControlError: This trio's order of tasks cannot be chosen.
        """
        chosen = Schedule.parse(schedule) if isinstance(schedule, str) else schedule or Schedule(())
        results: list[BatchResult] = []

        async def whole() -> None:
            results.append(await self._perform())

        run = run_once(whole, fixed(chosen.choices), chosen.granularity, Limits())
        if run.error is not None:
            raise run.error
        return results[0]

    def explore(self, check: Check | None = None, **options: Any) -> Exploration:
        """Run it under many task orders; see ``explore``.

        Args:
            check: Given the result of each run; raises if it is wrong, as ``assert`` does.
            options: Those of ``explore``.

        Raises:
            FailingSchedule: An order under which the check or the run fails.
        """
        return explore(self.as_scenario(check), **options)

    def as_scenario(self, check: Check | None = None) -> Callable[[], Awaitable[BatchResult]]:
        """As an async callable for ``explore``, ``replay`` and other tools of the kit.

        Args:
            check: See ``explore``. Without one, what the batch raises is raised.

        Returns:
            It gives the result. A cancel from outside settles the batch and then propagates.
        """

        async def scenario() -> BatchResult:
            result = await self._perform()
            if check is not None:
                check(result)
            elif result.error is not None:
                raise result.error
            return result

        return scenario

    async def _perform(self) -> BatchResult:
        registry, journal = Registry(), self._journal()
        tools = [make() for make in self._tools]
        for tool in tools:
            registry.register(tool.definition if isinstance(tool, ScriptedTool) else tool)
        hooks = [make() for make in self._hooks]
        for hook in hooks:
            hook.register(registry)
        for prepare in self._setups:
            prepare(registry)
        agent = registry.scope(label="agent") if any(hook.kind == "approver" for hook in hooks) else None
        calls = [ToolCall(f"c{index}", name, dict(given), agent) for index, (name, given) in enumerate(self._calls)]
        began = trio.current_time()
        async with open_runtime(registry, journal=journal, **self._options) as runtime:
            batch = runtime.batch(calls, cancellable=True)
            how, error = await _run_amid(batch, self._acts)
        kinds = {hook.kind: [each for each in hooks if each.kind == hook.kind] for hook in hooks}
        return BatchResult(
            outcomes=batch.outcomes,
            events=tuple(getattr(journal, "events", ())),
            invocations=_merged([tool for tool in tools if isinstance(tool, ScriptedTool)]),
            hooks={kind: _merged(several) for kind, several in kinds.items()},
            duration=trio.current_time() - began,
            how=how,
            error=error,
        )


async def _run_amid(batch: Batch, acts: tuple[tuple[float, _Act], ...]) -> tuple[BatchEnding, Exception | None]:
    """Run the batch in a scope of its own while each act waits for its moment."""
    failed: BaseException | None = None
    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:

        async def wait(moment: float, act: _Act) -> None:
            await trio.sleep_until(moment)
            act(batch, scope)

        began = trio.current_time()
        for time, act in acts:
            nursery.start_soon(wait, began + time, act)
        try:
            with scope:
                await batch.run()
        except BaseException as error:  # noqa: ASYNC103, BLE001 - raised below, outside the nursery, which would wrap it
            failed = error
        nursery.cancel_scope.cancel()
    if isinstance(failed, Exception):
        return "raised", failed
    if failed is not None:
        raise failed
    return ("cancelled" if scope.cancelled_caught else "returned"), None


def _merged(several: list[ScriptedTool] | list[ScriptedHook]) -> tuple[Invocation, ...]:
    return tuple(sorted((each for one in several for each in one.invocations), key=lambda each: each.begin_rank))
