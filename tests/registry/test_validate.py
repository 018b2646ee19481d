"""Values against the enforced subset: who is accepted, and what the others are told."""

from __future__ import annotations

import inspect
import math
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from json_values import anything, demanding_schemas, few_values, instances, nested, schemas, unhurried
from quiesce.errors import JsonSchemaError
from quiesce.registry import check_schema, compile_validator, freeze, is_json

CLOSED: Any = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a"],
    "additionalProperties": False,
}
UNDECLARED = "is not a declared property (additionalProperties: false)"
ENUM: Any = {"type": "string", "enum": ["a", 'é"'], "const": "a"}
NUMBERS: Any = {"type": "number", "enum": [0.5, 1e21, 1e-7, 10**20]}
DEEP: Any = {"type": "object", "properties": {"o": {"type": "object", "properties": {"l": CLOSED}, "required": ["l"]}}}

VIOLATIONS: list[tuple[Any, Any, list[str]]] = [
    (CLOSED, {}, ['missing required property "value.a"']),
    (
        CLOSED,
        {"d e": 1, "b": [1, 1.5, "x"], "c": 3, "a": 1},
        [
            '"value.a" must be a string',
            '"value.b[1]" must be an integer',
            '"value.b[2]" must be an integer',
            f'"value.d e" {UNDECLARED}',
            f'"value.c" {UNDECLARED}',
        ],
    ),
    (CLOSED, {"a": "", "b": [math.nan]}, ['"value.b[0]" must be an integer']),
    (CLOSED, {"a": "", 1: 2}, [f'"value.1" {UNDECLARED}']),
    (CLOSED, {"a": "", "c": None}, [f'"value.c" {UNDECLARED}']),
    (CLOSED, [], ['"value" must be an object']),
    (DEEP, {"o": {}}, ['missing required property "value.o.l"']),
    (DEEP, {"o": {"l": {"b": {}}}}, ['missing required property "value.o.l.a"', '"value.o.l.b" must be an array']),
    ({"type": "string"}, 5, ['"value" must be a string']),
    ({"type": "boolean"}, 1, ['"value" must be a boolean']),
    ({"type": "null"}, 0, ['"value" must be null']),
    ({"type": "array"}, {}, ['"value" must be an array']),
    ({"type": "array"}, (), ['"value" must be an array']),
    ({"type": "integer"}, True, ['"value" must be an integer']),
    ({"type": "integer"}, 1.5, ['"value" must be an integer']),
    ({"type": "integer"}, -0.0, ['"value" must be an integer']),
    ({"type": "integer"}, math.inf, ['"value" must be an integer']),
    ({"type": "number"}, math.nan, ['"value" must be a finite JSON number']),
    ({"type": "number"}, -0.0, ['"value" must be a finite JSON number']),
    ({"type": "number"}, "5", ['"value" must be a number']),
    ({"type": "number"}, False, ['"value" must be a number']),
    (ENUM, "c", ['"value" must be one of ["a","é\\""]']),
    (ENUM, 'é"', ['"value" must be "a"']),
    (ENUM, 1, ['"value" must be a string']),
    (NUMBERS, 2, ['"value" must be one of [0.5,1e+21,1e-7,100000000000000000000]']),
    ({"type": "integer", "enum": [0, 1]}, True, ['"value" must be an integer']),
    ({"type": "boolean", "const": True}, 1, ['"value" must be a boolean']),
    ({"type": "boolean", "const": True}, False, ['"value" must be true']),
    (
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        1,
        ['"value" must match exactly one oneOf branch (matched 2)'],
    ),
    (
        {"oneOf": [{"type": "null"}, CLOSED]},
        {"a": 1},
        ['"value" must match exactly one oneOf branch (matched 0)'],
    ),
    ({"type": "array"}, [1, object()], ['"value" must be a dense lossless JSON array']),
    ({"type": "object"}, {"a": math.nan}, ['"value" must be a lossless JSON object']),
    ({"type": "object"}, {1: 2}, ['"value" must be a lossless JSON object']),
    ({}, object(), ['"value" must be a lossless JSON value']),
    ({"description": "d"}, [math.nan], ['"value" must be a lossless JSON value']),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"a": 1, "b": math.nan},
        ['"value.a" must be a string'],
    ),
    ({"type": "array", "items": {"type": "array"}}, [[], [()]], ['"value[1]" must be a dense lossless JSON array']),
]
ACCEPTED: list[tuple[Any, Any]] = [
    (CLOSED, {"b": [1, 2.0, 10**30], "a": ""}),
    (DEEP, {"o": {"l": {"a": ""}, "extra": [{}]}, "more": None}),
    (DEEP, {}),
    ({"type": "integer"}, 1.0),
    ({"type": "integer"}, 1e21),
    ({"type": "integer"}, 10**400),
    ({"type": "integer", "const": 1}, 1.0),
    (NUMBERS, 1e20),
    ({"type": "null", "const": None, "enum": [None]}, None),
    ({"oneOf": [{"type": "string"}, {"type": "array"}]}, [1]),
    ({"type": "object", "properties": {"__proto__": {"type": "null"}}}, {"__proto__": None}),
    ({}, {"a": ["\ud800"]}),
    (ENUM, "a"),
]


