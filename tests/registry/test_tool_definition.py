"""``@tool`` itself: what it accepts, what it injects, what it refuses."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

import pytest
import trio

import quiesce
from quiesce import (
    EXCLUSIVE,
    INDEPENDENT,
    PARALLEL,
    Claims,
    Registry,
    RunContext,
    ToolCall,
    ToolDefinition,
    open_runtime,
    tool,
)
from quiesce.errors import RegistrationError
from quiesce.registry import Arguments, classify, freeze, render_as_text

if TYPE_CHECKING:
    from quiesce.registry import JsonValue


async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def call(definition: ToolDefinition, run: Any = None, **arguments: Any) -> Any:
    """Call the body with these arguments."""
    frozen: Any = freeze(arguments)
    assert definition.check_arguments(frozen) == []
    return definition.bind(frozen, run)()


def test_bare_and_with_options_it_makes_a_definition() -> None:
    """``@tool``, ``@tool()`` and ``tool(function, ...)`` are the same."""
    for made in (tool(add), tool()(add), tool(name="add")(add), tool(add, description="Add.")):
        assert isinstance(made, ToolDefinition)
        assert (made.name, made.description, made.is_sync, made.takes_run) == ("add", "Add.", False, False)
        assert made.concurrency is EXCLUSIVE
        assert made.output.render is render_as_text
        assert made.schema()["parameters"] == {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
            "required": ["a"],
        }


def test_options_reach_the_definition() -> None:
    """Every option has its field."""

    def present(*_: Any) -> Any:
        return None

    made = tool(
        name="plus",
        description="Plus.",
        concurrency=INDEPENDENT,
        timeout_ms=5,
        render=present,
        presentation_meta=present,
        finalize_content=present,
        present_call=present,
        present_result=present,
    )(add)
    assert (made.name, made.description, made.concurrency, made.timeout_ms) == ("plus", "Plus.", INDEPENDENT, 5)
    given: list[Any] = [made.output.render, made.output.presentation_meta, made.finalize_content]
    assert [*given, made.present_call, made.present_result] == [present] * 5


async def test_a_registered_function_is_unchanged_and_runs() -> None:
    """``@registry.tool`` returns the function; calls reach it with what its annotations say."""
    registry = Registry()
    names: list[str] = []

    @registry.tool(concurrency=PARALLEL)
    def halve(n: float, run: RunContext) -> float:
        names.append(run.name)
        return n / 2

    assert inspect.isfunction(halve)
    async with open_runtime(registry) as runtime:
        good, bad = await runtime.run([ToolCall("1", "halve", {"n": 3}), ToolCall("2", "halve", {"n": "3"})])
    assert names == ["halve"]
    assert (good.is_error, good.text) == (False, "1.5")
    assert (bad.code, bad.text) == ("INVALID_ARGS", 'Error: invalid arguments: "n" must be a number')


def test_a_run_context_is_injected_under_any_name_and_spelling() -> None:
    """It is no parameter for the model."""

    def plain(n: int, context: RunContext) -> Any:
        return context

    def optional(n: int, run: RunContext | None = None) -> Any:
        return run

    def old(n: int, run: Optional[RunContext] = None) -> Any:  # noqa: UP045 - the old spelling is recognised too
        return run

    def annotated(n: int, *, run: Annotated[RunContext, "x"]) -> Any:
        return run

    def dotted(n: int, run: quiesce.RunContext) -> Any:
        return run

    run: Any = object()
    for function in (plain, optional, old, annotated, dotted):
        made = tool(function)
        assert [*made.schema()["parameters"]["properties"]] == ["n"]  # type: ignore[index,call-overload,misc]
        assert made.takes_run
        assert call(made, run, n=1) is run


def test_names_known_to_type_checkers_only_are_understood_if_they_are_ours() -> None:
    """``RunContext`` and ``JsonValue`` are often imported under ``TYPE_CHECKING``."""

    def take(value: JsonValue) -> list[JsonValue]:
        return [value]

    assert tool(take).schema()["parameters"] == {"type": "object", "properties": {"value": {}}, "required": ["value"]}


def test_a_plain_function_is_synchronous() -> None:
    """It will run in a thread; a wrapper around an async function still hands on its coroutine."""

    def plain() -> int:
        return 1

    @functools.wraps(add)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return add(*args, **kwargs)

    assert tool(plain).is_sync
    assert not tool(wrapper).is_sync
    assert not tool(functools.partial(add, 1)).is_sync


def test_a_timeout_on_a_plain_function_needs_polling() -> None:
    """A thread cannot be cancelled from outside."""

    def plain() -> int:
        return 1

    with pytest.raises(RegistrationError, match="polls_cancelled"):
        tool(timeout_ms=5)(plain)
    assert tool(timeout_ms=5, polls_cancelled=True)(plain).polls_cancelled


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        """Count on.

        Args:
            by: How far.
        """
        self.count += by
        return self.count

    def __call__(self, by: int) -> int:
        """Count on."""
        return self.add(by)

    @staticmethod
    def zero(of: int) -> int:
        """Zero."""
        return 0 * of


def test_methods_partials_and_callable_objects_are_tools() -> None:
    """What ``inspect.signature`` knows works; ``self`` and what a partial fixes are no parameters."""
    counter = Counter()
    method = tool(counter.add)
    assert (method.name, method.description) == ("add", "Count on.")
    assert call(method, by=2) == 2
    assert method.schema()["parameters"]["properties"] == {"by": {"type": "integer", "description": "How far."}}  # type: ignore[index,call-overload]

    called = tool(name="count")(counter)
    assert called.description == "Count on."
    assert call(called, by=2) == 4
    assert call(tool(Counter.zero), of=1) == 0

    def search(text: str, key: str, limit: int = 10) -> str:
        """Search."""
        return f"{text}{key}{limit}"

    fixed = tool(functools.partial(functools.partial(search, key="secret"), limit=3))
    assert (fixed.name, fixed.description) == ("search", "Search.")
    assert "secret" not in str(fixed.schema())
    assert call(fixed, text="a", key="model", limit=9) == "asecret3"


def test_what_has_no_name_needs_one() -> None:
    """A model cannot call a lambda."""
    unnamed: list[Callable[..., Any]] = [lambda: 1, Counter()]
    for function in unnamed:
        with pytest.raises(RegistrationError, match="name="):
            tool(function)
    assert tool(name="one")(lambda: 1).name == "one"
    with pytest.raises(RegistrationError, match="not empty"):
        tool(name="")(add)


def positional(a: int, /) -> None:
    """Refused."""


def variadic(*values: int) -> None:
    """Refused."""


def keywords(**values: int) -> None:
    """Refused."""


def bare(a) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  # pyright: ignore[reportMissingParameterType,reportUnknownParameterType]
    """Refused."""


def generator(a: int) -> Iterator[int]:
    """Refused."""
    yield a


async def stream(a: int) -> AsyncIterator[int]:
    """Refused."""
    yield a


UNCALLABLE: list[tuple[Any, list[str]]] = [
    (positional, ['tool "positional": parameter "a"', "remove the /"]),
    (variadic, ['tool "variadic": parameter "values"', "a list"]),
    (keywords, ['tool "keywords": parameter "values"', "a dict"]),
    (bare, ['tool "bare": parameter "a" has no annotation', "Any"]),
    (Counter.add, ['tool "add": parameter "self"', "bound method"]),
    (generator, ['tool "generator": it is a generator', "run.progress()"]),
    (stream, ['tool "stream": it is a generator', "run.progress()"]),
    (classmethod(cast("Any", Counter.add)), ["takes a function"]),
    (3, ["takes a function, got 3"]),
    (dict.fromkeys, ['tool "fromkeys"']),
]


@pytest.mark.parametrize(("function", "texts"), UNCALLABLE)
def test_a_function_that_cannot_be_called_by_name_is_refused(function: Any, texts: list[str]) -> None:
    """The error names the tool, the parameter and the remedy."""
    with pytest.raises(RegistrationError) as caught:
        tool(function)
    for text in texts:
        assert text in str(caught.value)


def test_concurrency_takes_claims_or_a_plain_function_of_the_raw_arguments() -> None:
    """The function sees the arguments as the model wrote them."""
    seen: list[Any] = []

    def claims(arguments: Arguments) -> Claims:
        seen.append(arguments)
        return Claims(reads={str(arguments["a"])})

    keyed = tool(concurrency=claims)(add)
    assert classify(keyed, freeze({"a": 1.0})) == Claims(reads={"1.0"})
    assert seen == [{"a": 1.0}]
    assert classify(tool(concurrency=True)(add), freeze({"a": 1})) == PARALLEL
    assert classify(keyed, freeze({"a": "x"})) == EXCLUSIVE


async def late(_arguments: Arguments) -> bool:
    """An async classifier, which nothing would await."""
    await trio.lowlevel.checkpoint()
    return True


@pytest.mark.parametrize("concurrency", [late, functools.partial(late), "parallel", 3, Claims])
def test_any_other_concurrency_is_refused(concurrency: Any) -> None:
    """An async classifier above all."""
    with pytest.raises(RegistrationError, match=r'tool "add": concurrency='):
        tool(concurrency=concurrency)(add)


def test_an_unknown_option_is_refused() -> None:
    """A misspelt option is no silent default."""
    with pytest.raises(TypeError, match="timeout"):
        tool(timeout=3)(add)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
