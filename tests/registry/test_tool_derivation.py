"""``@tool``: annotations to schema, arguments to types, values back to JSON."""

# Functions without annotations and types made at run time are what these tests are about.
# mypy: disable-error-code="no-untyped-def, call-overload, no-untyped-call, valid-type, misc, name-defined, arg-type, no-any-return"
# pyright: basic, reportUndefinedVariable=false
# ruff: noqa: ANN001, ANN202
from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce import EXCLUSIVE, PARALLEL, Claims, Registry, RunContext, Success, ToolCall, run_calls, tool
from quiesce.errors import RegistrationError
from quiesce.registry import ImageBlock, TextBlock, check_schema, freeze, thaw


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Point:
    """A point.

    Attributes:
        x: Across.
    """

    x: int
    y: float = 0.5


@dataclasses.dataclass
class Box:
    corner: Point
    tags: list[str] = dataclasses.field(default_factory=list)


class Options(TypedDict, total=False):
    deep: Required[bool]
    size: NotRequired[int]


def parameters_of(function: Any) -> dict[str, Any]:
    """The parameter schema of a function."""
    parameters: Any = thaw(tool(function).parameters)
    return parameters


def property_of(annotation: Any) -> dict[str, Any]:
    """The schema of one annotation."""

    def function(x) -> None: ...

    function.__annotations__ = {"x": annotation, "return": None}
    return parameters_of(function)["properties"]["x"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (int | float, {"type": "number"}),
        (str | None, {"oneOf": [{"type": "string"}, {"type": "null"}]}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": True}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"] | str, {"type": "string"}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (pathlib.Path, {"type": "string"}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Options,
            {
                "type": "object",
                "properties": {"deep": {"type": "boolean"}, "size": {"type": "integer"}},
                "additionalProperties": False,
                "required": ["deep"],
            },
        ),
    ],
)
def test_an_annotation_becomes_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    """The table of ``docs/tools.md``; everything lies within the enforced subset."""
    assert property_of(annotation) == schema
    assert check_schema(schema) == []


GOOGLE = """Do it.

More.

Args:
    x: Across,
        and on.
    y: Down.
"""
NUMPY = """Do it.

More.

Parameters
----------
x : int
    Across,
    and on.
y
    Down.
"""
SPHINX = """Do it.

More.

:param x: Across,
    and on.
:param y: Down.
"""


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_descriptions_come_from_docstrings_of_three_styles(docstring: str) -> None:
    """The description is what stands before the sections; parameters get theirs in one line."""

    def function(x: int, y: int = 2) -> None: ...

    function.__doc__ = docstring
    definition = tool(function)
    assert definition.description == "Do it.\n\nMore."
    assert thaw(definition.parameters) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "Across, and on."},
            "y": {"type": "integer", "description": "Down.", "default": 2},
        },
        "required": ["x"],
    }


class Recursive(TypedDict):
    inner: list[Recursive]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (bytes, "bytes has no JSON form"),
        (complex, "complex has no JSON form"),
        (dict[int, str], "keys that are not texts"),
        (list[int] | list[str], "can fit two branches"),
        (Recursive, "contains itself"),
        (Box | Point | Any, None),
    ],
)
def test_what_cannot_be_described_is_refused_by_the_parameters_name(annotation: Any, text: str | None) -> None:
    """The error names tool, parameter, problem and remedy."""
    if text is None:
        assert property_of(annotation) == {}
        return
    with pytest.raises(RegistrationError, match=f'tool "function": parameter "x" cannot be described: .*{text}'):
        property_of(annotation)


