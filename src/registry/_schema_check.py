"""The enforced subset of JSON Schema: what a schema may say, since only that is checked.

Source: ``spec/behaviour.md`` B3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from ._json import JsonValue, is_json
from ._json_kinds import is_array, is_object

__all__ = ["ANNOTATIONS", "SCALAR_CHECKS", "check_object_schema", "check_schema"]

ANNOTATIONS: Final = ("description", "title", "default", "examples")
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_OF_KIND: Final = ("properties", "required", "additionalProperties", "items", "enum", "const")
_KEYWORDS: Final = frozenset({"type", "oneOf", *_OF_KIND, *ANNOTATIONS})
_ALLOWED: Final = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items"},
}
_SUBSET: Final = "(subset: type/oneOf/properties/required/additionalProperties/items/enum/const + annotations)"


def is_number(value: object) -> bool:
    """Whether a value is a finite JSON number."""
    if type(value) is int:
        return True
    return type(value) is float and math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0)


def is_integer(value: object) -> bool:
    """Whether a value is a JSON integer: a finite number without a fraction, so ``1.0`` is one and ``True`` is not."""
    return type(value) is int or (is_number(value) and value.is_integer())  # type: ignore[attr-defined]  # pyright: ignore


SCALAR_CHECKS: Final[dict[str, Callable[[object], bool]]] = {
    "string": lambda value: type(value) is str,
    "number": is_number,
    "integer": is_integer,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}


def same_scalar(one: object, other: object) -> bool:
    """Whether two scalars are the same JSON: ``1`` is ``1.0``, ``True`` is not ``1``."""
    return one == other and (type(one) is bool) == (type(other) is bool)


def check_schema(schema: object) -> list[str]:
    """Every violation of the subset, in walk order; empty if the schema is within it.

    Args:
        schema: A would-be schema; paths in the texts begin with ``schema``.
    """
    violations: list[str] = []
    open_nodes: set[int] = set()
    stack: list[tuple[int, Iterator[Visit]]] = []
    pending: Visit | None = ("schema", schema)
    while pending is not None or stack:
        if pending is not None:
            path, node = pending
            pending = None
            if not is_object(node):
                violations.append(f"{path} must be a schema object")
            elif id(node) in open_nodes:
                violations.append(f"{path} is circular")
            else:
                open_nodes.add(id(node))
                stack.append((id(node), _check_node(node, path, violations)))
        else:
            identity, visits = stack[-1]
            pending = next(visits, None)
            if pending is None:
                stack.pop()
                open_nodes.discard(identity)
    return violations


Visit = tuple[str, object]


def check_object_schema(schema: object) -> list[str]:
    """Like ``check_schema``, and the root must be an object schema (B3.6)."""
    violations = check_schema(schema)
    if not violations and (not is_object(schema) or schema.get("type") != "object"):
        violations.append('schema.type must be "object" (structured output is object-rooted)')
    return violations


def _check_node(node: dict[str, Any], path: str, violations: list[str]) -> Iterator[Visit]:
    """Check one node, yielding each child where its own violations belong in the order."""
    _check_keys(node, path, violations)
    has_type, has_one_of = "type" in node, "oneOf" in node
    if has_type and has_one_of:
        violations.append(f"{path} cannot declare both type and oneOf")
        return
    if not has_type and not has_one_of:
        violations.extend(f"{path}.{key} requires type or oneOf" for key in _OF_KIND if key in node)
        return
    if has_one_of:
        yield from _check_union(node, path, violations)
        return
    kind = node["type"]
    if type(kind) is not str or kind not in _TYPES:
        lists = is_array(kind)
        problem = "a single type string (type arrays are not supported)" if lists else f"one of {'/'.join(_TYPES)}"
        violations.append(f"{path}.type must be {problem}")
        return
    allowed = _ALLOWED.get(kind, {"enum", "const"})
    violations.extend(
        f'{path}.{key} is not supported on type "{kind}"' for key in _OF_KIND if key in node and key not in allowed
    )
    if kind == "object":
        yield from _check_object(node, path, violations)
    elif kind == "array":
        if "items" in node:
            yield f"{path}.items", node["items"]
    else:
        _check_scalar(node, kind, path, violations)


def _check_keys(node: dict[str, Any], path: str, violations: list[str]) -> None:
    for key, value in node.items():
        if key in ANNOTATIONS:
            if not is_json(value):
                violations.append(f"{path}.{key} annotation must be lossless JSON data")
        elif key not in _KEYWORDS:
            violations.append(f"{path}.{key} is not a supported keyword {_SUBSET}")
    violations.extend(
        f"{path}.{key} must be a string" for key in ("description", "title") if key in node and type(node[key]) is not str
    )


def _check_union(node: dict[str, Any], path: str, violations: list[str]) -> Iterator[Visit]:
    branches = node["oneOf"]
    if not is_array(branches) or len(branches) < 2:  # noqa: PLR2004 - a choice needs two branches
        violations.append(f"{path}.oneOf must be an array of at least two schemas")
    else:
        yield from ((f"{path}.oneOf[{index}]", branch) for index, branch in enumerate(branches))
    violations.extend(f"{path}.{key} is not supported beside oneOf" for key in _OF_KIND if key in node)


def _check_object(node: dict[str, Any], path: str, violations: list[str]) -> Iterator[Visit]:
    properties = node.get("properties", {})
    if is_object(properties):
        yield from ((f"{path}.properties.{name}", child) for name, child in properties.items())
    else:
        violations.append(f"{path}.properties must be an object of schemas")
    if "required" in node:
        required = node["required"]
        if not is_array(required) or any(type(name) is not str for name in required):
            violations.append(f"{path}.required must be an array of strings")
        else:
            known = properties if is_object(properties) else {}
            violations.extend(
                f'{path}.required names "{name}" which is not in properties' for name in required if name not in known
            )
    if "additionalProperties" in node and type(node["additionalProperties"]) is not bool:
        violations.append(f"{path}.additionalProperties must be a boolean")


def _check_scalar(node: dict[str, Any], kind: str, path: str, violations: list[str]) -> None:
    fits = SCALAR_CHECKS[kind]
    before = len(violations)
    if "enum" in node:
        members: JsonValue = node["enum"]
        if not is_array(members) or not members or not all(fits(member) for member in members):
            violations.append(f"{path}.enum must be a non-empty array of {kind} values")
    if "const" in node and not fits(node["const"]):
        violations.append(f"{path}.const must be a {kind} value")
    if len(violations) == before and "enum" in node and "const" in node:
        if not any(same_scalar(member, node["const"]) for member in node["enum"]):
            violations.append(f"{path}.const must be one of {path}.enum when both are declared")
