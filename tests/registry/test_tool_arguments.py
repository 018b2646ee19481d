"""Arguments reach the function as its annotations say, and nothing is silently turned into something else."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import attrs
import pytest

from quiesce import tool
from quiesce.errors import ToolArgsError
from quiesce.registry import FrozenDict, ImageBlock, JsonValue, OtherBlock, TextBlock, freeze

T = TypeVar("T")


class Color(enum.Enum):
    """Strings."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Numbers."""

    LOW = 1
    HIGH = 2


class Options(TypedDict):
    """A dict with declared keys."""

    path: Path
    names: NotRequired[set[str]]


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: Color = Color.RED


def _positive(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if value <= 0:
        msg = f"{attribute.name} must be positive"
        raise ValueError(msg)


@attrs.frozen
class Circle:
    """With a validator, a private field and a computed one."""

    radius: float = attrs.field(validator=_positive)
    _hidden: int = 3
    area: float = attrs.field(init=False, default=0.0)


@dataclass
class Square:
    """With a check after it is made."""

    side: float
    colors: list[Color] = field(default_factory=list[Color])

    def __post_init__(self) -> None:
        if self.side > 100:
            raise AssertionError


@dataclass
class Box(Generic[T]):
    """Generic."""

    content: T


def taker(annotation: Any) -> Any:
    """A tool whose one parameter ``it`` has an annotation."""

    def take(it: Any) -> None: ...

    take.__annotations__ = {"it": annotation}
    return tool(take)


def taken(annotation: Any, value: JsonValue) -> Any:
    """What a function with a parameter of this annotation gets."""
    definition = taker(annotation)
    arguments: Any = freeze({"it": value})
    assert definition.check_arguments(arguments) == []
    return definition.bind(arguments, None).keywords["it"]


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (int, 3, 3),
        (int, 3.0, 3),
        (int, 10**30, 10**30),
        (float, 3, 3.0),
        (float, 2.5, 2.5),
        (int | float, 3, 3),
        (int | float, 3.0, 3.0),
        (str, "5", "5"),
        (int | str, "5", "5"),
        (bool, True, True),
        (bool | int, 1, 1),
        (bool | int, True, True),
        (None, None, None),
        (int | None, None, None),
        (Literal[1, "a"], 1.0, 1),
        (Literal[True, 1], 1, 1),
        (Literal[True, 1], True, True),
        (Literal[Color.RED], "red", Color.RED),
        (Color, "blue", Color.BLUE),
        (Level, 2, Level.HIGH),
        (Level, 2.0, Level.HIGH),
        (Color | str, "red", Color.RED),
        (Color | str, "pink", "pink"),
        (Path | str, "a", Path("a")),
        (str | Path, "a", "a"),
        (datetime.date | str, "2026-01-02", datetime.date(2026, 1, 2)),
        (datetime.date | str, "soon", "soon"),
        (Path, "a/b", Path("a/b")),
        (datetime.time, "09:30", datetime.time(9, 30)),
        (
            datetime.datetime,
            "2026-01-02T03:04:05Z",
            datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        ),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (Sequence[Path], ["a"], [Path("a")]),
        (Iterable[int], [1], [1]),
        (set[int], [1, 1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset({"a"})),
        (AbstractSet[Color], ["red"], frozenset({Color.RED})),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, Color], [1, "red"], (1, Color.RED)),
        (tuple[()], [], ()),
        (dict[str, Level], {"a": 1}, {"a": Level.LOW}),
        (Mapping[Color, int], {"red": 1}, {Color.RED: 1}),
        (Circle, {"radius": 2, "hidden": 4}, Circle(2.0, 4)),
        (Circle, {"radius": 2}, Circle(2.0)),
        (Square, {"side": 1, "colors": ["red"]}, Square(1.0, [Color.RED])),
        (Pair, {"left": 1}, Pair(1)),
        (Pair, {"left": 1, "right": "blue"}, Pair(1, Color.BLUE)),
        (Options, {"path": "p", "names": ["n"]}, {"path": Path("p"), "names": {"n"}}),
        (Options, {"path": "p"}, {"path": Path("p")}),
        (Box[Color], {"content": "red"}, Box(Color.RED)),
        (Box[Box[Path]], {"content": {"content": "p"}}, Box(Box(Path("p")))),
        (Circle | Square | None, {"side": 1}, Square(1.0)),
        (Circle | Square | None, {"radius": 1}, Circle(1.0)),
        (Circle | dict[str, Any], {"radius": 1}, Circle(1.0)),
        (dict[str, Any] | Circle, {"radius": 1}, Circle(1.0)),
        (Circle | dict[str, Any], {"side": 1}, {"side": 1}),
        (list[int] | list[Color], ["red"], [Color.RED]),
        (list[Circle] | Circle, [{"radius": 1}], [Circle(1.0)]),
        (TextBlock, {"type": "text", "text": "t"}, TextBlock("t")),
        (TextBlock | ImageBlock, {"type": "image", "url": "u"}, ImageBlock(url="u")),
        (OtherBlock | TextBlock, {"type": "text", "text": "t"}, TextBlock("t")),
        (OtherBlock, {"type": "text", "text": "t"}, OtherBlock(FrozenDict({"type": "text", "text": "t"}))),
        (OtherBlock | TextBlock, {"type": "x"}, OtherBlock(FrozenDict({"type": "x"}))),
    ],
)
def test_json_becomes_what_the_annotation_says(annotation: Any, given: JsonValue, expected: Any) -> None:
    """The value has the declared type exactly, also where Python's equality would not tell."""
    got = taken(annotation, given)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "given", "violations"),
    [
        (datetime.date, "2026-13-01", ['"it" must be an ISO 8601 date']),
        (datetime.datetime, "soon", ['"it" must be an ISO 8601 date and time']),
        (tuple[int, str], [1], ['"it" must be an array of exactly 2 items']),
        (tuple[int, str], ["a", 1], ['"it[0]" must be an integer', '"it[1]" must be a string']),
        (dict[str, int], {"a": "5", "b": 1, "c": True}, ['"it.a" must be an integer', '"it.c" must be an integer']),
        (dict[Color, int], {"pink": 1}, ['"it.pink" must be one of ["red","blue"]']),
        (dict[str, list[Literal["x"]]], {"a": ["x", "y"]}, ['"it.a[1]" must be "x"']),
        (dict[str, Circle], {"a": {}}, ['missing required property "it.a.radius"']),
        (
            dict[str, Circle],
            {"a": {"radius": 1, "x": 1}},
            ['"it.a.x" is not a declared property (additionalProperties: false)'],
        ),
        (dict[str, Circle | Square], {"a": {}}, ['"it.a" must have one of the declared forms, as a whole']),
        (dict[str, None], {"a": 0}, ['"it.a" must be null']),
        (dict[str, dict[str, bool]], {"a": {"b": 1}}, ['"it.a.b" must be a boolean']),
        (dict[str, dict[str, bool]], {"a": 1}, ['"it.a" must be an object']),
        (dict[str, list[int]], {"a": 1}, ['"it.a" must be an array']),
        (dict[str, Options], {"a": 1}, ['"it.a" must be an object']),
        (dict[str, Path], {"a": 1}, ['"it.a" must be a string']),
        (dict[str, TextBlock], {"a": {"type": "x"}}, ['"it.a" must be a content block of type text']),
        (dict[str, OtherBlock], {"a": 1}, ['"it.a" must be an object']),
        (float, 10**400, ['"it" must be a number that fits into a float']),
        (set[Any], [[1]], ['"it" must hold only items that can be in a set']),
        (list[int] | list[str], [1, "a"], ['"it" must have one of the declared forms, as a whole']),
        (Circle, {"radius": -1}, ['"it" is not valid: radius must be positive']),
        (list[Square], [{"side": 1}, {"side": 101}], ['"it[1]" is not valid: AssertionError']),
        (Box[datetime.date], {"content": "x"}, ['"it.content" must be an ISO 8601 date']),
        (list[datetime.date] | None, ["x"], ['"it[0]" must be an ISO 8601 date']),
        (Box[datetime.date] | Square, {"content": "x"}, ['"it.content" must be an ISO 8601 date']),
    ],
)
def test_what_the_schema_cannot_refuse_is_refused_with_its_path(
    annotation: Any, given: JsonValue, violations: list[str]
) -> None:
    """Every fault is listed, worded like the validator's own."""
    definition = taker(annotation)
    arguments: Any = freeze({"it": given})
    assert definition.check_arguments(arguments) == []
    with pytest.raises(ToolArgsError) as caught:
        definition.bind(arguments, None)
    assert list(caught.value.violations) == violations
    assert caught.value.message == "invalid arguments: " + "; ".join(violations)
    assert caught.value.code == "INVALID_ARGS"


