"""The schema DSL: JSON Schema as authors of tools write it, with ``required: True`` on the property itself.

Source: ``spec/behaviour.md`` B2.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, TypeAlias, cast

from ..errors import JsonSchemaError
from ._json import JsonValue, snapshot
from ._json_kinds import is_array, is_object
from ._place import Place, place_text
from ._schema_check import ANNOTATIONS, check_schema

__all__ = ["parameters_to_json_schema", "value_to_json_schema"]

_SCALARS: Final = ("string", "number", "integer", "boolean", "null")
_KEYS_OF: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_SCALARS, ("enum", "const")),
    "array": ("items",),
    "object": ("properties", "additionalProperties"),
    "json": (),
}
_TYPES_TEXT: Final = "string/number/integer/boolean/null/array/object/json"

Schema: TypeAlias = dict[str, Any]
_Child: TypeAlias = tuple[Any, Place, bool]
"""A child to compile: its node, its place, and whether it is a property."""
_Compiler: TypeAlias = Generator[_Child, Schema, Schema]
"""Compiles one node: yields each child, is sent its schema, and returns its own."""


class _DslError(Exception):
    """The first violation: where, and what is said of it there."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


def parameters_to_json_schema(spec: Mapping[str, Mapping[str, JsonValue]]) -> Schema:
    """Compile a tool's parameters: property name to node.

    Returns:
        An open object schema: ``type``, ``properties``, and ``required`` if any property is. A detached copy.

    Raises:
        JsonSchemaError: The first violation of the DSL, or all of the subset behind it.

    Source: ``spec/behaviour.md`` B2.5.
    """
    return _compile(spec, _parameters(spec), "parameters")


def value_to_json_schema(node: Mapping[str, JsonValue]) -> Schema:
    """Compile one value node.

    Returns:
        The schema, a detached copy.

    Raises:
        JsonSchemaError: The first violation of the DSL, or all of the subset behind it.

    Source: ``spec/behaviour.md`` B2.1.
    """
    return _compile(node, _node(node, None, is_property=False), "schema")


def _compile(source: object, compiler: _Compiler, root: str) -> Schema:
    try:
        schema = _run(source, compiler)
    except _DslError as error:
        raise JsonSchemaError([place_text(error.place, root) + error.problem]) from None
    violations = check_schema(schema)
    if violations:
        raise JsonSchemaError(violations)
    return cast("Schema", snapshot(schema))


def _run(source: object, compiler: _Compiler) -> Schema:
    """Run a compiler and those of its descendants, without recursion."""
    stack = [(id(source), compiler)]
    open_nodes = {id(source)}
    sent: Schema | None = None
    while True:
        identity, compiler = stack[-1]
        try:
            node, place, is_property = next(compiler) if sent is None else compiler.send(sent)
        except StopIteration as done:
            stack.pop()
            open_nodes.discard(identity)
            sent = cast("Schema", done.value)
            if not stack:
                return sent
            continue
        if id(node) in open_nodes and is_object(node):
            raise _DslError(place, " is circular")
        open_nodes.add(id(node))
        stack.append((id(node), _node(node, place, is_property=is_property)))
        sent = None


def _parameters(spec: Any) -> _Compiler:
    if not is_object(spec):
        raise _DslError(None, " must be an object of value schemas")
    schema: Schema = {"type": "object"}
    schema |= yield from _properties(spec, None)
    return schema


def _node(node: Any, place: Place, *, is_property: bool) -> _Compiler:
    if not is_object(node):
        raise _DslError(place, " must be a value schema object")
    if "oneOf" in node:
        return (yield from _union(node, place, is_property=is_property))
    kind = node.get("type")
    if type(kind) is not str or kind not in _KEYS_OF:
        raise _DslError(place, f".type must be {_TYPES_TEXT}, or use oneOf")
    _check_keys(node, place, ("type", *_KEYS_OF[kind]), is_property=is_property)
    annotations: Schema = {key: node[key] for key in ANNOTATIONS if key in node}
    if kind == "json":
        return annotations
    schema: Schema = {"type": kind} | annotations
    if kind == "object":
        schema |= yield from _object(node, place)
    elif kind == "array":
        if "items" in node:
            schema["items"] = yield node["items"], (place, "items"), False
    else:
        schema |= _scalar(node, place)
    return schema


def _check_keys(node: Schema, place: Place, allowed: tuple[str, ...], *, is_property: bool) -> None:
    for key in node:
        if key not in allowed and key not in ANNOTATIONS and not (key == "required" and is_property):
            raise _DslError(place, f".{key} is not supported by the value schema DSL")
    if node.get("required", True) is not True:
        raise _DslError(place, ".required must be true when present")


def _union(node: Schema, place: Place, *, is_property: bool) -> _Compiler:
    if "type" in node:
        raise _DslError(place, " cannot declare both type and oneOf")
    _check_keys(node, place, ("oneOf",), is_property=is_property)
    if not is_array(node["oneOf"]):
        raise _DslError(place, ".oneOf must be an array of at least two value schemas")
    branches: list[Schema] = []
    around = (place, "oneOf")
    for index, branch in enumerate(node["oneOf"]):
        branches.append((yield branch, (around, index), False))
    return {"oneOf": branches} | {key: node[key] for key in ANNOTATIONS if key in node}


def _object(node: Schema, place: Place) -> _Compiler:
    if type(node.get("additionalProperties")) is not bool:
        raise _DslError(place, ".additionalProperties must be explicitly true or false")
    schema: Schema = {"additionalProperties": node["additionalProperties"]}
    if "properties" in node:
        schema |= yield from _properties(node["properties"], (place, "properties"))
    return schema


def _properties(spec: Any, place: Place) -> _Compiler:
    if not is_object(spec):
        raise _DslError(place, " must be an object of value schemas")
    properties: Schema = {}
    for name, child in spec.items():
        properties[name] = yield child, (place, name), True
    required = [name for name, child in spec.items() if "required" in child]
    return {"properties": properties} | ({"required": required} if required else {})


def _scalar(node: Schema, place: Place) -> Schema:
    if "enum" in node and not is_array(node["enum"]):
        raise _DslError(place, ".enum must be a non-empty array of scalar values")
    return {key: node[key] for key in ("enum", "const") if key in node}
