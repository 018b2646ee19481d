# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
"""Scripted tools, hooks, approvers and journals do what their script says, when it says so, and note what they saw."""

from __future__ import annotations

import pytest
import trio

from quiesce import (
    Accept,
    Allow,
    Ask,
    Block,
    Claims,
    Deny,
    Effect,
    Failure,
    Registry,
    ToolCall,
    ToolDefinition,
    ToolError,
    run_calls,
)
from quiesce.errors import SchedulerFault
from quiesce.journal import ToolResult
from quiesce.registry import Arguments, JsonValue, RunContext
from quiesce.testing import (
    BatchResult,
    BatchScenario,
    Deadlock,
    Decides,
    Drains,
    FailingSchedule,
    Hangs,
    Ignores,
    Proceeds,
    Raises,
    Returns,
    ScriptedJournal,
    explore,
    scripted_hook,
    scripted_tool,
    virtual_clock,
)


def test_each_invocation_plays_its_step_and_the_last_step_is_repeated() -> None:
    """The n-th invocation plays the n-th step, and what was played is noted with exact times."""
    tool = scripted_tool("a", Returns(1, after=2), Raises(ToolError("no", "NO"), after=0.5), Returns("end"))

    async def main() -> list[str | None]:
        registry = Registry()
        registry.register(tool.definition)
        return [
            outcome.code for _ in range(4) for outcome in await run_calls(registry, [ToolCall("c", "a", {"x": [1]})])
        ]

    assert trio.run(main, clock=virtual_clock()) == [None, "NO", None, None]
    assert [(each.began, each.ended, each.how) for each in tool.invocations] == [
        (0, 2, "returned"),
        (2, 2.5, "raised"),
        (2.5, 2.5, "returned"),
        (2.5, 2.5, "returned"),
    ]
    assert tool.invocations[0].arguments == {"x": [1]}
    assert [each.result for each in tool.invocations][2:] == ["end", "end"]
    assert repr(tool) == "<ScriptedTool 'a', 4 invocations>"


def test_a_hanging_tool_runs_until_it_is_cancelled() -> None:
    """Hangs waits for a cancel, and its end is noted as one."""
    result = BatchScenario().tool("a", Hangs()).call("a").cancel_at(3).run()
    assert result.codes == ("ABORTED",)
    assert result.how == "cancelled"
    assert [(each.ended, each.how) for each in result.invocations] == [(3, "cancelled")]


def test_a_draining_tool_tidies_up_and_its_value_is_kept_aside() -> None:
    """Drains takes its clean-up's time from the cancel on, and then returns; the call is aborted all the same."""
    result = BatchScenario().tool("a", Drains("late", after=9, cleanup=2)).call("a").cancel_at(1).run()
    (outcome,) = result.outcomes
    assert isinstance(outcome, Failure)
    assert (outcome.code, outcome.effect, outcome.late_value) == ("ABORTED", Effect.COMPLETED, "late")
    assert result.duration == 3
    assert result.invocations[0].how == "returned"


def test_a_tool_that_ignores_cancels_takes_all_its_time() -> None:
    """Ignores shields its body."""
    assert BatchScenario().tool("a", Ignores(after=7)).call("a").cancel_at(1).run().duration == 7


def test_a_value_may_be_made_of_the_arguments() -> None:
    """Returns takes a function of the arguments, so one fake can answer many calls."""
    result = BatchScenario().tool("a", Returns(lambda given: given["x"])).call("a", x=1).call("a", x=2).run()
    assert result.values == (1, 2)


