"""What comes out of a tool goes back into one: random types, random values."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, Union, cast

import attrs
import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce import tool
from quiesce.errors import RegistrationError, ToolArgsError
from quiesce.registry import ToolDefinition, check_schema, freeze, snapshot

ARRAY = frozenset({"array"})
OBJECT = frozenset({"object"})
NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta", "_under", "class_"])


@attrs.frozen
class Typed:
    """A type and its values.

    Attributes:
        annotation: The type.
        values: Instances of it.
        kinds: The kinds of JSON that they become; what shares none can be in one union.
        exact: Whether different JSON is a different instance, so that JSON comes back as it went in.
    """

    annotation: Any
    values: st.SearchStrategy[Any]
    kinds: frozenset[str]
    exact: bool = True


def plain_floats() -> st.SearchStrategy[float]:
    """Floats that JSON can say; adding zero turns the negative zero into the other one."""
    return st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)


def json_values() -> st.SearchStrategy[Any]:
    """Any lossless JSON."""
    scalars = st.none() | st.booleans() | st.integers() | plain_floats() | st.text(max_size=5)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    )


PATHS = st.lists(st.sampled_from(["a", "b.txt", ".."]), min_size=1, max_size=3).map(lambda parts: Path(*parts))
TIMES = st.datetimes(timezones=st.none() | st.just(datetime.UTC))
LEAVES = [
    Typed(type(None), st.none(), frozenset({"null"})),
    Typed(bool, st.booleans(), frozenset({"boolean"})),
    Typed(int, st.integers(), frozenset({"number"})),
    Typed(float, plain_floats(), frozenset({"number"})),
    Typed(int | float, st.integers() | plain_floats(), frozenset({"number"})),
    Typed(str, st.text(max_size=5), frozenset({"string"})),
    Typed(Path, PATHS, frozenset({"string"}), exact=False),
    Typed(datetime.datetime, TIMES, frozenset({"string"}), exact=False),
    Typed(datetime.date, st.dates(), frozenset({"string"}), exact=False),
    Typed(datetime.time, st.times(), frozenset({"string"}), exact=False),
    Typed(Any, json_values(), frozenset({"null", "boolean", "number", "string", "array", "object"})),
    Typed(Literal["a", "b"], st.sampled_from(["a", "b"]), frozenset({"string"})),
    Typed(Literal[1, "a", None], st.sampled_from([1, "a", None]), frozenset({"number", "string", "null"})),
]


@st.composite
def enums(draw: st.DrawFn) -> Typed:
    """An enum of strings, of numbers or of both."""
    values = draw(
        st.lists(
            st.text("xyz", min_size=1, max_size=2) | st.integers(-3, 3) | st.just(2.5),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    cls: Any = enum.Enum("Chosen", {f"M{index}": value for index, value in enumerate(values)})  # type: ignore[misc]
    kinds = frozenset("string" if isinstance(value, str) else "number" for value in values)
    return Typed(cls, st.sampled_from([*cls]), kinds)


def built(cls: Callable[..., Any], values: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Instances of a class."""
    return st.fixed_dictionaries(dict(values)).map(lambda given: cls(**given))


