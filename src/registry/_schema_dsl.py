"""The schema DSL: JSON Schema as authors of tools write it, with ``required: True`` on the property itself.

Source: ``spec/behaviour.md`` B2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..errors import JsonSchemaError
from ._json import JsonValue, snapshot
from ._json_kinds import is_array, is_object
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

Schema = dict[str, Any]


def parameters_to_json_schema(spec: Mapping[str, Mapping[str, JsonValue]]) -> Schema:
    """Compile a tool's parameters: property name to node.

    Returns:
        An open object schema: ``type``, ``properties``, and ``required`` if any property is. A detached copy.

    Raises:
        JsonSchemaError: The first violation of the DSL, or all of the subset behind it.
    """
    if not is_object(spec):
        raise JsonSchemaError(["parameters must be an object of value schemas"])
    return _checked(_run(_properties(spec, "parameters", root=True)))


def value_to_json_schema(node: Mapping[str, JsonValue]) -> Schema:
    """Compile one value node; see ``parameters_to_json_schema``."""
    return _checked(_run(_node(node, "schema", property_of=None)))


def _checked(schema: Schema) -> Schema:
    violations = check_schema(schema)
    if violations:
        raise JsonSchemaError(violations)
    return snapshot(schema)  # type: ignore[no-any-return]


_Step = Iterator[Any]


def _run(root: Any) -> Schema:
    """Run the compiler's generators: each yields a child to compile and is sent its schema. No recursion."""
    stack = [root]
    open_nodes: list[int] = []
    sent: Any = None
    while True:
        try:
            node, path, property_of = stack[-1].send(sent)
        except StopIteration as done:
            stack.pop()
            sent = done.value
            if not stack:
                return sent  # type: ignore[no-any-return]
            open_nodes.pop()
            continue
        if id(node) in open_nodes[-_NEAR:] or (len(open_nodes) > _NEAR and id(node) in set(open_nodes)):
            raise JsonSchemaError([f"{path} is circular"])
        open_nodes.append(id(node))
        stack.append(_node(node, path, property_of=property_of))
        sent = None


_NEAR = 100


def _node(node: Any, path: str, *, property_of: list[str] | None) -> Any:
    """Compile one node; ``property_of`` collects the names of required properties of the object around it."""
    if not is_object(node):
        raise JsonSchemaError([f"{path} must be a value schema object"])
    union = "oneOf" in node
    kind = node.get("type")
    if not union and (type(kind) is not str or kind not in _KEYS_OF):
        raise JsonSchemaError([f"{path}.type must be {_TYPES_TEXT}, or use oneOf"])
    if union and "type" in node:
        raise JsonSchemaError([f"{path} cannot declare both type and oneOf"])
    _check_keys(node, path, ("oneOf",) if union else ("type", *_KEYS_OF[str(kind)]), in_property=property_of is not None)
    if node.get("required", True) is not True:
        raise JsonSchemaError([f"{path}.required must be true when present"])
    annotations = {key: node[key] for key in ANNOTATIONS if key in node}
    if union:
        return {"oneOf": (yield from _union(node, path)), **annotations}
    if kind == "json":
        return annotations
    schema = {"type": kind, **annotations}
    if kind == "object":
        schema |= yield from _object(node, path)
    elif kind == "array" and "items" in node:
        schema["items"] = yield node["items"], f"{path}.items", None
    else:
        schema |= _scalar(node, path)
    return schema


def _check_keys(node: Schema, path: str, allowed: tuple[str, ...], *, in_property: bool) -> None:
    for key in node:
        if key not in allowed and key not in ANNOTATIONS and not (key == "required" and in_property):
            raise JsonSchemaError([f"{path}.{key} is not supported by the value schema DSL"])


def _union(node: Schema, path: str) -> Any:
    branches = node["oneOf"]
    if not is_array(branches):
        raise JsonSchemaError([f"{path}.oneOf must be an array of at least two value schemas"])
    compiled: list[Schema] = []
    for index, branch in enumerate(branches):
        compiled.append((yield branch, f"{path}.oneOf[{index}]", None))
    return compiled


def _object(node: Schema, path: str) -> Any:
    if type(node.get("additionalProperties")) is not bool:
        raise JsonSchemaError([f"{path}.additionalProperties must be explicitly true or false"])
    schema: Schema = {"additionalProperties": node["additionalProperties"]}
    if "properties" in node:
        compiled = yield from _properties(node["properties"], f"{path}.properties", root=False)
        schema |= {key: compiled[key] for key in ("properties", "required") if key in compiled}
    return schema


def _properties(spec: Any, path: str, *, root: bool) -> Any:
    if not is_object(spec):
        raise JsonSchemaError([f"{path} must be an object of value schemas"])
    properties: Schema = {}
    required: list[str] = []
    for name, child in spec.items():
        properties[name] = yield child, f"{path}.{name}", required
        if is_object(child) and child.get("required") is True:
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties} if root else {"properties": properties}
    if required:
        schema["required"] = required
    return schema


def _scalar(node: Schema, path: str) -> Schema:
    if "enum" in node and not is_array(node["enum"]):
        raise JsonSchemaError([f"{path}.enum must be a non-empty array of scalar values"])
    return {key: node[key] for key in ("enum", "const") if key in node}
