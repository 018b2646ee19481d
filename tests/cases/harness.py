"""Runs one recorded scenario against quiesce under virtual time, and gives its trace in the recorded form.

See ``data/README.md`` for the form. Code of a scenario that does not look at its signal (hooks, wrappers, bodies that
ignore or drain) shields its waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from quiesce import (
    Accept,
    Allow,
    Block,
    Deny,
    Output,
    Registry,
    RunContext,
    Success,
    ToolCall,
    ToolDefinition,
    ToolError,
    define_tool,
    open_runtime,
)
from quiesce.actors import Execution, Pipeline
from quiesce.errors import SchedulerFault
from quiesce.journal import Event, ToolCallStarted, ToolResult
from quiesce.registry import CallView, DispatchView, Outcome, Registration

TICK = 0.01
Json = dict[str, Any]


@attrs.define
class Recording:
    """What a scenario shows: its trace, and how its turn ended."""

    trace: list[Json] = attrs.field(factory=list[Json])
    kept: list[str] = attrs.field(factory=list[str])
    cancelled: bool = False
    concluded: bool = False

    def note(self, ev: str, **fields: object) -> None:
        self.trace.append({"t": round(trio.current_time() / TICK), "ev": ev, **fields})

    def cancel(self) -> None:
        self.cancelled = True
        self.kept.clear()
        self.note("cancel")


@attrs.define
class TraceJournal:
    """Turns journal records into trace events."""

    recording: Recording

    def append(self, event: Event) -> None:
        if isinstance(event, ToolCallStarted):
            self.recording.note("call_started", id=event.request.call_id)
        elif isinstance(event, ToolResult):
            code = None if event.error is None else event.error.code
            blocks: list[Json] = [dict(block) for block in event.content if isinstance(block, dict)]
            text = "\n".join(block["text"] for block in blocks)
            self.recording.note("result", id=event.call_id, is_error=event.is_error, code=code, text=text)
            for context in event.contexts:
                self.recording.note("context", text=context)
                self.recording.kept.append(str(context))

    async def flush(self) -> None:
        await trio.lowlevel.checkpoint()


async def shielded_sleep(ticks: int) -> None:
    """Wait without looking at any signal; no checkpoint at all for no ticks."""
    if ticks:
        with trio.CancelScope(shield=True):
            await trio.sleep(ticks * TICK)


def classifier(kind: str) -> Any:
    """The classifier of a recorded tool."""

    def throws(_: object) -> bool:
        raise RuntimeError(kind)

    def by_arg(arguments: Json) -> bool:
        return arguments.get("safe") is True

    def returns(value: object) -> Callable[[object], object]:
        return lambda _: value

    return {
        "true": returns(True),
        "false": returns(False),
        "absent": None,
        "throws": throws,
        "truthy": returns(1),
        "by_arg": by_arg,
    }[kind]


class World:
    """A scenario's registry, with its tools and its one hook of each kind."""

    def __init__(self, scenario: Json, recording: Recording, scope: trio.CancelScope) -> None:
        self.scenario = scenario
        self.recording = recording
        self.scope = scope
        self.registry = Registry()
        self.bodies = {call["id"]: call.get("body", {}) for call in scenario["calls"]}
        self.tools: dict[str, Registration] = {}
        for name, tool in scenario["tools"].items():
            self.tools[name] = self.registry.register(self.tool(name, tool["classifier"]))
        self.registry.pre_execute(self.pre)
        self.registry.guard(self.guard)
        self.registry.around(self.around)
        self.registry.post_execute(self.post)
        self.registry.on_result(self.observe)

    def entry(self, kind: str, call_id: str) -> Json:
        """What a hook of the scenario does for a call; nothing unless it says so."""
        nothing: Json = {"ticks": 0, "decision": "allow"}
        return next(iter(self.entries(kind, call_id)), nothing)

    def entries(self, kind: str, call_id: str) -> list[Json]:
        found: list[Json] = self.scenario.get(kind) or []
        return [entry for entry in found if entry["call"] == call_id]

    def tool(self, name: str, kind: str) -> ToolDefinition:
        return define_tool(
            name,
            description="A recorded tool.",
            parameters={"safe": {"type": "boolean"}},
            output=Output({"type": "string"}),
            execute=self.body,
            is_concurrency_safe=classifier(kind),
        )

    async def body(self, _: object, run: RunContext) -> object:
        spec = self.bodies[run.call_id]
        self.recording.note("body_enter", id=run.call_id)
        if "context" in spec:
            run.defer_context(spec["context"])
        if spec.get("conclude"):
            run.conclude_turn()
        interrupted = await self.live(spec)
        self.recording.note("body_exit", id=run.call_id, interrupted=interrupted)
        if interrupted and spec["after_cancel"] == "throw":
            raise ToolError("stopped")
        outcome = spec["outcome"]
        if outcome == "return":
            return f"ok:{run.call_id}"
        if outcome == "invalid_output":
            return 42
        _, _, code = outcome.partition(":")
        raise ToolError(f"boom:{run.call_id}", code or None)

    async def live(self, spec: Json) -> bool:
        """Spend the body's time; whether its signal ended it."""
        how, _, drain = spec["on_cancel"].partition(":")
        if how == "ignore":
            await shielded_sleep(spec["ticks"])
            return False
        try:
            await trio.sleep(spec["ticks"] * TICK)
        except trio.Cancelled:  # noqa: ASYNC103
            await shielded_sleep(int(drain or 0))  # noqa: ASYNC102
            return True  # noqa: ASYNC104
        return False

    async def pre(self, call: CallView, proceed: Callable[[], Awaitable[Any]]) -> Any:
        self.recording.note("pre_enter", id=call.call_id)
        entry = self.entry("pre", call.call_id)
        await shielded_sleep(entry["ticks"])
        self.recording.note("pre_exit", id=call.call_id)
        decision, _, text = entry["decision"].partition(":")
        if decision == "throw":
            raise ToolError(text)
        return Deny(text) if decision == "deny" else Allow()

    def guard(self, call: CallView) -> str | None:
        return next((entry["reason"] for entry in self.entries("guards", call.call_id)), None)

    async def around(self, call: DispatchView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        kinds = [entry["kind"].partition(":") for entry in self.entries("around", call.call_id)]

        async def layer(position: int) -> Outcome:
            if position == len(kinds):
                return await proceed()
            kind, _, number = kinds[position]
            ticks = int(number or 0)
            if kind in ("deadline", "signal_deadline"):
                with call.deadline(ticks * TICK) as deadline:
                    outcome = await layer(position + 1)
                if deadline.fired and kind == "deadline":
                    return call.fail(f"tool call timed out after {10 * ticks}ms", "TOOL_TIMEOUT")
                return outcome
            if kind == "short_circuit":
                return call.succeed(f"short:{call.call_id}")
            if kind == "throw":
                raise ToolError(f"around:{call.call_id}")
            await shielded_sleep(ticks if kind == "delay_before" else 0)
            outcome = await layer(position + 1)
            if kind == "throw_after":
                raise ToolError(f"around:{call.call_id}")
            await shielded_sleep(ticks if kind == "delay_after" else 0)
            return outcome

        return await layer(0)

    async def post(self, call: CallView, outcome: Outcome, proceed: Callable[[], Awaitable[Any]]) -> Any:
        self.recording.note("post_enter", id=call.call_id)
        entry = self.entry("post", call.call_id)
        await shielded_sleep(entry["ticks"])
        self.recording.note("post_exit", id=call.call_id)
        contexts = (entry["context"],) if "context" in entry else ()
        decision, _, text = entry["decision"].partition(":")
        if decision == "throw":
            raise ToolError(f"post:{call.call_id}")
        if decision == "block":
            return Block(text, contexts=contexts)
        if decision == "replace_content":
            return Accept(content=text, contexts=contexts)
        if decision == "replace_value":
            return Accept(value=text, contexts=contexts)
        return Accept(contexts=contexts)

    def observe(self, call: CallView, outcome: Outcome) -> None:
        self.recording.concluded |= isinstance(outcome, Success) and outcome.concludes_turn
        changes: list[Json] = self.scenario.get("mutate") or []
        for change in changes:
            if change["after_result_of"] == call.call_id:
                name, kind = change["tool"], change["classifier"]
                self.tools[name].unregister()
                if kind != "removed":
                    self.tools[name] = self.registry.register(self.tool(name, kind))
        if self.scenario.get("cancel_after_result_of") == call.call_id:
            self.recording.cancel()
            self.scope.cancel()


@attrs.frozen
class BrokenPipeline(Pipeline):
    """A pipeline with an internal fault in one stage for one call."""

    fault: Json = attrs.field(kw_only=True)

    async def _maybe_break(self, stage: str, execution: Execution) -> None:
        if self.fault["stage"] == stage and self.fault["call"] == execution.call.call_id:
            await shielded_sleep(self.fault["ticks"])
            raise RuntimeError(f"fault:{execution.call.call_id}")

    async def prepare(self, execution: Execution) -> Outcome | None:
        await self._maybe_break("prepare", execution)
        return await super().prepare(execution)

    async def dispatch(self, execution: Execution) -> Outcome:
        await self._maybe_break("dispatch", execution)
        return await super().dispatch(execution)

    async def finalize(self, execution: Execution, outcome: Outcome) -> Outcome:
        await self._maybe_break("finalize", execution)
        return await super().finalize(execution, outcome)


def call_of(call: Json) -> ToolCall:
    text = call.get("raw_arguments")
    if text is None:
        text = "{}" if call.get("safe") is None else '{"safe": %s}' % ("true" if call["safe"] else "false")
    return ToolCall.from_text(call["id"], call["tool"], text)


async def play(scenario: Json) -> Json:
    """Run a scenario; returns its trace and end."""
    recording, scope = Recording(), trio.CancelScope()
    world = World(scenario, recording, scope)
    failed: str | None = None

    async def cancel_later(ticks: int) -> None:
        await trio.sleep(ticks * TICK)
        recording.cancel()
        scope.cancel()

    pipeline = BrokenPipeline(fault=scenario["fault"]) if scenario.get("fault") else Pipeline()
    async with trio.open_nursery() as nursery:
        if scenario["cancel_at"] == 0:
            recording.cancel()
            scope.cancel()
        elif scenario["cancel_at"] is not None:
            nursery.start_soon(cancel_later, scenario["cancel_at"])
        try:
            with scope:
                async with open_runtime(
                    world.registry,
                    max_parallel=scenario["max_parallel"],
                    journal=TraceJournal(recording),
                    pipeline=pipeline,
                ) as runtime:
                    await runtime.run([call_of(call) for call in scenario["calls"]])
        except SchedulerFault as fault:
            failed = str(fault.__cause__)
            recording.note("step_failed", text=failed)
        else:
            recording.note("step_returned")
        nursery.cancel_scope.cancel()
    return {"trace": recording.trace, "end": end_of(recording, failed)}


def end_of(recording: Recording, failed: str | None) -> Json:
    """How the turn ends that the step belongs to."""
    if failed is not None:
        return {"turn_end": "error", "model_requests": 1, "contexts_kept": recording.kept, "error": failed}
    if recording.cancelled:
        return {"turn_end": "aborted", "model_requests": 1, "contexts_kept": recording.kept}
    again = not recording.concluded or bool(recording.kept)
    return {"turn_end": "completed", "model_requests": 1 + again, "contexts_kept": recording.kept}
