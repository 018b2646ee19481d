"""A random batch and everything it does, recorded from outside: what the promise tests run and judge.

A ``Plan`` says what each call claims and how its body and hooks behave. ``World`` builds the registry for it and notes
each enter and exit. ``judge`` then checks promises 1 to 7 against those notes, knowing nothing of the library's inside.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from hypothesis import strategies as st

from quiesce import (
    ANY,
    EXCLUSIVE,
    INDEPENDENT,
    PARALLEL,
    Accept,
    Allow,
    Block,
    Claims,
    Deny,
    Effect,
    Failure,
    Outcome,
    Output,
    Registry,
    RunContext,
    Success,
    ToolCall,
    ToolError,
    define_tool,
)
from quiesce.journal import BatchEnd, BatchStart, Event, ToolCallStarted, ToolResult, rebuild_outcomes
from quiesce.registry import CallView, DispatchView
from quiesce.schedule import conflicts

KEYS = "ab"
ANYTHING = Claims(reads=ANY, writes={"a"})


@attrs.frozen
class CallPlan:
    """What one call does.

    Attributes:
        claims: What it says it touches.
        ticks: Seconds of the mock clock that its body takes; 0 for a single checkpoint.
        on_cancel: ``stop`` lets the cancel end it, ``drain`` takes a second more and returns, ``ignore`` shields.
        ends: ``return``, ``raise`` or ``invalid``.
        pre: ``allow``, ``slow``, ``deny`` or ``raise``.
        around: ``none``, ``shield``, ``retry``, ``short``, ``raise`` or ``deadline``.
        post: ``accept``, ``slow``, ``block`` or ``raise``.
    """

    claims: Claims = PARALLEL
    ticks: int = 1
    on_cancel: str = "stop"
    ends: str = "return"
    pre: str = "allow"
    around: str = "none"
    post: str = "accept"


@attrs.frozen
class Plan:
    """A batch.

    Attributes:
        calls: In model order.
        max_parallel: The pool.
        cancellable: Whether each call gets a scope of its own.
    """

    calls: tuple[CallPlan, ...]
    max_parallel: int = 3
    cancellable: bool = False


_keys = st.frozensets(st.sampled_from(KEYS), max_size=2)
claims_plans = st.one_of(
    st.sampled_from([PARALLEL, EXCLUSIVE, INDEPENDENT, ANYTHING]), st.builds(Claims, reads=_keys, writes=_keys)
)


def often(usual: str, *rare: str) -> st.SearchStrategy[str]:
    """Mostly the usual thing."""
    return st.sampled_from([usual] * (2 * len(rare)) + list(rare))


call_plans = st.builds(
    CallPlan,
    claims=claims_plans,
    ticks=st.integers(0, 3),
    on_cancel=often("stop", "drain", "ignore"),
    ends=often("return", "raise", "invalid"),
    pre=often("allow", "slow", "deny", "raise"),
    around=often("none", "shield", "retry", "short", "raise", "deadline"),
    post=often("accept", "slow", "block", "raise"),
)
plans = st.builds(
    Plan,
    calls=st.lists(call_plans, min_size=1, max_size=6).map(tuple),
    max_parallel=st.integers(1, 3),
    cancellable=st.booleans(),
)


@attrs.define
class Note:
    """That something began or ended for a call."""

    what: str
    index: int


class ListJournal:
    """Keeps events and tells a listener of each.

    Attributes:
        events: In the order of their recording.
        on_append: Called with the number of events after each.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.on_append: Callable[[int], object] = lambda count: None

    def append(self, event: Event) -> None:
        self.events.append(event)
        self.on_append(len(self.events))

    async def flush(self) -> None:
        await trio.lowlevel.checkpoint()


