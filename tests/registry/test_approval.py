"""``Ask``: who answers, and what the answer makes of the call (C6.6, D5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from quiesce import Ask, Effect, Failure, Outcome, Registry, ToolCall, open_runtime, run_calls
from quiesce.registry import ApprovalOutcome, ApprovalRequest, CallView
from toolbox import registry_of


async def one(_: object) -> str:
    return "ran"


def asking(reason: str | None = None) -> Registry:
    """A registry whose tool needs approval."""
    registry = registry_of(t=one)

    @registry.pre_execute
    async def ask(call: CallView, proceed: object) -> Ask:
        return Ask(reason)

    return registry


async def outcome_of(registry: Registry, *, with_agent: bool = True) -> Outcome:
    """The outcome of one call that needs approval."""
    (outcome,) = await run_calls(registry, [ToolCall("c", "t", {}, registry.scope() if with_agent else None)])
    return outcome


async def test_nobody_registered_means_denied_with_the_reason_or_the_fixed_text() -> None:
    """No approval service at all: fail closed."""
    outcome = await outcome_of(asking("dangerous"))
    assert isinstance(outcome, Failure)
    assert (outcome.text, outcome.denied_by, outcome.code) == ("Error: dangerous", "unavailable", None)
    assert (await outcome_of(asking())).text == 'Error: tool "t" requires approval (not yet supported)'


async def test_a_call_without_an_agent_is_denied() -> None:
    """There is nobody to route it through."""
    registry = asking()

    @registry.approver
    async def approve(request: ApprovalRequest, proceed: object) -> ApprovalOutcome:
        return ApprovalOutcome.ALLOWED_ONCE

    text = (await outcome_of(registry, with_agent=False)).text
    assert text == 'Error: tool "t" requires approval, but the call has no agent to route it through'
    assert (await outcome_of(registry)).text == "ran"


@pytest.mark.parametrize(
    ("answer", "text", "denied_by"),
    [
        ("allowed-once", "ran", None),
        ("rejected", 'Error: the user rejected tool "t"', "user"),
        ("cancelled", 'Error: approval for tool "t" was cancelled', "user"),
        ("unavailable", 'Error: tool "t" requires approval, but no approval channel is available', "unavailable"),
        ("sure, why not", 'Error: tool "t" requires approval, but no approval channel is available', "unavailable"),
        (RuntimeError("x"), 'Error: tool "t" requires approval, but no approval channel is available', "unavailable"),
    ],
)
async def test_each_answer_has_its_text(answer: object, text: str, denied_by: str | None) -> None:
    """The closed vocabulary; a rogue answer or an error fails closed (D5.5)."""
    registry = asking("because")
    asked: list[tuple[str, str, str | None]] = []

    @registry.approver
    async def answering(request: ApprovalRequest, proceed: object) -> str:
        asked.append((request.tool_name, request.call_id, request.reason))
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    outcome = await outcome_of(registry)
    assert outcome.text == text
    assert getattr(outcome, "denied_by", None) == denied_by
    assert asked == [("t", "c", "because")]


async def test_the_first_approver_decides_or_hands_on() -> None:
    """Delegation by ``proceed``; with nobody left the answer is unavailable."""
    registry = asking()
    heard: list[str] = []

    @registry.approver
    async def first(request: ApprovalRequest, proceed: Callable[[], Awaitable[ApprovalOutcome]]) -> ApprovalOutcome:
        heard.append("first")
        return await proceed()

    assert "no approval channel" in (await outcome_of(registry)).text

    @registry.approver
    async def second(request: ApprovalRequest, proceed: object) -> ApprovalOutcome:
        heard.append("second")
        return ApprovalOutcome.ALLOWED_ONCE

    assert (await outcome_of(registry)).text == "ran"
    assert heard == ["first", "first", "second"]


async def test_a_cancel_while_asking_ends_the_question(autojump_clock: trio.testing.MockClock) -> None:
    """The call is ``ABORTED_BEFORE_DISPATCH`` at once; a late answer cannot arrive."""
    registry = asking()

    @registry.approver
    async def thinking(request: ApprovalRequest, proceed: object) -> ApprovalOutcome:
        await trio.sleep(100)
        return ApprovalOutcome.ALLOWED_ONCE

    async with open_runtime(registry) as runtime:
        batch = runtime.batch([ToolCall("c", "t", {}, registry.scope())])
        with trio.move_on_after(1):
            await batch.run()
    (outcome,) = batch.outcomes
    assert outcome is not None
    assert (outcome.code, outcome.effect) == ("ABORTED_BEFORE_DISPATCH", Effect.NOT_STARTED)
    assert trio.current_time() == 1
