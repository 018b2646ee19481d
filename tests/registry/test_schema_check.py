"""Which schemas lie in the enforced subset, and what is said of the others."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import anything, nested, schemas, unhurried
from quiesce.registry import check_object_schema, check_schema, freeze
from quiesce.registry._schema_check import same_scalar

SUBSET = "(subset: type/oneOf/properties/required/additionalProperties/items/enum/const + annotations)"
TYPES = "object/array/string/number/integer/boolean/null"

NO_SCHEMAS: list[Any] = [None, True, [], "x", ()]
NO_BRANCHES: list[Any] = [5, [], [{}], ({}, {})]
VIOLATIONS: list[tuple[Any, list[str]]] = [
    (
        {"type": "object", "properties": {"a": {"type": "strin"}}, "required": ["b"], "additionalProperties": "x"},
        [
            f"schema.properties.a.type must be one of {TYPES}",
            'schema.required names "b" which is not in properties',
            "schema.additionalProperties must be a boolean",
        ],
    ),
    ({"type": "string", "oneOf": [{}, {}]}, ["schema cannot declare both type and oneOf"]),
    ({"enum": [1]}, ["schema.enum requires type or oneOf"]),
    (
        {"const": 1, "items": {}, "properties": {}},
        [f"schema.{key} requires type or oneOf" for key in ("properties", "items", "const")],
    ),
    (
        {"oneOf": [{"type": "string"}, {"type": "null"}], "enum": [1], "properties": {}},
        ["schema.properties is not supported beside oneOf", "schema.enum is not supported beside oneOf"],
    ),
    (
        {"enum": [1], "oneOf": [{"type": "x"}, 5]},
        [
            f"schema.oneOf[0].type must be one of {TYPES}",
            "schema.oneOf[1] must be a schema object",
            "schema.enum is not supported beside oneOf",
        ],
    ),
    *(({"oneOf": bad}, ["schema.oneOf must be an array of at least two schemas"]) for bad in NO_BRANCHES),
    (
        {"type": "array", "items": 5, "foo": 1, "description": 1},
        [
            f"schema.foo is not a supported keyword {SUBSET}",
            "schema.description must be a string",
            "schema.items must be a schema object",
        ],
    ),
    (
        {"type": "string", "title": 5, "examples": [math.nan]},
        ["schema.examples annotation must be lossless JSON data", "schema.title must be a string"],
    ),
    ({"type": "string", "const": 1, "enum": ["a"]}, ["schema.const must be a string value"]),
    (
        {"type": "string", "const": "b", "enum": ["a"]},
        ["schema.const must be one of schema.enum when both are declared"],
    ),
    ({"type": "integer", "const": 1, "enum": [True]}, ["schema.enum must be a non-empty array of integer values"]),
    ({"type": "number", "const": -0.0}, ["schema.const must be a number value"]),
    ({"type": "number", "enum": [math.inf]}, ["schema.enum must be a non-empty array of number values"]),
    ({"type": "boolean", "enum": [1]}, ["schema.enum must be a non-empty array of boolean values"]),
    (
        {"type": "object", "enum": [], "items": {}, "const": {}},
        [f'schema.{key} is not supported on type "object"' for key in ("items", "enum", "const")],
    ),
    ({"type": "array", "required": []}, ['schema.required is not supported on type "array"']),
    (
        {"type": ["string"], "properties": 1},
        ["schema.type must be a single type string (type arrays are not supported)"],
    ),
    ({"type": None}, [f"schema.type must be one of {TYPES}"]),
    ({"type": "json"}, [f"schema.type must be one of {TYPES}"]),
    (
        {"type": "object", "properties": [], "required": [1]},
        ["schema.properties must be an object of schemas", "schema.required must be an array of strings"],
    ),
    ({"type": "object", "properties": {1: {}}}, ["schema.properties must be an object of schemas"]),
    ({"type": "object", "required": ["toString"]}, ['schema.required names "toString" which is not in properties']),
    ({1: 2}, [f"schema.1 is not a supported keyword {SUBSET}"]),
    *((bad, ["schema must be a schema object"]) for bad in NO_SCHEMAS),
]
ACCEPTED: list[Any] = [
    {},
    {"description": "only", "title": "t", "default": [1], "examples": {}},
    {"type": "null", "const": None},
    {"type": "null", "enum": [None]},
    {"type": "boolean", "enum": [True, True]},
    {"type": "integer", "const": 1e300},
    {"type": "integer", "enum": [1.0], "const": 1},
    {"type": "object"},
    {"type": "object", "properties": {"__proto__": {}}, "required": ["__proto__", "__proto__"]},
    {"oneOf": [{}, {}], "default": None},
]


@pytest.mark.parametrize(("schema", "violations"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_every_violation_is_told_in_walk_order(schema: Any, violations: list[str]) -> None:
    """The texts are exact, and paths lead to the place however deep it is."""
    assert check_schema(schema) == violations
    any_value: dict[str, Any] = {}
    union: Any = {"oneOf": [any_value, schema]}
    around: Any = {"type": "object", "properties": {"x": {"type": "array", "items": union}}}
    inside = [text.replace("schema", "schema.properties.x.items.oneOf[1]", 1) for text in violations]
    if schema != {"type": "string", "const": "b", "enum": ["a"]}:  # whose text holds its path twice
        assert check_schema(around) == inside


@pytest.mark.parametrize("schema", ACCEPTED, ids=range(len(ACCEPTED)))
def test_the_subset_is_accepted(schema: Any) -> None:
    """Annotations alone, repeated members and integral floats are all in it; frozen or not."""
    assert check_schema(schema) == []
    assert check_schema(freeze(schema)) == []


@unhurried
@given(schemas)
def test_generated_schemas_of_the_subset_are_accepted(schema: Any) -> None:
    """Whatever is built of the subset's parts is in it."""
    assert check_schema(schema) == []


