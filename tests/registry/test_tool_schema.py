"""How annotations become schemas, and which are refused."""

from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, InitVar, dataclass, field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import attrs
import pytest

from quiesce import tool
from quiesce.errors import RegistrationError
from quiesce.registry import ImageBlock, JsonObject, JsonValue, OtherBlock, TextBlock, check_schema

T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = 1
    B = 2.5
    C = "c"
    D = None


class Perm(enum.Flag):
    R = 1
    W = 2


class Options(TypedDict, total=False):
    depth: Required[int]
    names: list[str]


class Strict(TypedDict):
    depth: int
    names: NotRequired[list[str]]


class Pair(NamedTuple):
    left: int
    right: str = "r"


@attrs.frozen
class Circle:
    radius: float
    _hidden: int = 3
    tags: list[str] = attrs.field(factory=list[str])
    area: float = attrs.field(init=False, default=0.0)


@dataclass
class Square:
    kind: Literal["square"]
    _: KW_ONLY
    side: float = 1.5
    names: list[str] = field(default_factory=list[str])


@dataclass
class Cube:
    kind: Literal["cube"]
    side: float


@attrs.frozen
class Box(Generic[T]):
    content: T
    spare: list[T] | None = None


@attrs.frozen
class IntBox(Box[int]):
    label: str = attrs.field(kw_only=True)


@dataclass
class Loose:
    content: Any


@dataclass
class Nest(Generic[T]):
    inner: Nest[list[T]]


@dataclass
class Node:
    children: list[Node]


@dataclass
class Raw:
    data: bytes


@dataclass
class Given:
    given: InitVar[int]


class Plain:
    pass


@dataclass
class Overlaps:
    kind: str
    side: float


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
NULL = {"type": "null"}
CLOSED = {"additionalProperties": False}
OPEN = {"type": "object", "additionalProperties": True}
CUBE = {
    "type": "object",
    "properties": {"kind": {"type": "string", "const": "cube"}, "side": NUMBER},
    "required": ["kind", "side"],
    **CLOSED,
}
INT_BOX = {
    "type": "object",
    "properties": {
        "content": INTEGER,
        "spare": {"oneOf": [{"type": "array", "items": INTEGER}, NULL], "default": None},
    },
    "required": ["content"],
    **CLOSED,
}

TABLE: list[tuple[Any, dict[str, Any]]] = [
    (None, NULL),
    (bool, {"type": "boolean"}),
    (int, INTEGER),
    (float, NUMBER),
    (str, STRING),
    (Any, {}),
    (object, {}),
    (JsonValue, {}),
    (JsonObject, OPEN),
    (list[JsonValue], {"type": "array"}),
    (list, {"type": "array"}),
    (list[int], {"type": "array", "items": INTEGER}),
    (Sequence[str], {"type": "array", "items": STRING}),
    (Iterable[str], {"type": "array", "items": STRING}),
    (AbstractSet[str], {"type": "array", "items": STRING}),
    (set[int], {"type": "array", "items": INTEGER}),
    (frozenset[int], {"type": "array", "items": INTEGER}),
    (tuple, {"type": "array"}),
    (tuple[int, ...], {"type": "array", "items": INTEGER}),
    (tuple[()], {"type": "array", "description": "always empty"}),
    (
        tuple[int, str],
        {
            "type": "array",
            "items": {"oneOf": [INTEGER, STRING]},
            "description": 'exactly 2 items, in order: {"type":"integer"}, {"type":"string"}',
        },
    ),
    (dict, OPEN),
    (dict[str, Any], OPEN),
    (dict[str, int], {**OPEN, "description": 'each value: {"type":"integer"}'}),
    (
        Mapping[Literal["a", "b"], int],
        {**OPEN, "description": 'each key: {"type":"string","enum":["a","b"]}; each value: {"type":"integer"}'},
    ),
    (Literal["a"], {"type": "string", "const": "a"}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1, None], {"oneOf": [{"type": "string", "const": "a"}, {"type": "integer", "const": 1}, NULL]}),
    (Literal[True, 1], {"oneOf": [{"type": "boolean", "const": True}, {"type": "integer", "const": 1}]}),
    (Literal[Color.RED, "x"], {"type": "string", "enum": ["red", "x"]}),
    (Color, {"type": "string", "enum": ["red", "blue"], "description": "A colour."}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Mixed, {"oneOf": [{"type": "number", "enum": [1, 2.5]}, {"type": "string", "const": "c"}, NULL]}),
    (int | None, {"oneOf": [INTEGER, NULL]}),
    (int | str, {"oneOf": [INTEGER, STRING]}),
    (int | float, NUMBER),
    (float | int | None, {"oneOf": [NUMBER, NULL]}),
    (UserId | int, INTEGER),
    (int | Any, {}),
    (str | Literal["a"], STRING),
    (Literal["a"] | Literal["b"], {"type": "string", "enum": ["a", "b"]}),
    (Color | str, STRING),
    (Level | float, NUMBER),
    (bool | int, {"oneOf": [{"type": "boolean"}, INTEGER]}),
    (list[int] | list[str], {"type": "array", "items": {"oneOf": [INTEGER, STRING]}}),
    (list[Any] | list[int], {"type": "array"}),
    (list[int] | set[float], {"type": "array", "items": NUMBER}),
    (Cube | dict[str, Any], OPEN),
    (list[Cube] | Cube, {"oneOf": [{"type": "array", "items": CUBE}, CUBE]}),
    (Path, STRING),
    (PurePosixPath, STRING),
    (Path | str, STRING),
    (datetime.date, {"type": "string", "description": "an ISO 8601 date"}),
    (datetime.time, {"type": "string", "description": "an ISO 8601 time"}),
    (datetime.datetime, {"type": "string", "description": "an ISO 8601 date and time"}),
    (
        datetime.date | datetime.datetime,
        {"type": "string", "description": "an ISO 8601 date or an ISO 8601 date and time"},
    ),
    (datetime.date | str, STRING),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (list[Annotated[int, 5, "each"]], {"type": "array", "items": {"type": "integer", "description": "each"}}),
    (Annotated[datetime.date, "The day."], {"type": "string", "description": "The day (an ISO 8601 date)."}),
    (Final[int], INTEGER),
    (UserId, INTEGER),
    (
        Options,
        {
            "type": "object",
            "properties": {"depth": INTEGER, "names": {"type": "array", "items": STRING}},
            "required": ["depth"],
            **CLOSED,
        },
    ),
    (
        Strict,
        {
            "type": "object",
            "properties": {"depth": INTEGER, "names": {"type": "array", "items": STRING}},
            "required": ["depth"],
            **CLOSED,
        },
    ),
    (
        Pair,
        {
            "type": "object",
            "properties": {"left": INTEGER, "right": {"type": "string", "default": "r"}},
            "required": ["left"],
            **CLOSED,
        },
    ),
    (
        Circle,
        {
            "type": "object",
            "properties": {
                "radius": NUMBER,
                "hidden": {"type": "integer", "default": 3},
                "tags": {"type": "array", "items": STRING},
            },
            "required": ["radius"],
            **CLOSED,
        },
    ),
    (
        Square,
        {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "const": "square"},
                "side": {"type": "number", "default": 1.5},
                "names": {"type": "array", "items": STRING},
            },
            "required": ["kind"],
            **CLOSED,
        },
    ),
    (Box[int], INT_BOX),
    (
        IntBox,
        {
            "type": "object",
            "properties": {**INT_BOX["properties"], "label": STRING},  # type: ignore[dict-item]
            "required": ["content", "label"],
            **CLOSED,
        },
    ),
    (OtherBlock | TextBlock | ImageBlock, OPEN),
]