class World:
    """The registry of a plan, and what happened in it.

    Attributes:
        notes: Enters and exits of bodies and hooks in the order they happened.
        invoked: How often each body was entered.
        returned: How often it returned a value.
        active: What has been entered and not left.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.notes: list[Note] = []
        self.invoked = [0] * len(plan.calls)
        self.returned = [0] * len(plan.calls)
        self.active: set[tuple[str, int]] = set()
        self.registry = Registry()
        for index, call in enumerate(plan.calls):
            self.registry.register(
                define_tool(
                    f"tool{index}",
                    description="A planned tool.",
                    parameters={},
                    output=Output({"type": "string"}),
                    execute=self._body_of(index, call),
                    claims=call.claims,
                )
            )
        self.registry.pre_execute(self._pre)
        if any(call.around != "none" for call in plan.calls):
            self.registry.around(self._around)
        self.registry.post_execute(self._post)
        self.calls = [ToolCall("same id", f"tool{index}") for index in range(len(plan.calls))]

    def _enter(self, what: str, index: int) -> None:
        self.active.add((what, index))
        self.notes.append(Note(f"{what} enter", index))

    def _leave(self, what: str, index: int) -> None:
        self.active.discard((what, index))
        self.notes.append(Note(f"{what} exit", index))

    def _body_of(self, index: int, call: CallPlan) -> Callable[..., Awaitable[object]]:
        async def body(_: object) -> object:
            self.invoked[index] += 1
            self._enter("body", index)
            try:
                await self._spend(call)
                if call.ends == "raise":
                    raise ToolError(f"boom {index}", "BOOM")
                self.returned[index] += 1
                return 42 if call.ends == "invalid" else f"value {index}"
            finally:
                self._leave("body", index)

        async def body_with_run(arguments: object, run: RunContext) -> object:
            run.defer_context(f"context {index}")
            return await body(arguments)

        return body_with_run if index % 2 else body

    async def _spend(self, call: CallPlan) -> None:
        with trio.CancelScope(shield=call.on_cancel == "ignore"):
            try:
                await trio.sleep(call.ticks)
            except trio.Cancelled:  # noqa: ASYNC103
                if call.on_cancel != "drain":
                    raise
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)

    def _plan_of(self, call: CallView) -> tuple[int, CallPlan]:
        index = int(call.name.removeprefix("tool"))
        return index, self.plan.calls[index]

    async def _pre(self, call: CallView, proceed: Callable[[], Awaitable[Any]]) -> Any:
        index, plan = self._plan_of(call)
        self._enter("pre", index)
        try:
            if plan.pre == "slow":
                await trio.sleep(1)
            if plan.pre == "raise":
                raise ToolError(f"pre {index}")
            return Deny("no") if plan.pre == "deny" else Allow()
        finally:
            self._leave("pre", index)

    async def _around(self, call: DispatchView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        index, plan = self._plan_of(call)
        self._enter("around", index)
        try:
            if plan.around == "shield":
                with trio.CancelScope(shield=True):
                    return await proceed()
            if plan.around == "short":
                return call.succeed("short")
            if plan.around == "raise":
                raise ToolError(f"around {index}")
            if plan.around == "deadline":
                with call.deadline(1.5) as deadline:
                    outcome = await proceed()
                return call.fail("too late", "TOOL_TIMEOUT") if deadline.fired else outcome
            outcome = await proceed()
            if plan.around == "retry" and outcome.is_error:
                outcome = await proceed()
            return outcome
        finally:
            self._leave("around", index)

    async def _post(self, call: CallView, outcome: Outcome, proceed: Callable[[], Awaitable[Any]]) -> Any:
        index, plan = self._plan_of(call)
        self._enter("post", index)
        try:
            if plan.post == "slow":
                await trio.sleep(1)
            if plan.post == "raise":
                raise ToolError(f"post {index}")
            return Block("blocked") if plan.post == "block" else Accept()
        finally:
            self._leave("post", index)


def judge(world: World, outcomes: list[Outcome], events: list[Event], *, cancelled: bool) -> None:
    """Check promises 1 to 6 and the journal's half of 8 for one finished batch."""
    assert not world.active, f"still active: {world.active}"
    judge_alignment(world, outcomes)
    for index, outcome in enumerate(outcomes):
        judge_truth(world, index, outcome, cancelled=cancelled)
    judge_order(world)
    judge_exclusion(world)
    judge_journal(world, outcomes, events)


def judge_alignment(world: World, outcomes: list[Outcome]) -> None:
    """Promise 1: one outcome per call, in order, duplicate ids or not."""
    assert [(o.index, o.call_id, o.name) for o in outcomes] == [
        (index, call.call_id, call.name) for index, call in enumerate(world.calls)
    ]


def judge_truth(world: World, index: int, outcome: Outcome, *, cancelled: bool) -> None:
    """Promise 3: codes and effects say what happened; promise 6: a call fails only for a reason of its own."""
    invoked, returned = world.invoked[index], world.returned[index]
    wanted = Effect.NOT_STARTED
    if invoked:
        wanted = Effect.COMPLETED if returned == invoked else Effect.UNKNOWN
    assert outcome.effect is wanted, (outcome, invoked, returned)
    plan = world.plan.calls[index]
    if outcome.code == "ABORTED_BEFORE_DISPATCH":
        assert cancelled
        assert not invoked
    if outcome.code == "ABORTED":
        assert cancelled or plan.around == "deadline"
        assert invoked
    if cancelled or isinstance(outcome, Success):
        return
    assert isinstance(outcome, Failure)
    troubled = (plan.ends, plan.pre, plan.around, plan.post) != ("return", "allow", "none", "accept")
    assert troubled, f"a call without any trouble of its own failed: {outcome}"


def judge_order(world: World) -> None:
    """Promise 4: pre and post hooks run in model order and never overlap each other."""
    hooks = [note for note in world.notes if note.what.split()[0] in ("pre", "post")]
    for enter, leave in zip(hooks[::2], hooks[1::2], strict=True):
        assert enter.index == leave.index
        assert enter.what.replace("enter", "exit") == leave.what
    for kind in ("pre", "post"):
        order = [note.index for note in hooks if note.what == f"{kind} enter"]
        assert order == sorted(set(order))


def judge_exclusion(world: World) -> None:
    """Promise 5: calls whose claims conflict never overlap, and run in model order."""
    running: set[int] = set()
    begun: list[int] = []
    for note in world.notes:
        if note.what == "body enter":
            claims = world.plan.calls[note.index].claims
            rivals = [i for i in running if i != note.index and conflicts(claims, world.plan.calls[i].claims)]
            assert not rivals, f"{note.index} overlaps {rivals}"
            later = [i for i in begun if i > note.index and conflicts(claims, world.plan.calls[i].claims)]
            assert not later, f"{note.index} runs after {later}"
            running.add(note.index)
            begun.append(note.index)
        elif note.what == "body exit":
            running.discard(note.index)


def judge_journal(world: World, outcomes: list[Outcome], events: list[Event]) -> None:
    """Promises 4 and 8: every call is recorded once, results in model order, and the log alone gives the outcomes."""
    count = len(world.calls)
    assert isinstance(events[0], BatchStart)
    assert isinstance(events[-1], BatchEnd)
    assert [request.name for request in events[0].calls] == [call.name for call in world.calls]
    assert [e.request.index for e in events if isinstance(e, ToolCallStarted)] == list(range(count))
    assert [e.index for e in events if isinstance(e, ToolResult)] == list(range(count))
    assert rebuild_outcomes(events) == {events[0].batch: outcomes}
