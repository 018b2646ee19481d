"""``check_trace``: sound on what the library records, and each of its rules fires when one record is changed."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quiesce import EXCLUSIVE, PARALLEL, Claims, Effect, RunContext, ToolError, open_runtime
from quiesce.errors import SchedulerFault
from quiesce.journal import (
    BatchEnd,
    BatchStart,
    CallRequest,
    Event,
    MemoryJournal,
    ToolCallStarted,
    ToolResult,
    event_to_json,
)
from quiesce.registry import HookSpan, Timings, Wait
from quiesce.testing import TraceError, check_trace, trace_violations
from quiesce.testing._trace_batch import (
    CALL_FIRST,
    JSON,
    KEYS,
    NOTHING_LATER,
    ONE_RESULT,
    REBUILT,
    SAME_CALL,
    START_FIRST,
    STATUS,
    SUB_CALLS,
    WITHIN,
)
from quiesce.testing._trace_call import AFTER_CANCEL, CAUSE, CODE, DENIED, EFFECT, POINTS, SUCCESS, UNPREPARED
from quiesce.testing._trace_lane import (
    BARRIER,
    HOOKS,
    MODEL_ORDER,
    OVERLAP,
    POOL,
    PREPARED,
    RECORD_TIME,
    WAITS,
)
from quiesce.testing._trace_records import Rule
from toolbox import calls_of, registry_of
from world import ANYTHING, CallPlan, ListJournal, Plan, World, plans

Trace = list[Event]
WRITES_A = Claims(writes={"a"})


def play(
    plan: Plan, *, cancel_at: float | None = None, drain_at: float | None = None, alone: int | None = None
) -> Trace:
    """Run a plan on a clock that jumps, and give what was recorded; call ``alone`` is cancelled after half a second."""
    world, journal = World(plan), ListJournal()

    async def main() -> None:
        async with open_runtime(world.registry, max_parallel=plan.max_parallel, journal=journal) as runtime:
            batch = runtime.batch(world.calls, cancellable=plan.cancellable or alone is not None)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(batch.run)
                if alone is not None:
                    await trio.sleep(0.5)
                    batch.cancel_call(alone)
                if cancel_at is not None:
                    await trio.sleep_until(cancel_at)
                    batch.cancel("enough")
                if drain_at is not None:
                    await trio.sleep_until(drain_at)
                    batch.drain("enough")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return journal.events


@functools.cache
def plain() -> tuple[Event, ...]:
    """Calls 0 and 1 overlap, 2 runs alone, 3 and 4 write one key, 5 raises."""
    calls = (
        CallPlan(ticks=1),
        CallPlan(ticks=2),
        CallPlan(EXCLUSIVE),
        CallPlan(WRITES_A),
        CallPlan(WRITES_A),
        CallPlan(ends="raise"),
    )
    return tuple(play(Plan(calls)))


@functools.cache
def instant() -> tuple[Event, ...]:
    """Everything happens at time 0: two parallel calls, then two exclusive ones."""
    return tuple(play(Plan((CallPlan(ticks=0), CallPlan(ticks=0), CallPlan(EXCLUSIVE, 0), CallPlan(EXCLUSIVE, 0)))))


@functools.cache
def keyed_then_exclusive() -> tuple[Event, ...]:
    """Call 0 writes a key, call 1 anything."""
    return tuple(play(Plan((CallPlan(WRITES_A), CallPlan(EXCLUSIVE)))))


@functools.cache
def slow_hooks() -> tuple[Event, ...]:
    """Each hook takes a second; call 0 settles while call 1 is prepared."""
    call = CallPlan(ticks=0, pre="slow", post="slow")
    return tuple(play(Plan((call, call))))


@functools.cache
def cancelled() -> tuple[Event, ...]:
    """Call 0 finished, 1 was cut short, 2 never had its turn."""
    calls = (CallPlan(ticks=1), CallPlan(ticks=3), CallPlan(EXCLUSIVE))
    return tuple(play(Plan(calls), cancel_at=1.5))


@functools.cache
def drained() -> tuple[Event, ...]:
    """Call 0 was let finish, 1 never had its turn."""
    return tuple(play(Plan((CallPlan(ticks=3), CallPlan(EXCLUSIVE))), drain_at=1.5))


@functools.cache
def one_cancelled_in_the_queue() -> tuple[Event, ...]:
    """Call 2 was cancelled before its turn; 3 runs before 2 is recorded."""
    return tuple(play(Plan((CallPlan(ticks=5), *[CallPlan()] * 3), max_parallel=2), alone=2))


@functools.cache
def nested() -> tuple[Event, ...]:
    """The body of call 0 makes three calls, cancels the third and goes on for a second; call 1 is aborted before."""
    journal = ListJournal()

    async def leaf(_: object) -> str:
        await trio.sleep(1)
        return "leaf"

    async def outer(_: object, run: RunContext) -> str:
        run.submit("leaf")
        await run.call("leaf")
        with trio.move_on_after(0.5):
            await run.call("leaf")
        await trio.sleep(1)
        return "outer"

    async def main() -> None:
        async with open_runtime(registry_of(leaf=leaf, outer=outer), journal=journal) as runtime:
            await runtime.run(calls_of("outer"))

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return tuple(journal.events)


TRACES = [plain, instant, keyed_then_exclusive, slow_hooks, cancelled, drained, one_cancelled_in_the_queue, nested]


def rules_of(trace: object) -> set[Rule]:
    """The rules that a trace breaks."""
    return {Rule(found.promise, found.rule) for found in trace_violations(trace)}  # type: ignore[arg-type]


def position(trace: Trace, kind: type[Event], key: str = "") -> int:
    """Where the record of a kind is; a key is given without its batch."""
    wanted = f"{trace[0].batch}:{key}"
    return next(
        at
        for at, event in enumerate(trace)
        if isinstance(event, kind) and (not isinstance(event, ToolCallStarted | ToolResult) or event.key == wanted)
    )


Edit = Callable[[Trace], object]


def change(kind: type[Event], key: str = "", /, **fields: Any) -> Edit:
    """Change fields of one record; a field given a function is made from the record."""

    def edit(trace: Trace) -> None:
        at = position(trace, kind, key)
        event = trace[at]
        trace[at] = attrs.evolve(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})

    return edit


def retime(key: str, /, **times: Any) -> Edit:
    """Change times of one result."""

    def timings(event: ToolResult) -> Timings:
        return attrs.evolve(event.timings, **times)

    return change(ToolResult, key, timings=timings)


def drop(kind: type[Event], key: str = "") -> Edit:
    """Drop one record."""
    return lambda trace: trace.pop(position(trace, kind, key))


def double(kind: type[Event], key: str = "") -> Edit:
    """Record one twice."""

    def edit(trace: Trace) -> None:
        at = position(trace, kind, key)
        trace.insert(at, trace[at])

    return edit


def move(kind: type[Event], key: str, before: type[Event], other: str = "") -> Edit:
    """Move a record to right before another."""

    def edit(trace: Trace) -> None:
        event = trace.pop(position(trace, kind, key))
        trace.insert(position(trace, before, other), event)

    return edit


def both(*edits: Edit) -> Edit:
    """One after another."""

    def edit(trace: Trace) -> None:
        for one in edits:
            one(trace)

    return edit


def stray(trace: Trace) -> None:
    """Add a call that nobody asked for."""
    end = trace.pop()
    start = trace[0]
    assert isinstance(start, BatchStart)
    call, result = trace[position(trace, ToolCallStarted, "5")], trace[position(trace, ToolResult, "5")]
    assert isinstance(call, ToolCallStarted)
    assert isinstance(result, ToolResult)
    key, now = f"{start.batch}:9", result.time
    times = attrs.evolve(result.timings, prepared=now, started=now, invoked=now, settled=now)
    trace.append(attrs.evolve(call, key=key, root=key, time=now, request=attrs.evolve(call.request, index=9)))
    trace.append(attrs.evolve(result, key=key, root=key, index=9, timings=times, hooks=()))
    trace.append(end)


def only_ends(trace: Trace) -> None:
    """Drop everything between the start and the end."""
    del trace[1:-1]


def ended(**fields: Any) -> Edit:
    """Change the end."""
    return change(BatchEnd, **fields)


def post_from(start: float) -> Callable[[ToolResult], tuple[HookSpan, ...]]:
    """The hooks of a call, the post hooks beginning at another time."""
    return lambda event: tuple(attrs.evolve(span, start=start) if span.kind == "post" else span for span in event.hooks)


def other_arguments(event: ToolCallStarted) -> CallRequest:
    """The request with other arguments."""
    return attrs.evolve(event.request, arguments={"x": 1})


def error_code(code: str) -> Callable[[ToolResult], object]:
    """The error with another code."""

    def make(event: ToolResult) -> object:
        assert event.error is not None
        return attrs.evolve(event.error, code=code)

    return make


R, C = ToolResult, ToolCallStarted
BROKEN: list[tuple[str, Callable[[], tuple[Event, ...]], Edit, set[Rule]]] = [
    ("a result is missing", plain, drop(R, "1"), {ONE_RESULT}),
    ("a result is there twice", plain, double(R, "1"), {ONE_RESULT}),
    ("a tool/call is there twice", plain, double(C, "1"), {ONE_RESULT}),
    ("a call is missing", plain, both(drop(C, "1"), drop(R, "1")), {ONE_RESULT}),
    ("a call was not asked for", plain, stray, {ONE_RESULT}),
    ("all calls are missing", plain, only_ends, {ONE_RESULT}),
    ("a result of a sub-call is missing", nested, drop(R, "0:1"), {ONE_RESULT}),
    ("a result is missing before a crash", plain, both(drop(R, "1"), drop(BatchEnd)), {ONE_RESULT}),
    ("a result has another label", plain, change(R, "1", call_id="other"), {SAME_CALL}),
    ("a result has another name", nested, change(R, "0:1", name="other"), {SAME_CALL}),
    (
        "a tool/call has other arguments",
        plain,
        change(C, "1", request=other_arguments),
        {SAME_CALL},
    ),
    ("a result comes after the end", plain, move(BatchEnd, "", R, "5"), {NOTHING_LATER}),
    ("the end is there twice", plain, double(BatchEnd), {NOTHING_LATER}),
    ("the end is too early", plain, ended(time=4.5), {WITHIN}),
    ("the end is before the start", plain, ended(time=-1.0), {WITHIN}),
    ("the start is too late", cancelled, change(BatchStart, time=1.0), {WITHIN}),
    ("a parent is recorded first", nested, move(R, "0", R, "0:2"), {SUB_CALLS}),
    ("a sub-call begins before its parent", nested, move(C, "0", R, "0:0"), {SUB_CALLS}),
    ("a sub-call is queued before the body", nested, retime("0:1", queued=-1.0), {SUB_CALLS}),
    ("a parent settles first", nested, retime("0", settled=1.0), {SUB_CALLS}),
    (
        "a parent was never invoked",
        nested,
        both(retime("0", invoked=None), change(R, "0", effect=Effect.NOT_STARTED)),
        {SUB_CALLS, SUCCESS},
    ),
    ("the parent is unknown", nested, both(drop(C, "0"), drop(R, "0")), {SUB_CALLS, ONE_RESULT}),
    ("a body ran without effect", plain, change(R, "5", effect=Effect.NOT_STARTED), {EFFECT}),
    ("an effect without a body", plain, retime("0", invoked=None), {EFFECT}),
    ("an abort that hides that it ran", cancelled, change(R, "1", error=error_code("ABORTED_BEFORE_DISPATCH")), {CODE}),
    ("an abort that did not run", cancelled, change(R, "2", error=error_code("ABORTED")), {CODE, UNPREPARED}),
    ("a success of a body that raised", plain, change(R, "0", effect=Effect.UNKNOWN), {SUCCESS}),
    ("a denial of a call that ran", plain, change(R, "5", denied_by="hook"), {DENIED}),
    ("claims of a call without a turn", cancelled, change(R, "2", claims=PARALLEL), {UNPREPARED}),
    ("results out of order at one instant", instant, move(R, "1", R, "0"), {MODEL_ORDER}),
    ("turns out of order at one instant", instant, move(C, "1", C, "0"), {MODEL_ORDER}),
    (
        "a call without a turn is recorded too early",
        one_cancelled_in_the_queue,
        both(move(C, "2", C, "3"), change(C, "2", time=0.5)),
        {MODEL_ORDER},
    ),
    (
        "a record is from later than the next",
        plain,
        both(retime("1", committed=2.5), change(R, "1", time=2.5)),
        {RECORD_TIME},
    ),
    ("two calls are prepared at once", plain, retime("0", prepared=0.5, started=0.5, invoked=0.5), {PREPARED}),
    ("a body is invoked after it settled", plain, retime("0", invoked=1.5), {POINTS}),
    ("a call is recorded unsettled", plain, retime("0", settled=None), {POINTS}),
    ("a body is invoked without a start", plain, retime("5", started=None), {POINTS}),
    ("hooks overlap", slow_hooks, change(R, "0", hooks=post_from(1.5)), {HOOKS}),
    (
        "post hooks out of order",
        slow_hooks,
        both(
            retime("1", prepared=1.0, started=1.0, invoked=1.0, settled=1.0),
            change(R, "1", hooks=(HookSpan("pre", 1.0, 1.0), HookSpan("post", 1.0, 1.0))),
        ),
        {HOOKS},
    ),
    ("rivals overlap", plain, retime("4", prepared=3.5, started=3.5, invoked=3.5), {OVERLAP}),
    ("an exclusive call does not wait for a commit", instant, move(C, "3", R, "2"), {BARRIER}),
    (
        "an exclusive call does not wait for a keyed one",
        keyed_then_exclusive,
        both(move(C, "1", R, "0"), change(C, "1", time=0.5)),
        {BARRIER},
    ),
    ("the pool is too small", plain, change(BatchStart, max_parallel=1), {POOL}),
    ("a call waits for a later one", plain, change(R, "1", waited=Wait("conflict", (4,))), {WAITS}),
    ("an abort without a cancel", cancelled, ended(status="completed", cancelled_at=None, reason=None), {CAUSE}),
    ("an abort of what a drain lets finish", cancelled, ended(status="drained", cancelled_at=None), {CAUSE}),
    ("an abort in a queue without a drain", drained, ended(status="completed", reason=None), {CAUSE}),
    ("an abort that nobody asked for", one_cancelled_in_the_queue, change(R, "2", cancelled_at=None), {CAUSE}),
    ("an abort of a sub-call that nobody asked for", nested, change(R, "0:2", cancelled_at=None), {CAUSE}),
    ("a start after the cancel", cancelled, ended(cancelled_at=-1.0), {AFTER_CANCEL}),
    ("a cancel that the status hides", plain, ended(cancelled_at=9.0), {STATUS}),
    ("a status without a cancel", plain, ended(status="cancelled"), {STATUS}),
    ("a reason without a cancel", plain, ended(reason="why"), {STATUS}),
    ("a cancel after the end", cancelled, ended(cancelled_at=9.0), {STATUS}),
    ("the start is missing", plain, drop(BatchStart), {START_FIRST}),
    ("the start is not first", plain, move(BatchStart, "", R, "0"), {START_FIRST}),
    ("the start is there twice", plain, double(BatchStart), {START_FIRST}),
    ("a tool/call is missing", plain, drop(C, "1"), {CALL_FIRST}),
    ("a tool/call is late", instant, move(R, "3", C, "3"), {CALL_FIRST}),
    ("a root is wrong", nested, change(R, "0:0", root="x"), {KEYS}),
    ("a parent is wrong", nested, change(R, "0:0", parent="x"), {KEYS}),
    ("an event is not JSON of one", plain, ended(status="odd"), {JSON}),
    ("a success is called an error", plain, change(R, "0", is_error=True), {REBUILT}),
    ("a success has a late value", plain, change(R, "0", late_value="late"), {REBUILT}),
    ("content is not made of blocks", plain, change(R, "0", content=(7,)), {REBUILT}),
]


@pytest.mark.parametrize("made", TRACES, ids=[made.__name__ for made in TRACES])
def test_what_the_library_records_keeps_every_promise(made: Callable[[], tuple[Event, ...]]) -> None:
    """As events, as their JSON, and cut off anywhere by a crash."""
    trace = made()
    check_trace(trace)
    check_trace([event_to_json(event) for event in trace])
    for length in range(len(trace)):
        assert trace_violations(trace[:length]) == []


@pytest.mark.parametrize(("made", "edit", "broken"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_changed_record_is_found_and_the_rule_is_named(
    made: Callable[[], tuple[Event, ...]], edit: Edit, broken: set[Rule]
) -> None:
    """Exactly the rule that the change breaks, and no other."""
    trace = list(made())
    edit(trace)
    assert rules_of(trace) == broken


def test_every_rule_is_seen_to_fire() -> None:
    """The table above has no gap."""
    from quiesce.testing import _trace_batch, _trace_call, _trace_lane  # noqa: PLC0415 - all their rules, by looking

    modules = (_trace_batch, _trace_call, _trace_lane)
    rules = {value for module in modules for value in vars(module).values() if isinstance(value, Rule)}
    assert rules == {rule for row in BROKEN for rule in row[3]}
    assert {rule.promise for rule in rules} == set(range(1, 9))


def test_the_message_names_promise_rule_calls_and_figures() -> None:
    """One line for each violation, which pickles with its error."""
    trace = list(plain())
    retime("4", prepared=3.5, started=3.5, invoked=3.5)(trace)
    drop(R, "5")(trace)
    with pytest.raises(TraceError) as caught:
        check_trace(trace)
    assert len(caught.value.violations) == 2
    first, second = caught.value.violations[0], caught.value.violations[1]
    batch = trace[0].batch
    assert (first.promise, first.calls) == (1, (f"{batch}:5",))
    assert (second.promise, second.calls) == (5, (f"{batch}:4", f"{batch}:3"))
    assert str(caught.value).splitlines()[1:] == [f"  {first.message}", f"  {second.message}"]
    assert "call 4 'tool4' (id 'same id') started at 3.5, before call 3 'tool3' (id 'same id') settled at 4" in str(
        caught.value
    )
    assert pickle.loads(pickle.dumps(caught.value)).violations == caught.value.violations  # noqa: S301 - our own


def test_batches_in_one_journal_may_be_interleaved() -> None:
    """Each is judged alone: what is sound stays so however the records of others lie between."""
    one, other = list(plain()), list(nested())
    mixed = [event for pair in zip(one, other, strict=False) for event in pair] + one[len(other) :] + other[len(one) :]
    check_trace(mixed)
    mixed.remove(next(event for event in mixed if isinstance(event, ToolResult) and event.batch == other[0].batch))
    assert {found.batch for found in trace_violations(mixed)} == {other[0].batch}


async def test_a_journal_is_read_as_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """Whatever has ``events``; a stream, which lists no calls, and a batch without calls are sound too."""

    async def body(_: object) -> str:
        await trio.sleep(1)
        return "v"

    journal = MemoryJournal()
    async with open_runtime(registry_of(t=body), journal=journal, max_parallel=2) as runtime:
        await runtime.run([])
        async with runtime.stream(calls_of(*"ttttt")) as outcomes:
            assert len([outcome async for outcome in outcomes]) == 5
    check_trace(journal)
    assert len(journal.events) == 14


async def test_a_fault_leaves_a_sound_part() -> None:
    """A journal that breaks at any record leaves open calls behind, which is no violation."""

    async def body(_: object) -> str:
        await trio.lowlevel.checkpoint()
        return "v"

    for broken in range(1, 8):
        journal = ListJournal()

        def fail(count: int, broken: int = broken) -> None:
            if count == broken:
                raise OSError("disk full")

        journal.on_append = fail
        async with open_runtime(registry_of(t=body), journal=journal) as runtime:
            with pytest.raises(SchedulerFault):
                await runtime.run(calls_of("t", "t", "t"))
        check_trace(journal)


async def test_a_code_that_a_tool_chose_is_no_abort() -> None:
    """Only the library's own error says that the library aborted a call."""

    async def body(_: object) -> str:
        await trio.lowlevel.checkpoint()
        raise ToolError("as if", "ABORTED_BEFORE_DISPATCH")

    journal = MemoryJournal()
    async with open_runtime(registry_of(t=body), journal=journal) as runtime:
        await runtime.run(calls_of("t"))
    check_trace(journal)


