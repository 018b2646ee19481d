"""Somebody else's JSON Schema: checked at registration, and enforced in its own dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from json_values import nested, unhurried, values
from quiesce.errors import RegistrationError
from quiesce.registry import compile_raw_validator, freeze

REMOTE = "which is not in the schema: put it under $defs, remote schemas are never fetched"
REFUSED: list[tuple[Any, str]] = [
    ({"properties": {"a": {"type": "strin"}}}, "parameters.properties.a.type is not valid JSON Schema: 'strin' is not"),
    ({"properties": 5}, "parameters.properties is not valid JSON Schema: 5 is not of type 'object'"),
    ({"properties": {"a": {"pattern": "("}}}, "parameters.properties.a.pattern is not valid JSON Schema"),
    ({"required": "a" * 9000}, "more characters)"),
    ({"$schema": "https://example.com/mine"}, "parameters.$schema names a dialect that jsonschema does not know"),
    ({"$schema": "http://["}, "parameters.$schema names a dialect"),
    ({"$schema": 5}, "parameters.$schema names a dialect"),
    ({"type": "string"}, 'parameters.type must admit "object"'),
    ({"type": ["array", "null"]}, 'parameters.type must admit "object"'),
    ({"default": float("nan")}, "parameters must be lossless JSON: default is not lossless JSON"),
    (
        {"properties": {"a": {"items": {"$ref": "http://example.com/a.json"}}}},
        f"parameters.properties.a.items.$ref refers to 'http://example.com/a.json', {REMOTE}",
    ),
    ({"allOf": [{}, {"$ref": "other.json#/x"}]}, f"parameters.allOf[1].$ref refers to 'other.json#/x', {REMOTE}"),
    ({"$ref": "#/$defs/none"}, f"parameters.$ref refers to '#/$defs/none', {REMOTE}"),
    ({"properties": {"a": {"$ref": "#anchor"}}}, "parameters.properties.a.$ref refers to '#anchor'"),
    ({"properties": {"a": {"$dynamicRef": "x:y"}}}, "parameters.properties.a.$dynamicRef refers to 'x:y'"),
    ({"$ref": "http://["}, "parameters.$ref refers to 'http://['"),
    (
        {"$ref": "#/mine/A", "mine": {"A": {"properties": {"x": {"$ref": "a.json"}}}}},
        "parameters.mine.A.properties.x.$ref refers to 'a.json'",
    ),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": {"not": {"$ref": "b.json"}}}},
        "parameters.definitions.A.not.$ref refers to 'b.json'",
    ),
]


@pytest.mark.parametrize(("schema", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_schema_that_cannot_be_enforced_is_refused(schema: Any, message: str) -> None:
    """At registration, naming the place and what to do; no reference is ever fetched."""
    with pytest.raises(RegistrationError) as caught:
        compile_raw_validator(schema)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


LIST: Any = {
    "$defs": {"N": {"properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/N"}}}},
    "$ref": "#/$defs/N",
}
DRAFT4: Any = {
    "$schema": "http://json-schema.org/draft-04/schema#",
    "properties": {"n": {"minimum": 1, "exclusiveMinimum": True}},
}
DRAFT7: Any = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"l": {"items": [{"type": "string"}, {"type": "null"}], "additionalItems": False}},
}
CHOICE: Any = {
    "properties": {"a": {"anyOf": [{"type": "null"}, {"properties": {"b": {"type": "integer"}}, "type": "object"}]}}
}
NESTED_ID: Any = {
    "properties": {"a": {"$ref": "https://e.com/item"}},
    "$defs": {
        "i": {"$id": "https://e.com/item", "$ref": "#/$defs/x", "$defs": {"x": {"type": "null"}}},
        "unused": {"$id": "https://e.com/other", "$ref": "#/$defs/y", "$defs": {"y": {}}},
    },
}
VIOLATIONS: list[tuple[Any, Any, list[str]]] = [
    ({"type": "object"}, {"a": [1]}, []),
    ({"type": "object"}, [1], ['"arguments" must be an object']),
    ({}, None, ['"arguments" must be an object']),
    ({"type": ["object", "null"]}, {}, []),
    (
        {
            "required": ["z"],
            "properties": {"b": {"type": "string"}, "a": {"minItems": 1}},
            "additionalProperties": False,
        },
        {"a": [], "b": 1, "c": 1},
        [
            "\"arguments\": 'z' is a required property",
            "\"b\" is not of type 'string'",
            '"a" should be non-empty',
            "\"arguments\": Additional properties are not allowed ('c' was unexpected)",
        ],
    ),
    (LIST, {"v": "", "next": {"v": 1, "next": {"v": ""}}}, ["\"next.v\" is not of type 'string'"]),
    (DRAFT4, {"n": 1}, ['"n" is less than or equal to the minimum of 1']),
    (DRAFT7, {"l": ["x", 1]}, ["\"l[1]\" is not of type 'null'"]),
    (
        CHOICE,
        {"a": {"b": "x"}},
        ['"a" is not valid under any of the given schemas (closest: "a.b" is not of type \'integer\')'],
    ),
    ({"properties": {"a": {"enum": [1]}}}, {"a": True}, ['"a" is not one of [1]']),
    ({"properties": {"a": {"type": "integer"}}}, {"a": 1.0}, []),
    ({"properties": {"a": {"type": "integer"}}}, {"a": True}, ["\"a\" is not of type 'integer'"]),
    ({"properties": {"a": {"format": "date"}}}, {"a": "x"}, []),
    ({"properties": {"$ref": {"type": "string"}}}, {"$ref": 1}, ["\"$ref\" is not of type 'string'"]),
    ({"default": {"$ref": "http://x"}, "const": {"$ref": "http://y"}}, {"$ref": "http://y"}, []),
    (
        {
            "$id": "https://e.com/root",
            "properties": {"a": {"$ref": "item"}},
            "$defs": {"i": {"$id": "item", "minimum": 2}},
        },
        {"a": 1},
        ['"a" is less than the minimum of 2'],
    ),
    (
        {"properties": {"a": {"$anchor": "A", "type": "null"}, "b": {"$ref": "#A"}}},
        {"b": 1},
        ["\"b\" is not of type 'null'"],
    ),
    (NESTED_ID, {"a": 1}, ["\"a\" is not of type 'null'"]),
    ({"properties": {"c": False}}, {"c": 1}, ['"arguments": False schema does not allow 1']),
]


@pytest.mark.parametrize(("schema", "arguments", "violations"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_every_violation_is_told_in_schema_order(schema: Any, arguments: Any, violations: list[str]) -> None:
    """By place and keyword, without the value; frozen schemas and arguments behave the same."""
    frozen: Any = freeze(schema)
    assert compile_raw_validator(schema)(arguments) == violations
    assert compile_raw_validator(frozen)(freeze(arguments)) == violations


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "null"}}},
        {"properties": {"a": False}},
        {"properties": {"a": {"anyOf": [{"type": "null"}, {"const": "y" * 5000}]}}},
        {"propertyNames": {"maxLength": 1}},
        {"additionalProperties": False},
        {"additionalProperties": {"type": "null"}},
        {"const": {}},
    ],
    ids=str,
)
def test_a_giant_value_is_not_echoed(schema: Any) -> None:
    """A violation stays short whatever it is about."""
    violations = compile_raw_validator(schema)({"a": {"x": "y" * 100_000}, "b" * 100_000: 1})
    assert violations
    assert all(len(text) < 1000 for text in violations)


def test_depth_gives_a_violation_and_never_a_recursion_error() -> None:
    """``jsonschema`` recurses; what it cannot reach is refused, what it need not look at is accepted."""
    deep = nested(20_000, key="next")
    too_deep = ['"arguments" is nested too deeply to be checked']
    assert compile_raw_validator(LIST)(deep) == too_deep
    assert compile_raw_validator({"properties": {"next": {"type": "null"}}})(deep) == too_deep
    assert compile_raw_validator({"$ref": "#"})({}) == too_deep
    assert compile_raw_validator({"type": "object"})(freeze(deep)) == []
    with pytest.raises(RegistrationError, match="nested too deeply"):
        compile_raw_validator(nested(5000, {}, key="not"))


def test_numbers_of_any_size_are_answered() -> None:
    """A number that cannot be divided, or not even be shown, is a violation."""
    (text,) = compile_raw_validator({"properties": {"a": {"multipleOf": 0.01}}})({"a": 10**400})
    assert text == '"arguments" cannot be checked: int too large to convert to float'
    (text,) = compile_raw_validator({"properties": {"a": {"type": "null"}}})({"a": 10**5000})
    assert text.startswith('"arguments" cannot be checked: Exceeds the limit')


def test_violations_found_before_the_check_broke_off_are_kept() -> None:
    """What is known is told."""
    schema: Any = {"properties": {"a": {"type": "null"}, "b": {"multipleOf": 0.01}}}
    assert len(compile_raw_validator(schema)({"a": 1, "b": 10**400})) == 2


def test_later_changes_to_the_schema_have_no_effect() -> None:
    """The validator owns its copy."""
    schema: Any = {"properties": {"a": {"type": "null"}}}
    validate = compile_raw_validator(schema)
    schema["properties"]["a"]["type"] = "integer"
    assert validate({"a": 1}) == ["\"a\" is not of type 'null'"]


NOTHING_IN_IT = compile_raw_validator(CHOICE | LIST | {"patternProperties": {"^": {"uniqueItems": True, "not": {}}}})


@unhurried
@given(values)
def test_the_validator_is_total(arguments: Any) -> None:
    """Any JSON is either valid or has violations."""
    assert (NOTHING_IN_IT(arguments) == []) == (arguments == {})
