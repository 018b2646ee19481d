"""Scopes, views, restrictions, shadowing, guards, disposal and ``explain``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from quiesce import Allow, Deny, Failure, Registry, Scope, ToolCall, define_tool, run_calls
from quiesce.errors import RegistrationError
from quiesce.registry import CallView, Outcome, PreDecision, PreHook, ToolDefinition
from toolbox import add_tools, calls_of, registry_of


async def one(_: object) -> str:
    return "one"


async def two(_: object) -> str:
    return "two"


def named(name: str, text: str) -> ToolDefinition:
    """A tool that answers with a text."""

    async def body(_: object) -> str:
        return text

    return define_tool(name, description=text, parameters={}, output={"schema": {"type": "string"}}, execute=body)


def names(registry: Registry, scope: Scope | None = None) -> list[str]:
    """The names that a scope sees, in the order shown to the model."""
    return [str(schema["name"]) for schema in registry.schemas(scope)]


async def said(registry: Registry, name: str, scope: Scope | None = None) -> str:
    """What a call of that name answers."""
    (outcome,) = await run_calls(registry, [ToolCall("c", name, {}, scope)])
    return outcome.text


async def test_a_scoped_tool_is_visible_in_its_scope_and_below_only() -> None:
    """Schemas and dispatch agree (C4.6); elsewhere the name is unknown."""
    registry = registry_of(base=one)
    with registry.scope() as parent, registry.scope(parent) as child, registry.scope() as other:
        parent.register(named("mine", "mine"))
        assert names(registry) == names(registry, other) == ["base"]
        assert names(registry, parent) == ["base", "mine"]
        assert await said(registry, "mine", child) == "mine"
        assert await said(registry, "mine", other) == 'Error: unknown tool "mine"'


@pytest.mark.parametrize("scoped_first", [True, False])
async def test_a_scope_shadows_whatever_the_order_and_keeps_the_place(scoped_first: bool) -> None:
    """The nearer tool wins in either order of registration (C4.1, C4.2b)."""
    registry = Registry()
    scope = registry.scope()
    places = [scope, registry] if scoped_first else [registry, scope]
    for place in places:
        place.register(named("t", "scoped" if place is scope else "global"))
    registry.register(named("u", "later"))
    assert await said(registry, "t", scope) == "scoped"
    assert await said(registry, "t") == "global"
    assert names(registry, scope) == ["t", "u"]


def test_a_name_is_registered_once_in_a_place() -> None:
    """The texts that hosts compare (C4.1)."""
    registry = registry_of(t=one)
    with pytest.raises(RegistrationError, match=r'tool "t" is already registered \(for a per-agent variant, register'):
        add_tools(registry, t=two)
    scope = registry.scope()
    scope.register(named("t", "x"))
    with pytest.raises(RegistrationError, match='tool "t" is already registered in this scope'):
        scope.register(named("t", "y"))


def test_restrictions_intersect_reach_down_and_lift_one_by_one() -> None:
    """Deny lets later tools through, allow does not; a scope's own tools are outside its own filter only."""
    registry = registry_of(a=one, b=one, c=one)
    parent = registry.scope()
    child = registry.scope(parent)
    denied = parent.restrict(deny=["a"])
    allowed = child.restrict(allow=["a", "b"])
    assert names(registry, parent) == ["b", "c"]
    assert names(registry, child) == ["b"]
    parent.register(named("own", "x"))
    add_tools(registry, d=one)
    assert names(registry, parent) == ["b", "c", "d", "own"]
    assert names(registry, child) == ["b"]
    denied.unregister()
    assert names(registry, child) == ["a", "b"]
    allowed.unregister()
    assert names(registry, child) == ["a", "b", "c", "d", "own"]


def test_bad_restrictions_are_refused_in_the_recorded_order() -> None:
    """On the registry, empty, and of unknown names, with the texts of C4.3."""
    registry = registry_of(b=one, a=one)
    scope = registry.scope()
    scope.register(named("own", "x"))
    with pytest.raises(RegistrationError, match=r"tools.restrict\(\) requires a scoped context \(agent.ctx\)"):
        registry.restrict()
    with pytest.raises(RegistrationError, match=r"tools.restrict\(\{\}\) is a no-op"):
        scope.restrict()
    with pytest.raises(RegistrationError) as caught:
        scope.restrict(allow=["x"], deny=["own"])
    assert str(caught.value) == ('tools.restrict() names unknown global tools "x", "own"; known global tools: a, b')
    with pytest.raises(RegistrationError, match="single string"):
        scope.restrict(deny="a")


async def test_disposal_undoes_everything_and_refuses_more() -> None:
    """Tools, hooks, guards and restrictions of the scope go; disposing again does nothing."""
    registry = registry_of(t=one)
    scope = registry.scope()
    scope.register(named("mine", "x"))

    def no(call: CallView) -> str:
        return "no"

    scope.guard(no)
    scope.restrict(deny=["t"])

    @scope.pre_execute
    async def deny(call: CallView, proceed: object) -> Deny:
        return Deny("no")

    scope.dispose()
    scope.dispose()
    assert await said(registry, "t", scope) == "one"
    assert names(registry, scope) == ["t"]
    with pytest.raises(RegistrationError, match="disposed"):
        scope.register(named("late", "x"))
    assert names(registry, scope) == ["t"]