def test_functions_that_cannot_be_tools_are_refused() -> None:
    """Missing annotations, variadics, positional-only parameters, generators, unresolvable names, async classifiers."""

    def bare(x) -> None: ...

    def many(*xs: int) -> None: ...

    def anything(**xs: int) -> None: ...

    def positional(x: int, /) -> None: ...

    def unresolved(x: Nowhere) -> None: ...  # noqa: F821

    async def generator(x: int):
        yield x

    async def classify(arguments: object) -> bool:
        return True

    for function, text in [
        (bare, 'parameter "x" has no annotation'),
        (many, "takes any number of values"),
        (anything, "takes any names"),
        (positional, "no name that a model could use"),
        (unresolved, "cannot be resolved"),
        (generator, "is a generator"),
    ]:
        with pytest.raises(RegistrationError, match=text):
            tool(function)
    with pytest.raises(RegistrationError, match="takes a plain function of the arguments"):
        tool(concurrency=classify)(positional)


def test_a_deadline_on_a_thread_that_does_not_poll_is_refused() -> None:
    """A thread cannot be ended from outside; the error says what to do."""

    def function() -> None: ...

    with pytest.raises(RegistrationError, match=r"make it async, or poll run\.cancelled"):
        tool(timeout_ms=100)(function)
    assert tool(timeout_ms=100, polls_cancelled=True)(function).timeout_ms == 100
    for bad in (0, -1, float("inf"), float("nan"), True):
        with pytest.raises(RegistrationError, match="timeoutMs must be a positive finite number"):
            tool(timeout_ms=bad, polls_cancelled=True)(function)


async def test_arguments_arrive_as_the_declared_types_and_values_go_back_as_json() -> None:
    """Structured by cattrs without coercion, and the value unstructured by its declared type."""
    seen: list[object] = []
    registry = Registry()

    @registry.tool(concurrency=PARALLEL)
    async def everything(
        path: pathlib.Path,
        color: Color,
        box: Box,
        when: datetime.datetime,
        pair: tuple[int, str],
        loose: dict[str, Any],
        either: Point | str,
        run: RunContext,
        options: Options | None = None,
    ) -> list[Point]:
        seen.extend([path, color, box, when, pair, loose, either, run.call_id, options])
        loose["mine"] = "to change"
        return [Point(1), box.corner]

    arguments = {
        "path": "/x",
        "color": "red",
        "box": {"corner": {"x": 3.0}},
        "when": "2026-12-01T09:30:00+00:00",
        "pair": [1, "a"],
        "loose": {"deep": [1]},
        "either": {"x": 2},
        "unknown": "left out",
    }
    (outcome,) = await run_calls(registry, [ToolCall("c", "everything", arguments)])
    assert isinstance(outcome, Success), outcome
    assert outcome.value == [{"x": 1, "y": 0.5}, {"x": 3, "y": 0.5}]
    assert seen == [
        pathlib.Path("/x"),
        Color.RED,
        Box(Point(3)),
        datetime.datetime(2026, 12, 1, 9, 30, tzinfo=datetime.UTC),
        (1, "a"),
        {"deep": [1], "mine": "to change"},
        Point(2),
        "c",
        None,
    ]
    assert arguments["loose"] == {"deep": [1]}


async def test_what_the_schema_could_not_say_is_invalid_args_all_the_same() -> None:
    """Values of mappings, lengths of tuples, forms of dates: checked when the arguments are structured."""
    ran: list[int] = []
    registry = Registry()

    @registry.tool
    async def picky(m: dict[str, int], t: tuple[int, str], d: datetime.date) -> None:
        ran.append(1)

    good = {"m": {"a": 1}, "t": [1, "x"], "d": "2026-12-01"}
    bad = [{**good, "m": {"a": "1"}}, {**good, "t": [1]}, {**good, "d": "soon"}, {**good, "m": {"a": True}}]
    outcomes = await run_calls(registry, [ToolCall("c", "picky", arguments) for arguments in bad])
    assert [outcome.code for outcome in outcomes] == ["INVALID_ARGS"] * 4
    assert outcomes[0].text == "Error: invalid arguments: \"m['a']\" must be an integer, not '1'"
    assert not ran