@pytest.mark.parametrize(("schema", "value", "violations"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_every_violation_is_told_in_order(schema: Any, value: Any, violations: list[str]) -> None:
    """The texts are exact; below 50 levels of union, where no closure is compiled, they are the same."""
    assert check_schema(schema) == []
    assert compile_validator(schema)(value) == violations
    frozen: Any = freeze(schema)
    assert compile_validator(frozen)(freeze(value) if is_json(value) else value) == violations
    in_array = compile_validator({"type": "array", "items": frozen})
    assert in_array([value]) == [text.replace("value", "value[0]", 1) for text in violations]
    in_object = compile_validator({"type": "object", "properties": {"p": frozen}})
    assert in_object({"p": value}) == [text.replace("value", "value.p", 1) for text in violations]
    deep = nested(50, schema, key="items")
    around = deep
    for _ in range(50):
        around["type"] = "array"
        around = around["items"]
    inside = [text.replace("value", "value" + "[0]" * 50, 1) for text in violations]
    assert compile_validator(deep)(nested(50, value)) == inside


@pytest.mark.parametrize(("schema", "value"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_fits_is_accepted(schema: Any, value: Any) -> None:
    """A valid value has no violations, frozen or not, whatever the path is called."""
    validate = compile_validator(schema)
    for given_value in (value, freeze(value)):
        assert validate(given_value) == []
        assert validate(given_value, "") == []


@pytest.mark.parametrize(
    ("schema", "value", "violations"),
    [
        (CLOSED, {"b": 2}, ['missing required property "a"', '"b" must be an array']),
        (CLOSED, 5, ['"arguments" must be an object']),
        (DEEP, {"o": {"l": {"a": 1}}}, ['"o.l.a" must be a string']),
        ({"type": "array", "items": {"type": "string"}}, [1], ['"[0]" must be a string']),
        ({"type": "object"}, {"a": math.nan}, ['"arguments" must be a lossless JSON object']),
    ],
)
def test_paths_of_arguments_have_no_root(schema: Any, value: Any, violations: list[str]) -> None:
    """With the path ``""`` the root is ``arguments`` and its properties stand alone."""
    assert compile_validator(schema)(value, "") == violations
    assert compile_validator(schema)(value, path="") == violations


@unhurried
@given(schemas, st.data())
def test_jsonschema_accepts_the_same_values(schema: Any, data: st.DataObject) -> None:
    """On lossless values the verdict is that of an independent implementation, and a violation names its cause."""
    value = data.draw(instances(schema) | few_values)
    violations = compile_validator(schema)(value)
    oracle: Any = jsonschema.Draft202012Validator(schema)
    assert (violations == []) == oracle.is_valid(value)
    assert compile_validator(schema)(freeze(value)) == violations
    assert all("value" in text for text in violations)


@unhurried
@given(schemas, anything)
def test_validation_is_total_and_accepts_only_lossless_values(schema: Any, value: Any) -> None:
    """Whatever the value is, nothing is raised, and what is not lossless JSON is never valid."""
    violations = compile_validator(schema)(value)
    assert violations or is_json(value)


@unhurried
@given(schemas, anything | few_values)
def test_depth_of_the_schema_does_not_change_the_verdict(schema: Any, value: Any) -> None:
    """The compiled closures and the interpreter say the same."""
    deep: Any = schema
    for _ in range(50):
        deep = {"type": "array", "items": deep}
    compiled = compile_validator(schema)(value)
    interpreted = compile_validator(deep)(nested(50, value))
    assert interpreted == [text.replace("value", "value" + "[0]" * 50, 1) for text in compiled]


@settings(deadline=None, max_examples=40)
@given(demanding_schemas, st.data())
def test_a_missing_required_property_is_always_named(schema: Any, data: st.DataObject) -> None:
    """Dropping any of them from any value gives its violation."""
    value = data.draw(instances(schema))
    name = data.draw(st.sampled_from(schema["required"]))
    value.pop(name, None)
    assert f'missing required property "value.{name}"' in compile_validator(schema)(value)


def test_twenty_thousand_levels_of_arrays_are_validated() -> None:
    """Neither a deep schema nor a deep value reaches the recursion limit, and the place is named."""
    schema: Any = {"type": "string"}
    for _ in range(20_000):
        schema = {"type": "array", "items": schema}
    validate = compile_validator(schema)
    assert validate(nested(20_000, "x")) == []
    assert validate(nested(20_000, 5)) == [f'"value{"[0]" * 20_000}" must be a string']
    anything_in = compile_validator({"type": "array", "items": {}})
    assert anything_in(nested(20_000)) == []
    assert anything_in(nested(20_000, math.nan)) == ['"value[0]" must be a lossless JSON value']


def test_a_value_inside_itself_is_a_violation() -> None:
    """The nearest node that takes anything finds the cycle."""
    ring: list[Any] = []
    ring.append(ring)
    assert compile_validator({})(ring) == ['"value" must be a lossless JSON value']
    assert compile_validator({"type": "array", "items": {"type": "array"}})(ring) == [
        '"value[0]" must be a dense lossless JSON array'
    ]
    box: dict[str, Any] = {"a": "x"}
    box["me"] = box
    assert compile_validator({"type": "object", "properties": {"a": {"type": "string"}}})(box) == [
        '"value" must be a lossless JSON object'
    ]


def test_a_caller_near_the_recursion_limit_is_served() -> None:
    """With few frames left the interpreter takes over, and says the same."""
    schema: Any = {"type": "integer"}
    for _ in range(35):
        schema = {"type": "object", "properties": {"k": schema}}
    validate = compile_validator(schema)

    def descend(levels: int) -> list[list[str]]:
        if levels > 0:
            return descend(levels - 1)
        return [validate(nested(35, bottom, key="k")) for bottom in (1, "x")]

    spare = 30
    valid, invalid = descend(sys.getrecursionlimit() - len(inspect.stack(0)) - spare)
    assert valid == []
    assert invalid == [f'"value{".k" * 35}" must be an integer']


def test_later_changes_to_the_schema_have_no_effect() -> None:
    """The validator owns its copy."""
    schema: Any = {"type": "string", "enum": ["a"]}
    validate = compile_validator(schema)
    schema["enum"].append("b")
    assert validate("b") == ['"value" must be one of ["a"]']


def test_a_schema_that_nobody_checked_is_refused() -> None:
    """An unknown type is no reason to accept every value."""
    with pytest.raises(JsonSchemaError, match="'strin' is not a type"):
        compile_validator({"type": "strin"})