async def test_hooks_hear_their_scope_and_its_descendants_only() -> None:
    """Events flow up (C2.2): a parent's hook hears the child; a child's never hears parent or sibling."""
    registry = registry_of(t=one)
    parent = registry.scope()
    child = registry.scope(parent)
    heard: list[tuple[str, str]] = []

    def note(label: str, call: CallView, outcome: Outcome) -> None:
        heard.append((label, call.call_id))

    for label, place in (("registry", registry), ("parent", parent), ("child", child)):
        place.on_result(partial(note, label))
    calls = [ToolCall("plain", "t"), ToolCall("p", "t", {}, parent), ToolCall("c", "t", {}, child)]
    await run_calls(registry, calls)
    assert heard == [
        ("registry", "plain"),
        ("registry", "p"),
        ("parent", "p"),
        ("registry", "c"),
        ("parent", "c"),
        ("child", "c"),
    ]


async def test_guards_run_farthest_first_live_and_the_first_reason_wins() -> None:
    """A guard registered by an earlier one of its table runs in the same pass (C5.1, C5.3)."""
    registry = registry_of(t=one)
    scope = registry.scope()
    asked: list[str] = []

    def first(call: CallView) -> None:
        asked.append("first")
        registry.guard(second)

    def second(call: CallView) -> None:
        asked.append("second")

    def scoped(call: CallView) -> str:
        asked.append("scoped")
        return "scoped says no"

    scope.guard(scoped)
    registry.guard(first)
    (outcome,) = await run_calls(registry, [ToolCall("c", "t", {}, scope)])
    assert asked == ["first", "second", "scoped"]
    assert isinstance(outcome, Failure)
    assert (outcome.text, outcome.denied_by, outcome.code) == ("Error: scoped says no", "guard", None)


def test_a_change_observer_that_raises_undoes_the_registration() -> None:
    """C3.5: rolled back, told again, and the error propagates."""
    registry = registry_of(t=one)
    told: list[list[str]] = []

    def observe() -> None:
        told.append(names(registry))
        if len(told) == 1:
            raise RuntimeError("no")

    registry.on_change(observe)
    with pytest.raises(RuntimeError, match="no"):
        registry.register(named("u", "x"))
    assert told == [["t", "u"], ["t"]]


async def test_a_handle_unregisters_once_and_is_a_context_manager() -> None:
    """``with registry.guard(fn)``: in force inside, gone after; the bare decorator leaves a usable function."""
    registry = registry_of(t=one)

    def no(call: CallView) -> str:
        return "no"

    with registry.guard(no) as handle:
        assert handle.active
        assert await said(registry, "t") == "Error: no"
    handle.unregister()
    assert [handle.active] == [False]
    assert await said(registry, "t") == "one"

    @registry.guard
    def yes(call: CallView) -> None:
        return None

    @registry.guard()
    def unchanged(call: CallView) -> None:
        return None

    assert yes.function is not None
    assert unchanged.__name__ == "unchanged"


async def test_the_first_pre_hook_is_outermost_and_prepend_goes_further_out() -> None:
    """0.1.4: not calling ``proceed`` vetoes what is inside."""
    registry = registry_of(t=one)
    order: list[str] = []

    def hook(label: str) -> PreHook:
        async def pre(call: CallView, proceed: Callable[[], Awaitable[PreDecision]]) -> PreDecision:
            order.append(label)
            return await proceed()

        return pre

    registry.pre_execute(hook("first"))
    registry.pre_execute(hook("second"))
    registry.pre_execute(hook("prepended"), prepend=True)

    @registry.pre_execute
    async def innermost(call: CallView, proceed: object) -> Allow:
        order.append("innermost")
        return Allow()

    await run_calls(registry, calls_of("t"))
    assert order == ["prepended", "first", "second", "innermost"]


def test_hooks_of_the_wrong_kind_are_refused() -> None:
    """A synchronous pre hook would block the loop, an async observer would never be awaited."""
    registry = Registry()

    def not_async(call: object, proceed: object) -> Allow:
        return Allow()

    with pytest.raises(RegistrationError, match=r"pre_execute\(\) takes an async function"):
        registry.pre_execute(not_async)

    async def observer(call: object, outcome: object) -> None: ...

    with pytest.raises(RegistrationError, match=r"on_result\(\) takes a plain synchronous function"):
        registry.on_result(observer)  # type: ignore[arg-type]


def test_explain_says_who_provides_shadows_hides_and_guards() -> None:
    """One question, one answer, for a person who wonders why a tool is unknown."""
    registry = registry_of(t=one, u=one)
    parent = registry.scope(label="team")
    child = registry.scope(parent, label="agent")
    parent.register(named("t", "x"))
    child.restrict(deny=["t"])
    parent.restrict(allow=["t"])

    def quota(call: CallView) -> None:
        return None

    registry.guard(quota)
    told = registry.explain("t", child)
    assert (told.visible, told.provided_by, told.shadows) == (False, "team", ("registry",))
    assert told.hidden_by == ("agent: restrict(deny) names t",)
    assert registry.explain("u", child).hidden_by == ("team: restrict(allow) admits only t",)
    assert registry.explain("t", parent).visible
    assert registry.explain("t").guards == (
        "registry: test_explain_says_who_provides_shadows_hides_and_guards.<locals>.quota",
    )
    assert "unknown here" in str(registry.explain("nope"))
    assert str(registry.explain("t", child)).startswith(
        'tool "t" is hidden: provided by team; shadowing registry; hidden'
    )