@unhurried
@given(anything | st.dictionaries(st.sampled_from(["type", "oneOf", "enum", "properties", "required"]), anything))
def test_the_check_is_total(schema: Any) -> None:
    """It never raises, and what is no object is never accepted."""
    assert check_schema(schema) or isinstance(schema, dict)


def test_a_node_may_stand_in_two_places_but_not_in_itself() -> None:
    """Sharing is no cycle."""
    shared = {"type": "string"}
    assert check_schema({"oneOf": [shared, {"type": "array", "items": shared}]}) == []
    ring: dict[str, Any] = {"type": "array"}
    ring["items"] = ring
    assert check_schema(ring) == ["schema.items is circular"]
    assert check_schema({"oneOf": [ring, shared]}) == ["schema.oneOf[0].items is circular"]


def test_an_object_schema_states_type_object() -> None:
    """Structured output is rooted in an object; other violations come alone."""
    rooted = 'schema.type must be "object" (structured output is object-rooted)'
    assert check_object_schema({"type": "object"}) == []
    for schema in ({}, {"type": "array"}, {"oneOf": [{"type": "object"}, {"type": "object"}]}):
        assert check_object_schema(schema) == [rooted]
    assert check_object_schema({"foo": 1}) == [f"schema.foo is not a supported keyword {SUBSET}"]
    assert check_object_schema([]) == ["schema must be a schema object"]


def test_a_boolean_is_no_number() -> None:
    """Scalars are compared as JSON compares them."""
    assert same_scalar(1, 1.0)
    assert same_scalar(True, True)
    assert not same_scalar(1, True)
    assert not same_scalar(False, 0.0)


def test_twenty_thousand_levels_of_arrays_are_checked() -> None:
    """Depth is no limit, and what is wrong at the bottom is named."""
    deep: Any = {"type": "array", "items": {"type": "x"}}
    for _ in range(19_999):
        deep = {"type": "array", "items": deep}
    assert check_schema(deep) == [f"schema{'.items' * 20_000}.type must be one of {TYPES}"]
    assert check_schema({"default": nested(20_000), "examples": nested(20_000, math.nan)}) == [
        "schema.examples annotation must be lossless JSON data"
    ]