def test_any_object_with_play_is_a_step_and_nothing_else_is() -> None:
    """A step of one's own may use the run context; a mere value is refused when the tool is made."""

    class Concludes:
        async def play(self, arguments: Arguments, run: RunContext) -> JsonValue:
            run.defer_context("told")
            return "done"

    (outcome,) = BatchScenario().tool("a", Concludes()).call("a").run().outcomes
    assert outcome is not None
    assert outcome.contexts == ("told",)
    with pytest.raises(TypeError, match="3 is no step"):
        scripted_tool("a", 3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_raised_error_does_not_collect_tracebacks() -> None:
    """One exception of a script is raised by many runs: each starts it without what the last one hung on it."""
    error = ToolError("no")
    scenario = BatchScenario().tool("a", Raises(error)).call("a")
    depths: list[int] = []
    for _ in range(3):
        scenario.run()
        depth, traceback = 0, error.__traceback__
        while traceback is not None:
            depth, traceback = depth + 1, traceback.tb_next
        depths.append(depth)
    assert len(set(depths)) == 1


def test_hooks_decide_by_script_after_their_time() -> None:
    """Pre hooks allow, deny and raise, call by call, and note what they saw."""
    hook = scripted_hook("pre_execute", Allow(), Decides(Deny("no"), after=2), Raises(ToolError("broken", "B")))
    registry = Registry()
    registry.register(scripted_tool("a").definition)
    hook.register(registry)

    async def main() -> list[str]:
        return [outcome.text for outcome in await run_calls(registry, [ToolCall(n, "a") for n in "xyz"])]

    assert trio.run(main, clock=virtual_clock()) == ["", "Error: no", "Error: broken"]
    assert [(each.call_id, each.began, each.ended, each.how) for each in hook.invocations] == [
        ("x", 0, 0, "returned"),
        ("y", 0, 2, "returned"),
        ("z", 2, 2, "raised"),
    ]


def test_an_approver_answers_after_its_time() -> None:
    """Ask reaches the scripted approver; every call of such a scenario has an agent to be asked."""
    asking = BatchScenario().tool("a").call("a").call("a").hook("pre_execute", Ask("sure?"))
    result = asking.hook("approver", Decides("allowed-once", after=5), "rejected").run()
    assert [outcome is not None and outcome.is_error for outcome in result.outcomes] == [False, True]
    assert [(each.name, each.began, each.ended) for each in result.hooks["approver"]] == [("a", 0, 5), ("a", 5, 5)]


def test_an_around_hook_retries_shields_limits_and_answers() -> None:
    """Each move of an around hook does what it says."""
    flaky = BatchScenario().tool("a", Raises(ToolError("1")), Raises(ToolError("2")), Returns("3")).call("a")
    assert flaky.hook("around", Proceeds(times=3)).run().values == ("3",)
    assert flaky.hook("around", Proceeds(times=2)).run().values == (None,)
    slow = BatchScenario().tool("a", Returns(after=9)).call("a")
    assert slow.hook("around", Proceeds(within=2)).run().codes == ("TOOL_TIMEOUT",)
    assert slow.hook("around", Proceeds(within=20, after=1)).run().duration == 10
    answered = slow.hook("around", Returns(len, after=1)).run()
    assert (answered.values, answered.duration, answered.invocations) == ((0,), 1, ())
    shielded = slow.hook("around", Proceeds(shield=True)).cancel_at(1).run()
    assert shielded.codes == ("ABORTED",)


def test_a_post_hook_accepts_and_blocks() -> None:
    """Post hooks decide by script too, and a bare Proceeds asks those inside."""
    result = (
        BatchScenario()
        .tool("a", Returns("x"))
        .hook("post_execute", Proceeds())
        .hook("post_execute", Accept(value="y"), Block("no"))
        .call("a")
        .call("a")
        .run()
    )
    assert [outcome is not None and outcome.text for outcome in result.outcomes] == ["y", "no"]
    assert len(result.hooks["post_execute"]) == 4


def test_a_move_that_such_a_hook_cannot_make_is_refused() -> None:
    """What cannot work is told when the hook is made."""
    with pytest.raises(ValueError, match="is no move of such a hook"):
        scripted_hook("around", Deny("no"))
    with pytest.raises(ValueError, match="is no move of such a hook"):
        scripted_hook("pre_execute", Returns(1))
    with pytest.raises(ValueError, match="kind must be"):
        scripted_hook("guard")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_journal_fails_at_the_append_it_is_told_to() -> None:
    """The k-th append raises, the batch ends in a fault, and the event is not kept."""
    scenario = BatchScenario().tool("a").call("a").journal(lambda: ScriptedJournal(append_fails_at=3))
    result = scenario.run()
    assert result.how == "raised"
    assert isinstance(result.error, SchedulerFault)
    assert not any(isinstance(event, ToolResult) for event in result.events)
    own = scenario.journal(lambda: ScriptedJournal(append_fails_at=3, error=RuntimeError("mine"))).run()
    assert "mine" in str(own.error)


def test_a_journal_takes_its_time_to_flush_and_fails_at_the_flush_it_is_told_to() -> None:
    """Flushes take virtual time and are noted; the k-th may raise."""
    journal = ScriptedJournal(flush_takes=2)
    scenario = BatchScenario().tool("a").call("a").options(durability="dispatch")
    result = scenario.journal(lambda: journal).run()
    assert result.duration == 2 * len(journal.flushes)
    assert journal.flushes[0] == 0
    failed = scenario.journal(lambda: ScriptedJournal(flush_fails_at=1)).run()
    assert isinstance(failed.error, SchedulerFault)
    assert failed.invocations == ()


def test_a_scenario_never_changes_and_every_run_is_fresh() -> None:
    """Each method gives a new scenario, and no run sees anything of another."""
    base = BatchScenario().tool("a", Returns(1, after=2), Returns(2))
    two = base.call("a").call("a")
    assert base.run().outcomes == ()
    first, second = two.run(), two.run()
    assert first.values == second.values == (1, 2)
    assert first.timeline == second.timeline


def test_a_result_tells_the_story_in_order() -> None:
    """The timeline names each begin and end, in the order in which they happened also at one time."""
    result = (
        BatchScenario().tool("a", Returns(1, after=2)).hook("pre_execute", Decides(Allow(), after=1)).call("a").run()
    )
    assert result.timeline == (
        "0 c0 a pre_execute begins",
        "1 c0 a pre_execute returned",
        "1 c0 a begins",
        "3 c0 a returned",
    )


def test_a_batch_can_be_cancelled_drained_and_one_call_of_it_cancelled() -> None:
    """Each way to stop is one word, with its moment."""
    base = BatchScenario().tool("a", Returns(after=4)).options(max_parallel=1).call("a").call("a")
    assert base.cancel_batch_at(1, "why").run().codes == ("ABORTED", "ABORTED_BEFORE_DISPATCH")
    assert base.drain_at(1).run().codes == (None, "ABORTED_BEFORE_DISPATCH")
    assert base.cancel_call_at(1, 1).run().codes == (None, "ABORTED_BEFORE_DISPATCH")
    assert base.cancel_call_at(1, 0).run().codes == ("ABORTED", None)
    with pytest.raises(ValueError, match="0 or later"):
        base.cancel_at(-1)


def test_an_act_after_the_end_is_left_out() -> None:
    """A moment that the batch does not reach delays nothing."""
    result = BatchScenario().tool("a", Returns(after=1)).call("a").cancel_at(50).run()
    assert (result.how, result.duration) == ("returned", 1)


def test_a_scenario_that_cannot_go_on_is_a_deadlock() -> None:
    """A tool that nobody cancels is named, rather than the test hanging."""
    with pytest.raises(Deadlock):
        BatchScenario().tool("a", Hangs()).call("a").run()


def test_a_scripted_interrupt_leaves_the_run_bare() -> None:
    """What is no Exception is never kept in a result."""
    with pytest.raises(KeyboardInterrupt):
        BatchScenario().tool("a", Raises(KeyboardInterrupt)).call("a").run()


def test_a_scenario_is_explored_under_many_orders_with_a_check() -> None:
    """The check sees each result; the schedule under which it fails can be run again."""
    scenario = BatchScenario().tool("a", Returns()).call("a").call("a")
    assert scenario.explore(lambda result: None, runs=5).runs == 5

    def first_is_first(result: BatchResult) -> None:
        assert result.invocations[0].call_id == "c0"

    with pytest.raises(FailingSchedule) as caught:
        scenario.explore(first_is_first)
    assert scenario.run(caught.value.schedule).invocations[0].call_id == "c1"
    assert scenario.run(str(caught.value.schedule)).invocations[0].call_id == "c1"


def test_a_scenario_without_a_check_raises_what_its_batch_raises() -> None:
    """So a fault fails an exploration."""
    scenario = BatchScenario().tool("a").call("a").journal(lambda: ScriptedJournal(append_fails_at=1))
    with pytest.raises(FailingSchedule) as caught:
        explore(scenario.as_scenario(), runs=1)
    assert isinstance(caught.value.error, SchedulerFault)


def test_a_scenario_lets_a_cancel_from_outside_through() -> None:
    """As an async callable it settles its batch and then lets the caller's cancel go on."""
    scenario = BatchScenario().tool("a", Drains(cleanup=3, after=9)).call("a").as_scenario()

    async def main() -> tuple[bool, float]:
        with trio.move_on_after(1) as scope:
            await scenario()
        return scope.cancelled_caught, trio.current_time()

    assert trio.run(main, clock=virtual_clock()) == (True, 4)


def test_a_scenario_takes_tools_and_hooks_of_ones_own() -> None:
    """Definitions are made anew for each run, and anything can be put into its registry."""
    made: list[object] = []

    def make() -> ToolDefinition:
        tool = scripted_tool("b", Returns("own"), claims=Claims(writes={"k"}))
        made.append(tool)
        return tool.definition

    scenario = (
        BatchScenario()
        .definition(make)
        .setup(lambda registry: registry.guard(lambda call: "guarded" if call.call_id == "c1" else None))
        .call("b")
        .call("b")
    )
    assert scenario.run().values == ("own", None)
    scenario.run()
    assert len(made) == 2