def definition_with(annotation: Any, *defaults: Any) -> Any:
    """A tool whose one parameter ``it`` has an annotation."""

    def taker(it: Any) -> None: ...

    taker.__annotations__ = {"it": annotation, "return": None}
    taker.__defaults__ = defaults
    return tool(taker)


@pytest.mark.parametrize(("annotation", "schema"), TABLE, ids=[str(annotation)[:60] for annotation, _ in TABLE])
def test_an_annotation_becomes_the_schema_that_says_the_same(annotation: Any, schema: dict[str, Any]) -> None:
    """Each supported type has one schema, within the enforced subset."""
    parameters = definition_with(annotation).parameters
    assert parameters == {"type": "object", "properties": {"it": schema}, "required": ["it"]}
    assert check_schema(parameters) == []


REFUSED: list[tuple[Any, str]] = [
    (bytes, "base64"),
    (complex, "two parts"),
    (Decimal, "as str or float"),
    (Plain, "dataclasses or attrs classes"),
    (type[int], "builtin types"),
    (Node, "JsonValue"),
    (Raw, "base64"),
    (Given, "InitVar"),
    (Perm, "set of it"),
    (T, "concrete type"),
    (Box, "Box[int]"),
    (dict[int, str], "list of pairs"),
    (set[list[int]], "list, or frozen items"),
    (set[Strict], "list, or frozen items"),
    (Literal[b"x"], "strings, finite numbers"),
    (enum.Enum("Void", []), "give it some"),
    (enum.Enum("Tuples", {"A": (1, 2)}), "strings, finite numbers"),
    (Cube | Overlaps, "Literal field"),
    (Box[int] | Loose, "Literal field"),
    (Nest[int], "JsonValue"),
    (list[Cube] | list[Overlaps], "Literal field"),
    (Color | enum.Enum("Other", {"X": "red"}), "values of its own"),
    ("Missing", "TYPE_CHECKING"),
    ("list[Missing]", "TYPE_CHECKING"),
    ("not python", "TYPE_CHECKING"),
]


@pytest.mark.parametrize(("annotation", "remedy"), REFUSED, ids=[str(annotation)[:60] for annotation, _ in REFUSED])
def test_a_refused_annotation_names_tool_parameter_annotation_and_remedy(annotation: Any, remedy: str) -> None:
    """The error at registration is enough to mend it."""
    with pytest.raises(RegistrationError) as caught:
        definition_with(annotation)
    message = str(caught.value)
    assert 'tool "taker"' in message
    assert 'parameter "it"' in message
    assert getattr(annotation, "__name__", str(annotation).partition("[")[0]) in message
    assert remedy in message


