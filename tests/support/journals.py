"""Random journals with sub-calls, and what their bodies really did: the tests of repair and of the file use them."""

from __future__ import annotations

from typing import Any

import attrs
import trio
import trio.testing
from hypothesis import strategies as st

from quiesce import PARALLEL, Claims, Output, Registry, RunContext, ToolCall, ToolError, define_tool, open_runtime
from quiesce.journal import Event
from quiesce.registry import Outcome

Tree = dict[str, Any]

trees: st.SearchStrategy[Tree] = st.recursive(
    st.fixed_dictionaries({"ticks": st.integers(0, 2), "fails": st.booleans()}),
    lambda inner: st.fixed_dictionaries(
        {"ticks": st.integers(0, 2), "calls": st.lists(inner, max_size=3), "at_once": st.booleans()}
    ),
    max_leaves=5,
)
"""What the tool ``node`` is to do: take some time, and make further calls, one after another or at once."""


@attrs.frozen
class Batches:
    """Some batches that run at once in one runtime.

    Attributes:
        trees: Of each batch, the arguments of its calls.
        durability: ``settled`` or ``dispatch``.
        max_parallel: The pool.
        cancel_at: Seconds after which all is cancelled, or ``None``.
    """

    trees: tuple[tuple[Tree, ...], ...]
    durability: Any
    max_parallel: int
    cancel_at: float | None


batches_plans = st.builds(
    Batches,
    trees=st.lists(st.lists(trees, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple),
    durability=st.sampled_from(["settled", "dispatch"]),
    max_parallel=st.integers(1, 3),
    cancel_at=st.none() | st.sampled_from([0.5, 1.0, 1.5]),
)


class DurableList:
    """A journal in memory that knows how much of it was flushed, as a disk would.

    Attributes:
        events: In the order of their recording.
        flushed: How many of them were flushed.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushed = 0

    def append(self, event: Event) -> None:
        self.events.append(event)

    async def flush(self) -> None:
        count = len(self.events)
        await trio.lowlevel.checkpoint()
        self.flushed = max(self.flushed, count)


@attrs.define
class Recording:
    """What came of running some batches.

    Attributes:
        journal: All that was recorded.
        outcomes: Of each batch by its identity.
        invoked: By the call's key, how many events were durable when its body was first invoked.
    """

    journal: DurableList
    outcomes: dict[str, list[Outcome]] = attrs.field(factory=dict[str, list[Outcome]])
    invoked: dict[str, int] = attrs.field(factory=dict[str, int])


def record(plan: Batches) -> Recording:
    """Run the batches on a clock that jumps."""
    recording = Recording(DurableList())
    registry = Registry()

    async def node(tree: Tree, run: RunContext) -> str:
        # The identity of a call in the journal is no part of what a body sees; its token prints as it.
        recording.invoked.setdefault(run.token.key, recording.journal.flushed)  # type: ignore[attr-defined]
        await trio.sleep(tree["ticks"])
        if tree.get("fails"):
            raise ToolError("boom", "BOOM")
        calls = tree.get("calls", [])
        if tree.get("at_once"):
            pending = [run.submit("node", call) for call in calls]
            return ",".join([(await call.outcome()).text for call in pending])
        return ",".join([(await run.call("node", call)).text for call in calls])

    def claims(tree: Tree) -> Claims | bool:
        return PARALLEL if tree["ticks"] != 2 else Claims(writes={"key"})

    registry.register(
        define_tool(
            "node", description="d", parameters={}, output=Output({"type": "json"}), execute=node, claims=claims
        )
    )

    async def run_one(runtime: Any, arguments: tuple[Tree, ...]) -> None:
        batch = runtime.batch([ToolCall("same id", "node", tree) for tree in arguments])
        try:
            await batch.run()
        finally:
            recording.outcomes[batch.id] = [outcome for outcome in batch.outcomes if outcome is not None]

    async def main() -> None:
        async with open_runtime(
            registry, journal=recording.journal, durability=plan.durability, max_parallel=plan.max_parallel
        ) as runtime:
            with trio.move_on_after(float("inf") if plan.cancel_at is None else plan.cancel_at):
                async with trio.open_nursery() as nursery:
                    for arguments in plan.trees:
                        nursery.start_soon(run_one, runtime, arguments)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return recording