async def test_a_value_of_another_type_than_declared_is_invalid_output() -> None:
    """The failure names the path; nothing is converted that was not declared."""
    registry = Registry()

    @registry.tool
    async def wrong() -> list[Point]:
        returned: Any = [Point(1), object()]
        return returned

    @registry.tool
    async def undeclared() -> Any:
        return {"a": [Point(1)]}

    first, second = await run_calls(registry, [ToolCall("a", "wrong"), ToolCall("b", "undeclared")])
    assert (first.code, second.code) == ("INVALID_TOOL_OUTPUT", "INVALID_TOOL_OUTPUT")
    assert "value.a[0]" in second.text


async def test_content_blocks_are_shown_as_they_are() -> None:
    """A tool that returns blocks is shown to the model as these blocks."""
    registry = Registry()

    @registry.tool
    async def picture() -> list[TextBlock | ImageBlock]:
        return [TextBlock("look"), ImageBlock("image/png", "aGk=")]

    (outcome,) = await run_calls(registry, [ToolCall("c", "picture")])
    assert outcome.content == (TextBlock("look"), ImageBlock("image/png", "aGk="))


def test_tool_gives_a_definition_and_registry_tool_the_function() -> None:
    """The two forms; claims are what was said, exclusive if nothing was."""
    registry = Registry()

    async def function(path: str) -> None: ...

    assert registry.tool(function) is function
    assert registry.execution_mode(ToolCall("c", "function", {"path": "x"})) == EXCLUSIVE
    keyed = tool(name="keyed", concurrency=lambda arguments: Claims(writes={str(arguments["path"])}))(function)
    registry.register(keyed)
    assert registry.execution_mode(ToolCall("c", "keyed", {"path": "x"})) == Claims(writes={"x"})
    assert registry.execution_mode(ToolCall("c", "keyed", {})) == EXCLUSIVE
    assert registry.execution_mode(ToolCall("c", "nope", {})) == EXCLUSIVE


scalars: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: str(x) != "-0.0")),
    (str, st.text()),
    (bool, st.booleans()),
    (Color, st.sampled_from(Color)),
    (pathlib.Path, st.sampled_from([pathlib.Path("/a/b"), pathlib.Path("c")])),
    (datetime.date, st.dates()),
    (Point, st.builds(Point, x=st.integers(), y=st.floats(0.1, 9))),
    (Box, st.builds(Box, corner=st.builds(Point, x=st.integers()), tags=st.lists(st.text(), max_size=2))),
]
types_and_values = st.recursive(
    st.sampled_from(scalars),
    lambda inner: st.one_of(
        inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
        inner.map(lambda pair: (dict[str, pair[0]], st.dictionaries(st.text(), pair[1], max_size=3))),
        inner.map(lambda pair: (pair[0] | None, st.none() | pair[1])),
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_value_goes_out_by_its_type_and_comes_back_equal(data: st.DataObject) -> None:
    """For random types: a value unstructures to what its own schema accepts, and structures back to an equal one."""
    annotation, values = data.draw(types_and_values)
    value = data.draw(values)
    back: list[object] = []
    registry = Registry()

    async def send():
        return value

    async def receive(x) -> None:
        back.append(x)

    send.__annotations__ = {"return": annotation}
    receive.__annotations__ = {"x": annotation, "return": None}
    try:
        registry.tool(send)
    except RegistrationError as error:
        assert "can fit two branches" in str(error)  # noqa: PT017 - a union that the subset cannot tell apart
        return
    registry.tool(receive)

    async def main() -> None:
        (sent,) = await run_calls(registry, [ToolCall("a", "send")])
        assert isinstance(sent, Success), sent
        assert freeze(sent.value) == sent.value
        (received,) = await run_calls(registry, [ToolCall("b", "receive", {"x": sent.value})])
        assert isinstance(received, Success), received

    trio.run(main)
    assert back == [value]