def test_a_refused_field_is_named_with_its_class() -> None:
    """The path to the field is in the message."""
    with pytest.raises(RegistrationError, match='field "data" of Raw: bytes has no JSON form'):
        definition_with(list[Raw])


def test_unions_of_classes_told_apart_by_a_literal_are_exclusive() -> None:
    """A ``Literal`` field with different values, or a required field of its own, tells classes apart."""
    node = definition_with(Square | Cube).parameters["properties"]["it"]
    assert [branch["properties"]["kind"]["const"] for branch in node["oneOf"]] == ["square", "cube"]
    check = definition_with(Square | Cube | Circle).check_arguments
    for value in ({"kind": "square"}, {"kind": "cube", "side": 1}, {"radius": 1}):
        assert check({"it": value}) == []
    assert check({"it": {"kind": "square", "radius": 1}}) != []


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (int | None, None, None),
    (Color, Color.RED, "red"),
    (Path, Path("a/b"), "a/b"),
    (tuple[int, ...], (1, 2), [1, 2]),
    (set[str], frozenset(), ...),
    (frozenset[str], frozenset({"b", "a"}), ["a", "b"]),
    (datetime.date, datetime.date(2026, 1, 2), "2026-01-02"),
    (Cube, Cube("cube", 2.0), {"kind": "cube", "side": 2.0}),
    (int, None, ...),
    (float, float("nan"), ...),
    (Any, Plain(), ...),
]


@pytest.mark.parametrize(("annotation", "default", "shown"), DEFAULTS)
def test_a_default_is_shown_if_it_has_a_valid_json_form(annotation: Any, default: Any, shown: Any) -> None:
    """A parameter with a default is not required; what JSON cannot say of it is left out."""
    parameters = definition_with(annotation, default).parameters
    assert "required" not in parameters
    assert parameters["properties"]["it"].get("default", ...) == shown


def test_what_a_tool_returns_is_described_with_all_its_fields() -> None:
    """A field with a default, or a computed one, is always there on the way out."""

    def make() -> Circle:
        return Circle(1.0)

    schema: Any = tool(make).output.schema
    assert [*schema["properties"]] == ["radius", "hidden", "tags", "area"]
    assert schema["required"] == ["radius", "hidden", "tags", "area"]
    assert "default" not in schema["properties"]["hidden"]


def test_overlapping_classes_may_be_returned() -> None:
    """What comes out is written by its class, so nobody has to guess."""

    def make() -> Cube | Overlaps:
        return Cube("cube", 1.0)

    assert tool(make).output.schema == OPEN


def test_the_return_annotation_is_checked_like_a_parameter() -> None:
    """It is refused with the same remedy."""

    def make() -> bytes:
        return b""

    with pytest.raises(RegistrationError, match=r'tool "make": the return annotation bytes.*base64'):
        tool(make)


def test_a_plain_function_that_returns_an_awaitable_is_told_to_be_async() -> None:
    """The value would be a coroutine."""

    def later() -> Awaitable[int]:
        raise NotImplementedError

    with pytest.raises(RegistrationError, match="make the function async"):
        tool(later)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of 3.12")
def test_type_statements_and_type_parameters_are_understood() -> None:
    """``type X = ...``, generic or not, stands for what it names."""
    names: dict[str, Any] = {}
    text = (
        "import dataclasses\n"
        "type Name = str\n"
        "type Maybe[T] = T | None\n"
        "type Tree = list[Tree] | int\n"
        "@dataclasses.dataclass\n"
        "class Crate[T]:\n"
        "    inside: T\n"
    )
    exec(text, names)  # noqa: S102 - a syntax that 3.11 cannot compile
    assert definition_with(names["Name"]).parameters["properties"]["it"] == STRING
    assert definition_with(names["Maybe"][int]).parameters["properties"]["it"] == {"oneOf": [INTEGER, NULL]}
    crate = definition_with(names["Crate"][int]).parameters["properties"]["it"]
    assert crate["properties"] == {"inside": INTEGER}
    with pytest.raises(RegistrationError, match="Tree contains itself"):
        definition_with(names["Tree"])


def test_classes_and_tools_may_be_local_to_a_function() -> None:
    """Annotations that are strings see the locals of the functions around them."""

    @dataclass
    class Inner:
        n: int

    @attrs.frozen
    class Outer:
        inner: list[Inner]

    @tool
    def use(it: Outer) -> list[Inner]:
        return it.inner

    node: Any = use.parameters["properties"]["it"]  # type: ignore[index,call-overload]
    assert node["properties"]["inner"]["items"]["properties"] == {"n": INTEGER}


def test_a_local_tool_may_name_what_it_captured_and_itself() -> None:
    """A factory that has returned shows its locals in the closure only; a cell may still be empty."""

    def factory() -> Any:
        @dataclass
        class Late:
            n: int

        def use(it: Late) -> Any:
            return Late, use

        return use

    assert tool(factory()).parameters["required"] == ["it"]

    @tool
    def again(n: int) -> Any:
        return again

    assert again.name == "again"
