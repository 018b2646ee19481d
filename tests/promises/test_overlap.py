"""Promise 5, the other half: what need not wait does not wait."""

from __future__ import annotations

from typing import cast

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce import ANY, PARALLEL, Claims, Output, Registry, RunContext, ToolCall, define_tool, open_runtime
from quiesce.schedule import conflicts
from world import claims_plans


@attrs.frozen
class Gated:
    """A batch whose bodies run until they are let go.

    Attributes:
        claims: Of each call, in model order.
        tools: The tool of each call; ``limited`` has a limit of 1.
        max_parallel: The pool.
    """

    claims: tuple[Claims, ...]
    tools: tuple[str, ...]
    max_parallel: int


@st.composite
def gated_batches(draw: st.DrawFn) -> Gated:
    count = draw(st.integers(1, 8))
    return Gated(
        tuple(draw(st.lists(claims_plans, min_size=count, max_size=count))),
        tuple(draw(st.lists(st.sampled_from(["free", "limited"]), min_size=count, max_size=count))),
        draw(st.integers(1, 4)),
    )


class Gate:
    """Runs a gated batch and says, whenever nothing moves, whether each waiting call has a reason to wait."""

    def __init__(self, batch: Gated) -> None:
        self.batch = batch
        self.running: dict[int, trio.Event] = {}
        self.committed: set[int] = set()
        self.most = 0
        self.registry = Registry()
        for name in ("free", "limited"):
            self.registry.register(
                define_tool(
                    name,
                    description="Runs until it is let go.",
                    parameters={"index": {"type": "integer", "required": True}},
                    output=Output({"type": "null"}),
                    execute=self.body,
                    claims=lambda arguments: batch.claims[cast("int", arguments["index"])],
                )
            )
        self.registry.on_result(lambda call, outcome: self.committed.add(outcome.index))

    async def body(self, arguments: dict[str, int], run: RunContext) -> None:
        index = arguments["index"]
        self.running[index] = trio.Event()
        self.most = max(self.most, len(self.running))
        await self.running[index].wait()
        del self.running[index]

    async def run(self, choose: st.DataObject) -> None:
        calls = [ToolCall(f"c{i}", tool, {"index": i}) for i, tool in enumerate(self.batch.tools)]
        limits = {"limited": 1}
        async with open_runtime(self.registry, max_parallel=self.batch.max_parallel, limits=limits) as runtime:
            batch = runtime.batch(calls)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(batch.run)
                await trio.testing.wait_all_tasks_blocked()
                while self.running:
                    self.justify([pending.phase for pending in batch.pending()])
                    released = choose.draw(st.sampled_from(sorted(self.running)))
                    self.running[released].set()
                    await trio.testing.wait_all_tasks_blocked()
            assert all(outcome is not None and not outcome.is_error for outcome in batch.outcomes)

    def justify(self, phases: list[str]) -> None:
        """Nothing moves: the first queued call, and every ready one, must have a reason."""
        first = len(self.batch.claims) - len(phases)
        states = dict(enumerate(phases, start=first))
        pool_full = len(self.running) >= self.batch.max_parallel
        ready = [index for index, phase in states.items() if phase == "ready"]
        for index in ready:
            rivals = [i for i in self.rivals(index, states) if i < index]
            assert rivals or pool_full or self.limit_full(index), f"{index} is ready and waits for nothing"
        queued = [index for index, phase in states.items() if phase == "queued"]
        if queued:
            index = queued[0]
            rivals = self.rivals(index, states)
            barrier = any(self.has_any(index) or self.has_any(i) for i in rivals)
            bound = len(ready) >= self.batch.max_parallel
            assert barrier or bound or (pool_full and not rivals), f"{index} is queued and waits for nothing"

    def rivals(self, index: int, states: dict[int, str]) -> list[int]:
        holding = {"running", "ready", "preparing"}
        return [
            i
            for i, phase in states.items()
            if i != index
            and (phase in holding or (phase == "settled" and self.has_any(i)))
            and conflicts(self.batch.claims[index], self.batch.claims[i])
        ]

    def has_any(self, index: int) -> bool:
        claims = self.batch.claims[index]
        return claims.reads is ANY or claims.writes is ANY

    def limit_full(self, index: int) -> bool:
        return self.batch.tools[index] == "limited" and any(self.batch.tools[i] == "limited" for i in self.running)


@settings(max_examples=200, deadline=None)
@given(batch=gated_batches(), choose=st.data(), random=st.random_module())
def test_a_call_waits_only_for_a_conflict_a_place_a_limit_or_the_ready_bound(
    batch: Gated, choose: st.DataObject, random: object
) -> None:
    """Whenever nothing moves, every call that has not started has a reason that the design allows."""
    gate = Gate(batch)
    trio.run(gate.run, choose)
    assert gate.most <= batch.max_parallel


@pytest.mark.parametrize("cap", [1, 3, 10])
async def test_the_pool_is_filled_and_never_exceeded(cap: int) -> None:
    """A thousand parallel calls run exactly ``max_parallel`` at a time."""
    active = peak = 0

    async def body(_: object) -> None:
        nonlocal active, peak
        active += 1
        peak = max(peak, active)
        await trio.lowlevel.checkpoint()
        active -= 1

    registry = Registry()
    registry.register(
        define_tool("t", description="d", parameters={}, output=Output({"type": "null"}), execute=body, claims=PARALLEL)
    )
    async with open_runtime(registry, max_parallel=cap) as runtime:
        outcomes = await runtime.run([ToolCall(str(i), "t") for i in range(1000)])
    assert peak == cap
    assert [outcome.index for outcome in outcomes] == list(range(1000))
