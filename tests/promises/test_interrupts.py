"""Ctrl-C and its like: everything settles, every outcome is committed, and the interrupt leaves bare."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest
import trio
import trio.testing

from quiesce import (
    PARALLEL,
    Accept,
    Allow,
    Outcome,
    Output,
    Registry,
    RunContext,
    ToolCall,
    define_tool,
    open_runtime,
)
from quiesce.errors import SchedulerFault
from quiesce.journal import BatchEnd, ToolResult
from quiesce.registry import CallView
from quiesce.schedule import Batch
from world import ListJournal


def registry_with(**bodies: Callable[..., Awaitable[object]]) -> Registry:
    registry = Registry()
    for name, body in bodies.items():
        registry.register(
            define_tool(
                name, description="d", parameters={}, output=Output({"type": "json"}), execute=body, claims=PARALLEL
            )
        )
    return registry


class Interrupted(BaseException):
    """Something that is neither an ``Exception`` nor ``KeyboardInterrupt``."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Interrupted])
@pytest.mark.parametrize("where", ["body", "pre", "around", "post", "guard", "observer", "group"])
def test_an_interrupt_anywhere_settles_everything_and_leaves_bare(where: str, error: type[BaseException]) -> None:
    """A non-``Exception`` from a body or any hook: N outcomes, the siblings settled, the same object raised."""
    journal = ListJournal()
    settled: list[str] = []
    raised = error("stop")

    async def sibling(_: object) -> str:
        try:
            await trio.sleep(100)
        finally:
            settled.append("sibling")
        return "never"

    async def body(_: object, run: RunContext) -> str:
        await trio.sleep(1)
        if where == "body":
            raise raised
        if where == "group":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 100)
                raise raised
        return "ok"

    registry = registry_with(sibling=sibling, bad=body)

    def trip(kind: str, call: CallView) -> None:
        if where == kind and call.name == "bad":
            raise raised

    @registry.pre_execute
    async def pre(call: CallView, proceed: object) -> Allow:
        if call.name == "bad":
            await trio.sleep(0.5)  # the sibling's body begins meanwhile
        trip("pre", call)
        return Allow()

    @registry.guard
    def guard(call: CallView) -> None:
        trip("guard", call)

    @registry.around
    async def around(call: CallView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        outcome = await proceed()
        trip("around", call)
        return outcome

    @registry.post_execute
    async def post(call: CallView, outcome: Outcome, proceed: object) -> Accept:
        trip("post", call)
        return Accept()

    @registry.on_result
    def observe(call: CallView, outcome: Outcome) -> None:
        trip("observer", call)

    batches: list[Batch] = []
    # The post hook and the observer of the bad call only get their turn when what is before it is committed.
    names = ["bad", "sibling", "bad"] if where in ("post", "observer") else ["sibling", "bad", "bad"]

    async def main() -> None:
        async with open_runtime(registry, journal=journal, max_parallel=2) as runtime:
            batches.append(runtime.batch([ToolCall("c", name) for name in names]))
            await batches[0].run()

    with pytest.raises(error) as caught:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert caught.value is raised
    assert settled == ["sibling"]
    assert [outcome.index for outcome in batches[0].outcomes if outcome is not None] == [0, 1, 2]
    assert len([event for event in journal.events if isinstance(event, ToolResult)]) == 3
    assert isinstance(journal.events[-1], BatchEnd)
    assert journal.events[-1].status == "interrupted"


@trio.lowlevel.enable_ki_protection
async def press_ctrl_c(times: int) -> None:
    """A real SIGINT while the main task waits; protected, so that it does not land here."""
    for _ in range(times):
        await trio.testing.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def python_handles_sigint() -> Iterator[None]:
    """Python's own handler, which trio builds on; a process that was started in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_handles_sigint")
@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_in_the_batchs_wait_settles_and_raises(times: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A real SIGINT in the wait cancels the bodies; a further one shows what is pending and loses nothing."""
    ended: list[str] = []

    async def stubborn(_: object) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)
        ended.append("stubborn")
        return "late"

    registry = registry_with(stubborn=stubborn)
    batches: list[Batch] = []

    async def main() -> None:
        async with open_runtime(registry) as runtime:
            batches.append(runtime.batch([ToolCall("c1", "stubborn"), ToolCall("c2", "nope")]))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(press_ctrl_c, times)
                with trio.CancelScope(shield=True):
                    await batches[0].run()

    with pytest.raises(BaseExceptionGroup) as caught:  # noqa: ASYNC401
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))
    assert isinstance(caught.value.exceptions[0], KeyboardInterrupt)
    assert ended == ["stubborn"]
    first, second = batches[0].outcomes
    assert first is not None
    assert first.code == "ABORTED"
    assert second is not None
    assert second.code in ("UNKNOWN_TOOL", "ABORTED_BEFORE_DISPATCH")
    shown = capsys.readouterr().err
    assert ("still settling: call 0 'c1' of 'stubborn' is running" in shown) == (times > 1)


def test_an_interrupt_in_a_sub_call_reaches_the_root() -> None:
    """A ``KeyboardInterrupt`` of a sub-call's body ends the whole batch, also if the parent swallows errors."""

    async def child(_: object) -> None:
        raise KeyboardInterrupt

    async def parent(_: object, run: RunContext) -> str:
        try:
            await run.call("child")
        except KeyboardInterrupt:
            return "swallowed"
        return "unreachable"

    async def main() -> None:
        async with open_runtime(registry_with(child=child, parent=parent)) as runtime:
            await runtime.run([ToolCall("c", "parent")])

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)


class BrokenJournal(ListJournal):
    """Fails on the n-th append."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def append(self, event: object) -> None:
        if len(self.events) + 1 == self.n:
            self.n = -1
            raise OSError("disk full")
        super().append(event)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", range(1, 9))
def test_a_journal_that_fails_on_the_nth_append_is_a_fault_with_honest_statuses(n: int) -> None:
    """Start nothing more, await what runs without cancelling it, say of each call what is known, invent nothing."""
    journal = BrokenJournal(n)
    invoked: list[str] = []
    finished: list[str] = []

    async def body(_: object, run: RunContext) -> str:
        invoked.append(run.call_id)
        await trio.sleep(1 + len(invoked))
        finished.append(run.call_id)
        return "ok"

    async def main() -> None:
        async with open_runtime(registry_with(t=body), journal=journal, max_parallel=2) as runtime:
            await runtime.run([ToolCall(f"c{i}", "t") for i in range(3)])

    with pytest.raises(SchedulerFault, match="disk full") as caught:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert isinstance(caught.value.__cause__, OSError)
    assert finished == invoked, "what ran was awaited, not cancelled"
    statuses = caught.value.statuses
    assert [status.call_id for status in statuses] == ["c0", "c1", "c2"]
    recorded = {event.call_id for event in journal.events if isinstance(event, ToolResult)}
    for status in statuses:
        assert (status.state == "committed") == (status.call_id in recorded)
        assert (status.state == "never_started") == (status.call_id not in invoked)
        assert (status.outcome is not None) == (status.state == "committed")