@st.composite
def records(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    """An attrs class, a dataclass, a named tuple or a ``TypedDict``."""
    fields = draw(st.dictionaries(NAMES, inner, max_size=3))
    hints = {name: field.annotation for name, field in fields.items()}
    kind = draw(st.sampled_from(["attrs", "dataclass", "tuple", "dict"]))
    values = {name: field.values for name, field in fields.items()}
    if kind == "attrs":
        cls: Any = attrs.make_class("Made", {name: attrs.field(type=hint) for name, hint in hints.items()}, frozen=True)
        return Typed(cls, built(cls, {name.lstrip("_"): each for name, each in values.items()}), OBJECT)
    if kind == "dataclass":
        cls = dataclasses.make_dataclass("Made", list(hints.items()))
        return Typed(cls, built(cls, values), OBJECT)
    if kind == "tuple":
        public = [(name.lstrip("_"), hint) for name, hint in hints.items()]
        cls = cast("Any", NamedTuple)("Made", public)
        return Typed(cls, built(cls, {name.lstrip("_"): each for name, each in values.items()}), OBJECT)
    optional = {name for name in fields if draw(st.booleans())}
    declared = {name: NotRequired[hint] if name in optional else hint for name, hint in hints.items()}
    required = {name: each for name, each in values.items() if name not in optional}
    rest = {name: each for name, each in values.items() if name in optional}
    return Typed(cast("Any", TypedDict)("Made", declared), st.fixed_dictionaries(required, optional=rest), OBJECT)


def containers(inner: Typed) -> Iterator[Typed]:
    """The containers of a type."""
    item: Any = inner.annotation
    lists = st.lists(inner.values, max_size=3)
    yield Typed(list[item], lists, ARRAY)
    yield Typed(Sequence[item], lists, ARRAY)
    yield Typed(tuple[item, ...], lists.map(tuple), ARRAY)
    yield Typed(tuple[item, int], st.tuples(inner.values, st.integers()), ARRAY)
    yield Typed(dict[str, item], st.dictionaries(st.text(max_size=3), inner.values, max_size=3), OBJECT)


def unions(parts: list[Typed]) -> Typed:
    """A union of types, as far as they become different kinds of JSON."""
    chosen: list[Typed] = []
    for part in parts:
        if not any(part.kinds & other.kinds for other in chosen):
            chosen.append(part)
    return Typed(
        Union[tuple(part.annotation for part in chosen)],  # noqa: UP007 - built from a list
        st.one_of([part.values for part in chosen]),
        frozenset[str]().union(*(part.kinds for part in chosen)),
    )


def grow(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Types around types."""
    return (
        inner.flatmap(lambda one: st.sampled_from([*containers(one)]))
        | records(inner)
        | st.lists(inner, min_size=2, max_size=4).map(unions)
    )


SETS = st.sampled_from(
    [
        Typed(set[int], st.sets(st.integers()), ARRAY),
        Typed(frozenset[str], st.frozensets(st.text(max_size=3)), ARRAY),
    ]
)
TYPES = st.recursive(st.sampled_from(LEAVES) | enums() | SETS, grow, max_leaves=6)
EXACT_TYPES = st.recursive(st.sampled_from([leaf for leaf in LEAVES if leaf.exact]) | enums(), grow, max_leaves=6)


def echo_of(annotation: Any) -> ToolDefinition:
    """A tool that takes a value of a type and returns one."""

    def echo(value: Any) -> Any:
        return value

    echo.__annotations__ = {"value": annotation, "return": annotation}
    return tool(echo)


def echo_or_refusal(annotation: Any) -> ToolDefinition | str:
    """That tool, or why there is none."""
    try:
        return echo_of(annotation)
    except RegistrationError as error:
        return str(error)


def json_of(definition: ToolDefinition, value: Any) -> Any:
    """The JSON that a tool returns, plain."""
    return snapshot(value if definition.unstructure is None else definition.unstructure(value))


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_a_value_goes_out_as_valid_json_and_comes_back_equal(data: st.DataObject) -> None:
    """Unstructured, it satisfies both derived schemas, also to ``jsonschema``; structured again, it is what it was."""
    typed = data.draw(TYPES)
    definition = echo_of(typed.annotation)
    value = data.draw(typed.values)
    json = json_of(definition, value)
    parameters: Any = snapshot(definition.parameters)
    output: Any = snapshot(definition.output.schema)
    assert check_schema(parameters) == check_schema(output) == []
    assert definition.check_value(json) == []
    assert definition.check_arguments({"value": json}) == []
    oracle: Any = jsonschema.Draft202012Validator
    assert oracle(output).is_valid(json)
    assert oracle(parameters).is_valid({"value": json})
    arguments: Any = freeze({"value": json})
    back: Any = definition.bind(arguments, None)()
    assert back == value
    assert type(back) is type(value)


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_structuring_refuses_or_keeps_what_the_model_sent(data: st.DataObject) -> None:
    """Valid JSON of any kind either comes back as it was, number for number, or is refused: nothing is coerced."""
    typed = data.draw(EXACT_TYPES)
    definition = echo_of(typed.annotation)
    json = json_of(definition, data.draw(typed.values))
    if places := places_in(json):
        json[data.draw(st.sampled_from(places))] = data.draw(json_values())
    arguments: Any = freeze({"value": json})
    if definition.check_arguments(arguments):
        return
    with contextlib.suppress(ToolArgsError):
        assert same_json(json_of(definition, definition.bind(arguments, None)()), json)


def places_in(json: Any) -> list[Any]:
    """The keys or indexes of a container; none of a scalar."""
    if isinstance(json, str):
        return []
    return list(json) if isinstance(json, Mapping) else list(range(len(json))) if isinstance(json, Sequence) else []  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; ``1`` and ``1.0`` are, ``1`` and ``True`` are not."""
    if type(one) is type(other) is dict:
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if type(one) is type(other) is list:
        return len(one) == len(other) and all(map(same_json, one, other))
    # A float parameter rounds integers beyond 2**53.
    rounded = type(one) is float and type(other) is int and one == float(other)
    return (one == other or rounded) and isinstance(one, bool) == isinstance(other, bool)


@settings(deadline=None, max_examples=60)
@given(st.lists(TYPES, min_size=2, max_size=3), st.data())
def test_the_branches_of_any_union_are_exclusive(parts: list[Typed], data: st.DataObject) -> None:
    """A union of whatever types is refused with a name, or takes every value of every member."""
    definition = echo_or_refusal(Union[tuple(part.annotation for part in parts)])  # noqa: UP007 - built from a list
    if isinstance(definition, str):
        assert 'parameter "value"' in definition
        return
    part = data.draw(st.sampled_from(parts))
    json = json_of(echo_of(part.annotation), data.draw(part.values))
    assert definition.check_arguments({"value": json}) == []
    arguments: Any = freeze({"value": json})
    definition.bind(arguments, None)