@pytest.mark.parametrize("source", [7, "batch/start", b"x", {"type": "batch/start"}, [7], ["{}"]])
def test_what_is_no_trace_is_refused(source: Any) -> None:
    """A clear ``TypeError`` for what is no event, with its place."""
    with pytest.raises(TypeError, match="trace"):
        check_trace(source)


def test_a_mapping_that_is_no_event_is_refused() -> None:
    """A ``ValueError`` that says which, and what is wrong with it."""
    with pytest.raises(ValueError, match="event 1 of the trace: unknown journal event type 'nope'"):
        check_trace([plain()[0], {"type": "nope"}])


def test_claims_survive_their_json_form() -> None:
    """A key named ANY is a key; other shapes are refused."""
    trace = list(plain())
    for claims in (PARALLEL, EXCLUSIVE, ANYTHING, Claims(), Claims(reads={"ANY"}, writes={"b", "a"})):
        change(R, "0", claims=claims)(trace)
        assert JSON not in rules_of(trace)
    data: dict[str, Any] = event_to_json(trace[position(trace, R, "0")])
    of_no_key: dict[str, Any] = {"reads": [], "writes": []}
    wrongs: list[Any] = [
        {"reads": []},
        of_no_key | {"writes": "b"},
        of_no_key | {"reads": [1]},
        of_no_key | {"x": 1},
        7,
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="malformed tool/result"):
            check_trace([data | {"claims": wrong}])