def test_the_faults_of_all_parameters_are_listed() -> None:
    """The model can mend them in one go."""

    @tool
    def take(first: datetime.date, second: tuple[int, int]) -> None: ...

    arguments: Any = freeze({"first": "x", "second": []})
    with pytest.raises(ToolArgsError) as caught:
        take.bind(arguments, None)
    assert len(caught.value.violations) == 2


@pytest.mark.parametrize(
    "annotation", [Any, object, JsonValue, dict, dict[str, Any], dict[str, JsonValue], Box[Any] | dict[str, Any]]
)
def test_unchecked_json_arrives_plain_and_changeable(annotation: Any) -> None:
    """A body may change what it got: it is a copy, and nothing in it is frozen."""
    got = taken(annotation, {"a": [{"b": [1]}]})
    assert got == {"a": [{"b": [1]}]}
    got["a"][0]["b"].append(2)
    assert {type(got), type(got["a"]), type(got["a"][0])} == {dict, list}
    assert [type(each) for each in taken(list, [[1]])] == [list]


def test_frozen_containers_reach_no_typed_container_either() -> None:
    """The same holds inside typed containers and classes."""
    got = taken(Box[list[Any]], {"content": [{"a": []}]})
    assert (repr(got.content), got.content[0].__class__) == ("[{'a': []}]", dict)
    assert type(taken(dict[str, list[int]], {"a": [1]})["a"]) is list


def test_arguments_that_the_function_does_not_know_are_dropped() -> None:
    """The root of a tool's schema is open."""

    @tool
    def take(a: int, b: int = 2) -> int:
        return a + b

    arguments: Any = freeze({"a": 1, "c": 3})
    assert take.check_arguments(arguments) == []
    assert take.bind(arguments, None)() == 3


def test_deep_json_arrives() -> None:
    """5,000 levels of unchecked JSON work."""
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    got = taken(Any, deep)
    levels = 0
    while got:
        got, levels = got[0], levels + 1
    assert levels == 5000
