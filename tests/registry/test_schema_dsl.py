"""The schema DSL: what it compiles to, and what it refuses."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import anything, unhurried
from quiesce.errors import JsonSchemaError
from quiesce.registry import check_schema, compile_validator, freeze, parameters_to_json_schema, value_to_json_schema

TYPE_TEXT = "type must be string/number/integer/boolean/null/array/object/json, or use oneOf"

COMPILED: list[tuple[Any, Any]] = [
    ({"type": "json", "description": "x"}, {"description": "x"}),
    ({"type": "json"}, {}),
    (
        {
            "properties": {"a": {"required": True, "type": "string"}, "b": {"type": "null"}},
            "additionalProperties": False,
            "title": "t",
            "type": "object",
        },
        {
            "type": "object",
            "title": "t",
            "additionalProperties": False,
            "properties": {"a": {"type": "string"}, "b": {"type": "null"}},
            "required": ["a"],
        },
    ),
    (
        {"const": 1, "examples": [1], "enum": [1], "default": 1, "title": "t", "description": "d", "type": "integer"},
        {"type": "integer", "description": "d", "title": "t", "default": 1, "examples": [1], "enum": [1], "const": 1},
    ),
    (
        {"description": "d", "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "json"}}]},
        {"oneOf": [{"type": "string"}, {"type": "array", "items": {}}], "description": "d"},
    ),
]

REFUSED: list[tuple[Any, str]] = [
    (5, " must be a value schema object"),
    ([], " must be a value schema object"),
    ({}, f".{TYPE_TEXT}"),
    ({"type": "text"}, f".{TYPE_TEXT}"),
    ({"type": ["string"]}, f".{TYPE_TEXT}"),
    ({"type": "string", "minLength": 1}, ".minLength is not supported by the value schema DSL"),
    ({"type": "json", "enum": [1]}, ".enum is not supported by the value schema DSL"),
    ({"type": "array", "properties": {}}, ".properties is not supported by the value schema DSL"),
    ({"type": "string", "items": {}}, ".items is not supported by the value schema DSL"),
    ({"oneOf": [{}, {}], "enum": [1]}, ".enum is not supported by the value schema DSL"),
    ({"oneOf": [{}, {}], "type": "string"}, " cannot declare both type and oneOf"),
    ({"oneOf": {}}, ".oneOf must be an array of at least two value schemas"),
    ({"oneOf": [{"type": "null"}, 1]}, ".oneOf[1] must be a value schema object"),
    (
        {"oneOf": [{"type": "null"}, {"type": "null", "required": True}]},
        ".oneOf[1].required is not supported by the value schema DSL",
    ),
    ({"type": "object"}, ".additionalProperties must be explicitly true or false"),
    ({"type": "object", "additionalProperties": 1}, ".additionalProperties must be explicitly true or false"),
    (
        {"type": "object", "additionalProperties": True, "properties": []},
        ".properties must be an object of value schemas",
    ),
    (
        {"type": "object", "additionalProperties": True, "properties": {"a": {"type": "null", "required": False}}},
        ".properties.a.required must be true when present",
    ),
    ({"type": "array", "items": {"type": "nope"}}, f".items.{TYPE_TEXT}"),
    ({"type": "string", "enum": "a"}, ".enum must be a non-empty array of scalar values"),
]


@pytest.mark.parametrize(("node", "schema"), COMPILED, ids=range(len(COMPILED)))
def test_a_node_compiles_to_a_schema_with_ordered_keys(node: Any, schema: Any) -> None:
    """Type, annotations, then the rest; a union puts ``oneOf`` first; ``required`` moves to the parent."""
    assert repr(value_to_json_schema(node)) == repr(schema)
    frozen: Any = freeze(node)
    assert repr(value_to_json_schema(frozen)) == repr(schema)
    assert parameters_to_json_schema({"p": node}) == {"type": "object", "properties": {"p": schema}}


@pytest.mark.parametrize(("node", "violation"), REFUSED, ids=range(len(REFUSED)))
def test_the_first_violation_is_named(node: Any, violation: str) -> None:
    """Paths begin with ``schema`` for a value, with ``parameters`` for a parameter."""
    parameters: Any = {"ok": {"type": "null"}, "p": node, "worse": 5}
    for compile_spec, spec, path in (
        (value_to_json_schema, node, "schema"),
        (parameters_to_json_schema, parameters, "parameters.p"),
    ):
        with pytest.raises(JsonSchemaError) as caught:
            compile_spec(spec)
        assert caught.value.violations == (path + violation,)
        assert str(caught.value) == f"unsupported JSON schema: {path}{violation}"
        assert caught.value.code == "UNSUPPORTED_SCHEMA"


def test_required_is_only_for_properties() -> None:
    """A value node has no parent to be required by."""
    with pytest.raises(JsonSchemaError, match=r"schema\.required is not supported"):
        value_to_json_schema({"type": "string", "required": True})


def test_violations_of_the_subset_are_all_told_and_speak_of_the_schema() -> None:
    """What the DSL lets pass is checked once more, with the root ``schema`` even for parameters."""
    with pytest.raises(JsonSchemaError) as caught:
        parameters_to_json_schema(
            {"a": {"type": "string", "description": 1}, "b": {"type": "string", "enum": []}, "c": {"oneOf": []}}
        )
    assert caught.value.violations == (
        "schema.properties.a.description must be a string",
        "schema.properties.b.enum must be a non-empty array of string values",
        "schema.properties.c.oneOf must be an array of at least two schemas",
    )


def test_parameters_are_an_open_object() -> None:
    """``properties`` is always there, ``required`` only where a parameter is, ``additionalProperties`` never."""
    assert repr(parameters_to_json_schema({})) == "{'type': 'object', 'properties': {}}"
    no_maps: list[Any] = [[], None, "x"]
    for bad in no_maps:
        with pytest.raises(JsonSchemaError, match="parameters must be an object of value schemas"):
            parameters_to_json_schema(bad)


def test_a_compiled_schema_is_detached() -> None:
    """Changing the spec afterwards changes nothing, nor do two uses of one node share their schema."""
    shared: dict[str, Any] = {"type": "string", "examples": ["x"]}
    schema = parameters_to_json_schema({"a": shared, "b": shared})
    shared["examples"].append("y")
    schema["properties"]["a"]["examples"].append("z")
    assert schema["properties"]["b"]["examples"] == ["x"]


def test_a_circular_spec_is_refused() -> None:
    """A node, or a map of properties, inside itself is named where it recurs."""
    ring: dict[str, Any] = {"type": "array"}
    ring["items"] = ring
    with pytest.raises(JsonSchemaError, match=r"schema\.items is circular"):
        value_to_json_schema(ring)
    with pytest.raises(JsonSchemaError, match=r"parameters\.a\.items is circular"):
        parameters_to_json_schema({"a": ring})


def as_property(node: dict[str, Any], required: bool) -> dict[str, Any]:
    """A node as it stands among properties."""
    return node | ({"required": True} if required else {})


specs: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.sampled_from(["string", "integer", "boolean", "null", "json"]).map(lambda kind: {"type": kind}),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=2, max_size=3)})
        | st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "additionalProperties": st.booleans(),
                "properties": st.dictionaries(
                    st.text(max_size=2),
                    st.tuples(inner, st.booleans()).map(lambda p: p[0] | ({"required": True} if p[1] else {})),
                    max_size=3,
                ),
            }
        )
    ),
    max_leaves=6,
)


def check_required(node: Any, schema: Any) -> None:
    """``required`` is exactly the names marked so, in their order, at every level."""
    if "oneOf" in node:
        for inner, compiled in zip(node["oneOf"], schema["oneOf"], strict=True):
            check_required(inner, compiled)
    elif node["type"] == "array":
        check_required(node["items"], schema["items"])
    elif node["type"] == "object":
        marked = [name for name, child in node["properties"].items() if child.get("required")]
        assert schema.get("required", []) == marked
        assert list(schema["properties"]) == list(node["properties"])
        for name, child in node["properties"].items():
            check_required(child, schema["properties"][name])


@unhurried
@given(specs)
def test_required_names_are_collected_at_every_level(node: Any) -> None:
    """And the result is always in the subset, and has a validator."""
    schema = value_to_json_schema(node)
    check_required(node, schema)
    assert check_schema(schema) == []
    compile_validator(schema)


@unhurried
@given(anything)
def test_the_compiler_refuses_with_its_own_error_alone(node: Any) -> None:
    """Whatever is given, it compiles or raises ``JsonSchemaError``."""
    for compile_spec in (value_to_json_schema, parameters_to_json_schema):
        try:
            schema = compile_spec(node)
        except JsonSchemaError:
            continue
        assert check_schema(schema) == []


def test_a_hundred_thousand_levels_of_one_of_compile_and_validate() -> None:
    """Depth is no limit for the compiler, the check behind it, or the validator."""
    gc.disable()  # a million objects are made, and each collection would look through all of them
    try:
        node: Any = {"type": "string"}
        for _ in range(100_000):
            node = {"oneOf": [node, {"type": "null"}]}
        validate = compile_validator(value_to_json_schema(node))
        assert validate("x") == []
    finally:
        gc.enable()