@settings(max_examples=100, deadline=None)
@given(plan=plans, cancel_at=st.none() | st.floats(0, 4), choose=st.data(), random=st.random_module())
def test_a_lost_doubled_or_swapped_result_is_always_found(
    plan: Plan, cancel_at: float | None, choose: st.DataObject, random: object
) -> None:
    """Random batches are sound; without, twice, or in another order, a result of theirs never is."""
    calm = [attrs.evolve(call, claims=PARALLEL) if call.claims == ANYTHING else call for call in plan.calls]
    trace = play(attrs.evolve(plan, calls=tuple(calm)), cancel_at=cancel_at)
    assert trace_violations(trace) == []
    results = [at for at, event in enumerate(trace) if isinstance(event, ToolResult)]
    at, other = choose.draw(st.sampled_from(results)), choose.draw(st.sampled_from(results))
    match choose.draw(st.sampled_from(["lost", "doubled", "swapped"])):
        case "lost":
            del trace[at]
            assert ONE_RESULT in rules_of(trace)
        case "doubled":
            trace.insert(choose.draw(st.integers(at, len(trace) - 1)), trace[at])
            assert ONE_RESULT in rules_of(trace)
        case _:
            assume(at != other)
            trace[at], trace[other] = trace[other], trace[at]
            assert MODEL_ORDER in rules_of(trace)
